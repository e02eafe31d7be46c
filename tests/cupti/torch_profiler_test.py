#!/usr/bin/env python3
"""torch.profiler gets the same GPU events with the second witness and without a tracer.

  torch_profiler_test.py VRAMTRACK_TRACER VRAMTRACK SIMGPU_FOLDER

VRAMTRACK_PYTHON names the Python whose PyTorch is used.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "torch"))
from run_scenarios import SKIPPED, preloads  # noqa: E402


def profiled(python, libraries, **variables):
    done = subprocess.run([python, HERE / "profiled.py"], capture_output=True, text=True, timeout=600,
                          env=dict(os.environ, LD_PRELOAD=":".join(libraries), SIMGPU="h100-80g", **variables))
    line = next((l for l in done.stdout.splitlines() if l.startswith("PROFILED ")), None)
    if done.returncode != 0 or line is None:
        sys.exit(f"the program failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(line.removeprefix("PROFILED "))


def most(sessions):
    """The most of each kind that any session got: now and then the profiler itself loses one event, with
    a tracer and without."""
    best = [{}, {}]
    for session in sessions:
        for kinds, found in zip(best, session):
            for name, count in found:
                kinds[name] = max(count, kinds.get(name, 0))
    return best


def main():
    tracer, vramtrack, simgpu = sys.argv[1:]
    python = os.environ.get("VRAMTRACK_PYTHON", sys.executable)
    libraries = preloads(simgpu, python, None)
    if libraries is None:
        print("skipped: no PyTorch with CUDA in", python)
        return SKIPPED
    alone = profiled(python, libraries)
    failures = []
    for session, (on_gpu, by_operator) in enumerate(alone):
        if not any("elementwise" in name for name, _ in on_gpu):
            failures.append(f"session {session}: the profiler got no kernels: {on_gpu}")
    on_gpu, by_operator = most(alone)
    if not any("Memcpy HtoD" in name for name in on_gpu):
        failures.append(f"the profiler got no copies: {on_gpu}")
    if "aten::relu" not in by_operator:
        failures.append(f"no kernel is linked to aten::relu: {by_operator}")
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder, "profiled.vrt")
        watched = profiled(python, [tracer] + libraries, VRAMTRACK_CUPTI="on", VRAMTRACK_OUTPUT=str(trace))
        done = subprocess.run([vramtrack, "audit", "--json", trace], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"no audit: {done.stderr}")
        audit = json.loads(done.stdout)
    if most(watched) != most(alone):
        failures.append(f"events with us: {watched}\nwithout us: {alone}")
    if not audit["witness"]["stepped_aside"]:
        failures.append(f"the witness did not step aside: {audit['witness']}")
    if audit["missed"] != 0 or audit["allocations_seen_by_both"] == 0 or audit["kernels"] == 0:
        failures.append(f"before the profiler: {json.dumps(audit)[:2000]}")
    print("\n".join(failures))
    print(f"{len(on_gpu)} kinds of GPU events in {len(alone)} sessions, "
          f"{audit['kernels']} kernels witnessed before them, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
