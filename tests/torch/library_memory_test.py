#!/usr/bin/env python3
"""What cuBLAS, cuDNN and NCCL keep outside PyTorch's allocator on a simulated card: exactly the table of simgpu/README.md,
in torch.cuda.mem_get_info() and in the report.

One traced Python imports PyTorch and forks a child per job, before CUDA is initialised; each chooses its own card.

usage: library_memory_test.py VRAMTRACK LIBVRAMTRACK SIMGPU_FOLDER [VARIABLE]
The variable (VRAMTRACK_PYTHON) names the Python that has PyTorch; else skipped: 77
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

README = pathlib.Path(__file__).resolve().parents[2] / "simgpu" / "README.md"
MIB = 1 << 20
# job: the card, its variables, ranks
JOBS = {f"{what} on {card}": (card, {}, 1) for card in ("h100-80g", "a100-40g", "rtx4090")
        for what in ("plain", "matmul", "convolution")}
JOBS["matmul without estimates"] = ("h100-80g", {"SIMGPU_LIBRARY_MIB": "0"}, 1)
JOBS["matmul as measured"] = ("h100-80g", {"SIMGPU_LIBRARY_MIB": "cublas:40"}, 1)
JOBS["collective on a100-40g"] = ("2x a100-40g", {}, 2)
JOBS["collective with small buffers on a100-40g"] = ("2x a100-40g", {"NCCL_BUFFSIZE": str(MIB), "NCCL_MAX_NCHANNELS": "4"}, 2)
JOBS["collective on rtx4090"] = ("2x rtx4090", {}, 2)
JOBS["collective of one rank on a100-40g"] = ("a100-40g", {}, 1)


# ---- inside

def facts(torch):
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return {"beside": total - free - torch.cuda.memory_reserved(), "used": total - free}


def job(name, rank, ranks, store):
    import ctypes
    import torch
    torch.cuda.set_device(rank)
    x = torch.ones(256, 256, device="cuda")
    y = x + x
    seen = {"before": facts(torch)}
    if name.startswith("matmul"):
        y = x @ x
    elif name.startswith("convolution"):
        y = torch.nn.functional.conv2d(torch.ones(1, 3, 32, 32, device="cuda"), torch.ones(4, 3, 3, 3, device="cuda"))
    elif name.startswith("collective"):
        import torch.distributed as distributed
        distributed.init_process_group("nccl", store=distributed.FileStore(store, ranks), rank=rank, world_size=ranks)
        distributed.all_reduce(y)
    kept = torch.ones(16 * MIB, device="cuda")  # the peak, behind all handles, and more than any workspace
    seen["after"] = facts(torch)
    ctypes.CDLL(None).vramtrack_mark(b"after")
    del kept
    if name.startswith("collective"):
        distributed.destroy_process_group()
        torch.ones(256, device="cuda")
        seen["destroyed"] = facts(torch)
        ctypes.CDLL(None).vramtrack_mark(b"destroyed")
    return seen


def inside(folder):
    import torch
    import torch.distributed  # noqa: F401
    for number, (name, (card, variables, ranks)) in enumerate(JOBS.items()):
        children = []
        for rank in range(ranks):
            child = os.fork()
            if child == 0:
                os.environ.update(variables, SIMGPU=card)
                seen = job(name, rank, ranks, os.path.join(folder, f"store{number}"))
                pathlib.Path(folder, f"{os.getpid()}.seen").write_text(json.dumps({"job": name, "rank": rank, **seen}))
                os._exit(0)
            children.append(child)
        for child in children:
            if os.waitpid(child, 0)[1]:
                raise SystemExit(f"the job {name!r} failed")


# ---- outside

def table():
    """card -> column -> MiB or channels, from the README."""
    rows = {}
    columns = None
    for line in README.read_text().splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if cells[0] == "cards" and "cuBLAS" in line:
            columns = cells[1:]
        elif columns and line.startswith("|") and cells[0] and set(cells[0]) != {"-", " "} and cells[1].strip("-: "):
            values = [int(c) for c in cells[1:]]
            for card in cells[0].split(", "):
                rows[card.strip("`")] = dict(zip(columns, values))
        elif columns and not line.startswith("|"):
            break
    return rows


class Failures(list):
    def equal(self, what, actual, expected):
        if actual != expected:
            self.append(f"{what}: {actual}, expected {expected}")


def expected_bytes(name, card, variables, ranks, row):
    if name.startswith("plain") or variables.get("SIMGPU_LIBRARY_MIB") == "0":
        return 0
    if "SIMGPU_LIBRARY_MIB" in variables:
        return 40 * MIB
    if name.startswith("matmul"):
        return (row["cuBLAS workspace"] + row["cuBLAS code"]) * MIB
    if name.startswith("convolution"):
        return row["cuDNN"] * MIB
    channels = row["NCCL channels"] if ranks > 1 else 0
    each = 12 * MIB
    if "NCCL_BUFFSIZE" in variables:
        channels = int(variables["NCCL_MAX_NCHANNELS"])
        each = 10 * MIB  # 1 + 0.5 + 4.69 MiB in units of 2, and 2 for the header
    return row["NCCL communicator"] * MIB + channels * each


def ask(vramtrack, command, trace, *options):
    process = subprocess.run([vramtrack, command, trace, *options], capture_output=True, text=True)
    if process.returncode:
        sys.exit(f"FAILED: vramtrack {command}: {process.stderr}")
    return process.stdout


def judge(vramtrack, trace, seen, rows, failures):
    name = seen["job"]
    card, variables, ranks = JOBS[name]
    key = card.split()[-1]
    expected = expected_bytes(name, card, variables, ranks, rows[key])
    what = f"{name}, rank {seen['rank']}"
    failures.equal(f"{what}: mem_get_info beside the allocator", seen["after"]["beside"] - seen["before"]["beside"], expected)
    moments = [("mark:after", expected), ("allocated-peak", expected)]
    if "destroyed" in seen:
        failures.equal(f"{what}: destroyed", seen["destroyed"]["beside"], seen["before"]["beside"])
        moments.append(("mark:destroyed", 0))
    for moment, libraries in moments:
        report = json.loads(ask(vramtrack, "report", trace, "--json", "--at", moment))
        device = next(d for d in report["devices"] if d["device"] == seen["rank"])["moment"]
        measured = device["outside_measured"]
        failures.equal(f"{what}, {moment}: libraries", measured["libraries_bytes"], libraries)
        failures.equal(f"{what}, {moment}: context", measured["context_bytes"], seen["before"]["beside"])
        failures.equal(f"{what}, {moment}: residual", device["residual_bytes"], 0)
        failures.equal(f"{what}, {moment}: sum of categories", sum(device["categories"].values()), device["in_use_bytes"])
        if moment == "mark:after":
            failures.equal(f"{what}: the sum", measured["context_bytes"] + libraries + device["in_use_bytes"],
                           seen["after"]["used"])
    text = " ".join(ask(vramtrack, "report", trace, "--at", "mark:after").split())
    if not re.search(r"of contexts and modules \(estimated\), [0-9.]+ of libraries \(estimated\)", text):
        failures.append(f"{what}: the report does not say what is estimated")


def main():
    if sys.argv[1] == "--inside":
        return inside(sys.argv[2])
    vramtrack, library, simgpu = (os.path.abspath(a) for a in sys.argv[1:4])
    variable = sys.argv[4] if len(sys.argv) > 4 else "VRAMTRACK_PYTHON"
    python = os.environ.get(variable) or ("" if sys.argv[4:] else sys.executable)
    if not python or subprocess.run([python, "-c", "import torch; assert torch.version.cuda"], capture_output=True).returncode:
        print(f"skipped: no PyTorch with CUDA (set {variable})")
        return 77
    rows = table()
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.run(
            [vramtrack, "run", "--simulate", "h100-80g", "--stop-after-steps", "0", "--allow-writes", folder, "--", python,
             os.path.abspath(__file__), "--inside", folder], cwd=folder, capture_output=True, text=True,
            env=dict(os.environ, VRAMTRACK_LIBRARY=library, VRAMTRACK_SIMGPU=simgpu, PYTHONDONTWRITEBYTECODE="1"))
        if process.returncode:
            sys.exit(f"FAILED: {process.stderr}")
        found = {p.stem: json.loads(p.read_text()) for p in pathlib.Path(folder).glob("*.seen")}
        failures.equal("processes", len(found), sum(ranks for _, _, ranks in JOBS.values()))
        for pid, seen in found.items():
            traces = list(pathlib.Path(folder).glob(f"vramtrack.*.{pid}.*.vrt"))
            failures.equal(f"{seen['job']}: traces", len(traces), 1)
            if traces:
                judge(vramtrack, str(traces[0]), seen, rows, failures)
    for line in failures:
        print(f"FAILED: {line}")
    print(f"{len(JOBS)} jobs, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
