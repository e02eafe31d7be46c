#!/usr/bin/env python3
"""The same script through `vramtrack run --simulate` on 24 GiB and on 80 GiB: one dies of memory, one lives, an existing
checkpoint survives both, and the reports say what happened and what was assumed.

usage: end_to_end_test.py VRAMTRACK LIBVRAMTRACK SIMGPU_FOLDER      (VRAMTRACK_PYTHON has PyTorch; else skipped: 77)
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SCRIPT = """
import torch
layers = torch.nn.ModuleList(torch.nn.Linear(8192, 8192, device="cuda") for _ in range(48))   # 12 GiB of weights
optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
x = torch.randn(16, 8192, device="cuda")
for layer in layers:
    x = layer(x)
loss = x.mean()
loss.backward()                                                                               # and 12 of gradients
optimizer.step()
print("loss", loss.item(), "peak", torch.cuda.max_memory_allocated())
torch.save({"step": 1}, "checkpoint.pt")
print("saved", torch.load("checkpoint.pt"))
"""


def check(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


def main():
    vramtrack, library, simgpu = (os.path.abspath(a) for a in sys.argv[1:4])
    python = os.environ.get("VRAMTRACK_PYTHON") or sys.executable
    probe = subprocess.run([python, "-c", "import torch; assert torch.version.cuda"], capture_output=True)
    if probe.returncode:
        print(f"skipped: {python} has no PyTorch with CUDA (set VRAMTRACK_PYTHON)")
        return 77
    environment = dict(os.environ, VRAMTRACK_LIBRARY=library, VRAMTRACK_SIMGPU=simgpu)

    def run(card, folder):
        return subprocess.run([vramtrack, "run", "--simulate", card, "-o", f"{card}.vrt", "--", python, "script.py"],
                              cwd=folder, env=environment, capture_output=True, text=True)

    def report(card, folder):
        process = subprocess.run([vramtrack, "report", f"{card}.vrt", "--json"], cwd=folder, capture_output=True, text=True)
        check(process.returncode == 0, f"report: {process.stderr}")
        return json.loads(process.stdout)

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "script.py").write_text(SCRIPT)
        (folder / "checkpoint.pt").write_text("precious")
        time.sleep(0.05)

        small = run("24GiB", folder)
        check(small.returncode == 1, f"24 GiB: exit code {small.returncode}\n{small.stderr}")
        check("OutOfMemoryError: CUDA out of memory. Tried to allocate" in small.stderr, f"24 GiB: {small.stderr}")
        check("24.00 GiB" in small.stderr, f"the card's size is not in PyTorch's text: {small.stderr}")
        device = report("24GiB", folder)["devices"][0]
        check([event["requested_bytes"] for event in device["oom"]] == [8192 * 8192 * 4],
              f"out-of-memory events: {len(device['oom'])}, of a gradient of 256 MiB expected one")

        large = run("h100-80g", folder)
        check(large.returncode == 0, f"80 GiB: exit code {large.returncode}\n{large.stderr}")
        check("saved {'step': 1}" in large.stdout, f"80 GiB: {large.stdout}")
        peak = int(large.stdout.split("peak ")[1].split()[0])
        result = report("h100-80g", folder)
        device = result["devices"][0]
        check(device["oom"] == [], "an out-of-memory event on 80 GiB")
        check(device["allocated_peak"]["allocated_bytes"] == peak,
              f"peak {device['allocated_peak']['allocated_bytes']}, PyTorch says {peak}")
        check(result["simulated"] is True, "the report does not say simulated")
        check(any(note.startswith("value assumed") for note in result["notes"]), f"notes: {result['notes']}")

        check((folder / "checkpoint.pt").read_text() == "precious", "the checkpoint was overwritten")
        check("checkpoint.pt stays as it is" in large.stderr, f"nothing said of the checkpoint: {large.stderr}")
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
