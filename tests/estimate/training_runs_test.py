"""`vramtrack estimate` against PyTorch's own counters over real training runs on the simulated GPU:
parameters, gradients and optimizer state exact, the peak within 5 %, half of the peaks within 2 %.

  training_runs_test.py --simgpu DIR --vramtrack FILE [CASE ...]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from torch_python import use_torch_python

use_torch_python()
import torch  # noqa: E402

from training_runs import CASES  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def preloads(directory):
    major = (torch.version.cuda or "").split(".")[0]
    if not major:
        print("skipped: this PyTorch has no CUDA")
        sys.exit(77)
    names = ["libcuda.so.1", "libnvidia-ml.so.1", f"libcudart.so.{major}", f"libcublasLt.so.{major}",
             f"libcublas.so.{major}", "libcudnn.so.9", "libnccl.so.2"]
    return ":".join(str(pathlib.Path(directory, name)) for name in names)


def run(case, preload, config):
    environment = dict(os.environ, LD_PRELOAD=preload, SIMGPU="a100-80g")
    done = subprocess.run([sys.executable, str(HERE / "training_runs.py"), case, config],
                          env=environment, capture_output=True, text=True, timeout=600)
    for line in done.stdout.splitlines():
        if line.startswith("COUNTED "):
            return json.loads(line[len("COUNTED "):])
    raise SystemExit(f"{case}: {done.stderr[-800:]}")


def estimate(case, vramtrack, config):
    _, attention, dtype, batch, seq, _, options = CASES[case]
    kind = "fused" if attention == "sdpa" else "eager"
    command = [vramtrack, "estimate", config, "--json", "--dtype", dtype, "--batch", str(batch),
               "--seq", str(seq), "--attention", kind, *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--simgpu", required=True)
    parser.add_argument("--vramtrack", required=True)
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    preload = preloads(arguments.simgpu)
    errors = []
    failures = 0
    for case in arguments.cases or CASES:
        with tempfile.TemporaryDirectory() as folder:
            config = str(pathlib.Path(folder, "config.json"))
            counted = run(case, preload, config)
            estimated = estimate(case, arguments.vramtrack, config)
        error = (estimated["peak"]["bytes"] - counted["peak"]) / counted["peak"]
        errors.append(abs(error))
        wrong = [name for name in ("parameters", "gradients", "optimizer_state")
                 if estimated["categories"].get(name, 0) != counted[name]]
        good = abs(error) <= 0.05 and not wrong
        failures += not good
        print(f"{'ok  ' if good else 'FAIL'} {case:26} peak {counted['peak'] / 2**20:9.1f} MiB, estimated "
              f"{estimated['peak']['bytes'] / 2**20:9.1f} ({estimated['peak']['phase']}) {100 * error:+.2f} %"
              + (f"; not exact: {', '.join(wrong)}" if wrong else ""), flush=True)
    median = statistics.median(errors)
    print(f"median error of the peak {100 * median:.2f} %")
    return 1 if failures or median > 0.02 else 0


if __name__ == "__main__":
    sys.exit(main())
