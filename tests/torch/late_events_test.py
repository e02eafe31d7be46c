#!/usr/bin/env python3
"""Events that complete late: docs/examples/event_range.py gives the range of a job's peaks over seeds. A job on one
stream has none; one whose blocks other streams use has one; each run agrees with PyTorch's own counters to the byte.

usage: late_events_test.py VRAMTRACK LIBVRAMTRACK SIMGPU_FOLDER      (VRAMTRACK_PYTHON has PyTorch; else skipped: 77)
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SEEDS = 2


def one_stream():
    import torch
    model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(64, 1024, device="cuda")).sum().backward()
        optimizer.step()


def prefetching():
    """Batches that are copied on a stream of their own and used on another, as loaders prefetch them."""
    import torch
    side = torch.cuda.Stream()
    host = torch.empty(64 << 20, dtype=torch.uint8, pin_memory=True)
    for _ in range(24):
        with torch.cuda.stream(side):
            batches = [torch.empty(24 << 20, dtype=torch.uint8, device="cuda") for _ in range(2)]
            for batch in batches:
                batch.copy_(host[:24 << 20], non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        for batch in batches:
            batch.record_stream(torch.cuda.current_stream())
        del batch, batches


def inside(folder):
    """One process that imports PyTorch, a child for each job: the processes of one run."""
    import torch
    for job in (one_stream, prefetching):
        pid = os.fork()
        if pid == 0:
            job()
            stats = torch.cuda.memory_stats()
            events = os.environ.get("SIMGPU_EVENTS", "at-once")
            pathlib.Path(folder, f"{job.__name__}.{events}.counters").write_text(json.dumps(
                {"job": job.__name__, "events": events,
                 "peaks": [stats[f"{kind}_bytes.all.peak"] for kind in ("allocated", "reserved")]}))
            sys.exit(0)
        if os.waitpid(pid, 0)[1]:
            sys.exit(f"{job.__name__} failed")


def main():
    if sys.argv[1] == "--inside":
        return inside(sys.argv[2])
    vramtrack, library, simgpu = (os.path.abspath(a) for a in sys.argv[1:4])
    python = os.environ.get("VRAMTRACK_PYTHON") or sys.executable
    if subprocess.run([python, "-c", "import torch; assert torch.version.cuda"], capture_output=True).returncode:
        print(f"skipped: {python} has no PyTorch with CUDA (set VRAMTRACK_PYTHON)")
        return 77
    environment = dict(os.environ, VRAMTRACK_LIBRARY=library, VRAMTRACK_SIMGPU=simgpu, PYTHONDONTWRITEBYTECODE="1")
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder, "range.json")
        run = subprocess.run([sys.executable, HERE.parents[1] / "docs/examples/event_range.py", "--seeds", str(SEEDS),
                              "--vramtrack", vramtrack, "--json", table, "--", python, __file__, "--inside", folder],
                             env=environment, capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"FAILED: event_range.py: {run.stdout}{run.stderr}")
        results = json.loads(table.read_text())
        counters = [json.loads(file.read_text()) for file in pathlib.Path(folder).glob("*.counters")]
    for result, job in zip(results, ("one_stream", "prefetching"), strict=True):
        said = {c["events"]: c["peaks"] for c in counters if c["job"] == job}
        if len(said) != SEEDS + 1 or result["runs"] != said:
            failures.append(f"{job}: traces say {result['runs']}, PyTorch's counters {said}")
        ranges = [max(p) - min(p) for p in zip(*said.values())]
        if result["range"] != ranges:
            failures.append(f"{job}: range {result['range']}, expected {ranges}")
        if job == "one_stream" and any(ranges):
            failures.append(f"{job}: one stream has a range: {said}")
        if job == "prefetching" and not ranges[1]:
            failures.append(f"{job}: the reserved peak is the same with every seed: {said}")
        print(f"{job}: {said}")
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
