#!/usr/bin/env python3
"""Real PyTorch on the simulated GPU, traced: the allocator replay must explain our own traces and PyTorch's snapshots.

  live_replay_test.py VRAMTRACK TRACER SIMGPU
Exit status: 0 passed, 1 failed, 77 skipped (no Python with PyTorch; name one in VRAMTRACK_PYTHON).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "torch"))
from run_scenarios import preloads  # noqa: E402

SKIPPED = 77
PATTERNS = ["churn1", "churn3", "train", "grow", "record"]
SETTINGS = ["def", "exp"]
# Patterns whose calls of empty_cache() all leave a trace, so that a prediction can be exact.
PREDICTABLE = ["churn1", "train", "grow", "record"]


def device(vramtrack, path):
    result = subprocess.run([vramtrack, "fragmentation", path, "--json"], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{path}: {result.stderr}")
    return json.loads(result.stdout)["devices"][0]


def main():
    vramtrack, tracer, simgpu = sys.argv[1:4]
    python = os.environ.get("VRAMTRACK_PYTHON", sys.executable)
    files = preloads(simgpu, python, tracer)
    if files is None:
        print("skipped: no PyTorch with CUDA in", python)
        return SKIPPED
    failures = []

    def check(condition, what):
        if not condition:
            failures.append(what)
            print("FAILED", what)

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, HERE / "record_runs.py", folder, ",".join(PATTERNS), ",".join(SETTINGS)],
                       check=True, cwd=folder, env=dict(os.environ, LD_PRELOAD=":".join(files)))
        snapshots = {path.name[:-len(".pickle")]: device(vramtrack, path)
                     for path in pathlib.Path(folder).glob("*.pickle")}
        traces = [device(vramtrack, path) for path in pathlib.Path(folder).glob("*.vrt") if not path.is_symlink()]
    check(len(snapshots) == len(PATTERNS) * len(SETTINGS), "every run wrote a snapshot")
    check(len(traces) == len(snapshots), "every run wrote a trace")
    for name, found in snapshots.items():
        check(found["replay"]["exact"] and found["replay"]["requests"] > 0, f"snapshot {name}: {found['replay']}")
    for found in traces:
        check(found["replay"]["exact"] and found["replay"]["requests"] > 0, f"a trace: {found['replay']}")
    peaks = sorted(found["reserved_peak"] for found in traces)
    check(peaks == sorted(found["reserved_peak"] for found in snapshots.values()),
          "traces and snapshots reserve the same")
    for pattern in PREDICTABLE:
        wanted = snapshots[f"{pattern}.exp"]["replay"]["recorded_reserved_peak"]
        found = [p for p in snapshots[f"{pattern}.def"]["replay"]["predictions"]
                 if p["settings"] == "expandable_segments:True"][0]
        check(found["reserved_peak_low"] == found["reserved_peak_high"] == wanted,
              f"{pattern}: predicted {found}, a run with it reserved {wanted}")
    print(f"{len(snapshots)} runs, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
