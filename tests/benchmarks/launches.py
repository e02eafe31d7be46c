#!/usr/bin/env python3
"""What each setting of --kernels adds to a launch: CPU time, and bytes of the trace. For people; no test.

  launches.py --tracer libvramtrack.so --benchmark launch_benchmark [--launches N] [--preload LIBRARY...]
"""
import argparse
import os
import pathlib
import subprocess
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("--tracer", required=True)
parser.add_argument("--benchmark", required=True)
parser.add_argument("--preload", nargs="*", default=[], help="stand-ins, where the benchmark does not find a driver")
parser.add_argument("--launches", type=int, default=200000)
parser.add_argument("--repeat", type=int, default=5)
options = parser.parse_args()
# The benchmark runs in a folder of its own.
options.tracer, options.benchmark = (str(pathlib.Path(p).resolve()) for p in (options.tracer, options.benchmark))
options.preload = [str(pathlib.Path(p).resolve()) for p in options.preload]


def measure(preload, different, launches, **variables):
    """Nanoseconds per launch and bytes of the trace; the least of several runs, as others only add."""
    best = None
    for _ in range(options.repeat):
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, LD_PRELOAD=":".join(preload), VRAMTRACK_QUIET="1", **variables)
            environment.setdefault("SIMGPU", "h100-80g")
            done = subprocess.run([options.benchmark, str(launches), str(different)], cwd=folder, env=environment,
                                  capture_output=True, text=True, check=True)
            frames = 0
            for trace in pathlib.Path(folder).glob("*.vrt"):
                if not trace.is_symlink():
                    header = trace.read_bytes()[:80]
                    frames = trace.stat().st_size - int.from_bytes(header[40:48], "little")
            best = min(best or (1e9, 0), (float(done.stdout), frames))
    return best


def row(name, different, **variables):
    ns, many = measure([options.tracer] + options.preload, different, options.launches, **variables)
    _, few = measure([options.tracer] + options.preload, different, options.launches // 2, **variables)
    print(f"{name:<44}{ns:>8.0f}{ns - alone:>10.0f}{(many - few) / (options.launches / 2):>12.1f}")


alone, _ = measure(options.preload, 1, options.launches)
print(f"{'per launch':<44}{'ns':>8}{'more':>10}{'bytes':>12}")
print(f"{'without the tracer':<44}{alone:>8.0f}")
row("--kernels off", 1, VRAMTRACK_KERNELS="off")
row("--kernels names", 1, VRAMTRACK_KERNELS="names")
row("--kernels off --cupti (a stand-in's records)", 1, VRAMTRACK_KERNELS="off", VRAMTRACK_CUPTI="on")
row("--kernels on, the same memory", 1, VRAMTRACK_KERNELS="on")
row("--kernels on, 3,000 sets of memory in turn", 3000, VRAMTRACK_KERNELS="on")
row("--kernels on, never the same memory", options.launches, VRAMTRACK_KERNELS="on")
