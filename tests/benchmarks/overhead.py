#!/usr/bin/env python3
"""What the tracer adds to a pair of allocation and free, for each choice of stacks. For people; no test.

  overhead.py --tracer libvramtrack.so --benchmark call_benchmark [--calls N] [--preload LIBRARY...]
"""
import argparse
import os
import subprocess
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("--tracer", required=True)
parser.add_argument("--benchmark", required=True)
parser.add_argument("--preload", nargs="*", default=[], help="stand-ins, where the benchmark does not find a runtime")
parser.add_argument("--calls", default="100000")
parser.add_argument("--repeat", type=int, default=5)
options = parser.parse_args()


def nanoseconds(depth, preload, **variables):
    """The least of several runs: what others do on the machine only adds."""
    best = None
    for _ in range(options.repeat):
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, LD_PRELOAD=":".join(preload), VRAMTRACK_QUIET="1", **variables)
            environment.setdefault("SIMGPU", "h100-80g")
            done = subprocess.run([options.benchmark, options.calls, str(depth)], cwd=folder, env=environment,
                                  capture_output=True, text=True, check=True)
            best = min(best or 1e9, float(done.stdout))
    return best


print("ns of CPU time per allocation and free (3 events, 2 stacks)")
print(f"{'frames':>8}{'alone':>10}{'none':>10}{'native':>10}{'both':>10}")
for frames in (5, 20, 50):
    row = [nanoseconds(frames, options.preload)]
    row += [nanoseconds(frames, [options.tracer] + options.preload, VRAMTRACK_STACKS=stacks)
            for stacks in ("none", "native", "both")]
    print(f"{frames:>8}" + "".join(f"{ns:>10.0f}" for ns in row))
