#!/usr/bin/env python3
"""What a kernel launch costs with CUPTI as the second witness, in time and in the trace. For people; no test.

  cupti_overhead.py --tracer libvramtrack.so --benchmark cupti_launch_benchmark [--launches N]

On the simulated GPU the records are made by a stand-in: the figures are those of the tracer's part, not of NVIDIA's.
"""
import argparse
import os
import pathlib
import subprocess
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("--tracer", required=True)
parser.add_argument("--benchmark", required=True)
parser.add_argument("--launches", type=int, default=200000)
parser.add_argument("--repeat", type=int, default=5)
options = parser.parse_args()


def run(launches, preload, **variables):
    """(ns per launch, bytes of the trace's frames)."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_PRELOAD=preload, VRAMTRACK_QUIET="1", VRAMTRACK_OUTPUT=folder + "/",
                           SIMGPU="h100-80g", **variables)
        done = subprocess.run([options.benchmark, str(launches)], env=environment, capture_output=True, text=True,
                              check=True)
        sizes = [path.stat().st_size for path in pathlib.Path(folder).glob("*.vrt") if not path.is_symlink()]
        return float(done.stdout), sum(sizes)


def row(name, preload, **variables):
    nanoseconds = min(run(options.launches, preload, **variables)[0] for _ in range(options.repeat))
    # The window is as large in every trace: the difference of two lengths is what launches add.
    few, many = (run(n, preload, **variables)[1] for n in (options.launches // 10, options.launches))
    print(f"{name:<22}{nanoseconds:>10.0f}{(many - few) / (options.launches * 9 / 10):>12.2f}")


print(f"{'per launch':<22}{'ns (CPU)':>10}{'bytes':>12}")
row("without the tracer", "")
row("hooks", options.tracer)
row("hooks and CUPTI", options.tracer, VRAMTRACK_CUPTI="on")
