#!/usr/bin/env python3
"""Who made a block and who used it last, on PyTorch jobs, against what PyTorch's dispatcher says of each tensor: for at
least 95 % of the labelled tensors of 1 MiB and more the first kernel is one that the operator launches which made the
tensor, and the last is one of the operator that was given it last. And Adam's lists, in each form of the optimizer, are
told from its kernels alone.

VRAMTRACK_PYTHON: a Python with PyTorch. --keep DIR keeps the recordings, and uses those that are there.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
WANTED = 0.95
JOBS = ("loop", "foreach", "fused", "flash", "generate")

# Which kernels an operator launches, by their names: PyTorch's sources, and the libraries it calls.
FAMILIES = [
    (r"(add)?(mm|bmm)|linear|baddbmm|convolution.*", r"cublas|gemm|cudnn"),
    (r"_softmax|_log_softmax", r"(?i)softmax"),
    (r"_(log_)?softmax_backward_data", r"(?i)softmax"),
    (r"native_layer_norm(_backward)?", r"(?i)layer_?norm|GammaBeta"),
    (r"gelu(_backward)?", r"(?i)gelu"),
    (r"native_dropout", r"(?i)dropout"),
    (r"native_dropout_backward", r"(?i)masked_scale|mul|elementwise"),
    (r"_scaled_dot_product_\w+", r"(?i)cudnn|fmha|flash|attention"),
    (r"(uniform|normal|random)_|randn?|randint", r"(?i)distribution"),
    (r"nll_loss\w*", r"(?i)nll_loss"),
    (r"cat", r"(?i)CatArray|memcpy"),
    (r"_foreach_\w+", r"multi_tensor_apply"),
    (r"_fused_adamw?_", r"(?i)multi_tensor_apply.*|fused"),
    (r"zero_|zeros|zeros_like|fill_|ones|new_zeros", r"(?i)memset|fill"),
    (r"copy_|clone|_to_copy", r"(?i)memcpy|copy|elementwise"),
    (r"addcdiv_", r"(?i)addcdiv"),
    (r"addcmul_", r"(?i)addcmul"),
    (r"lerp_", r"(?i)lerp"),
    (r"sum", r"(?i)reduce|sum"),
    (r"add_?|mul_?|div_?|sqrt_?|sub_?|where", r"(?i)elementwise"),
]


def fits(operator, kernel):
    for name, family in FAMILIES:
        if re.fullmatch(name, operator):
            return re.search(family, kernel) is not None
    return False


class Test:
    def __init__(self, options):
        self.options = options
        self.failures = []
        self.counts = collections.Counter()
        self.misses = collections.Counter()

    def need(self, what, condition):
        self.counts["checks"] += 1
        if not condition:
            self.failures.append(what)

    def blocks(self, trace):
        done = subprocess.run([self.options.vramtrack, "blocks", trace, "--at", "mark:look", "--json"],
                              capture_output=True, text=True, check=True)
        return sorted(json.loads(done.stdout)["blocks"], key=lambda b: b["address"])

    def job(self, folder, name):
        told = json.loads((folder / f"{name}.json").read_text())
        trace, = folder.glob(f"vramtrack.*.{told['pid']}.*.vrt")
        blocks = {b["address"]: b for b in self.blocks(trace)}
        self.need(f"{name}: labelled tensors of 1 MiB", len(told["tensors"]) >= 8)
        for tensor in told["tensors"]:
            self.counts["tensors"] += 1
            block = blocks.get(tensor["address"])
            touches = block and block["touches"]
            for what, end in (("made_by", "first"), ("last_used_by", "last")):
                kernel = touches[end]["kernel"] if touches else "(nobody)"
                if fits(tensor[what], kernel):
                    self.counts[what] += 1
                else:
                    self.misses[f"{name}: {tensor['label'].split()[0]} {what} {tensor[what]}, not {kernel[:110]}"] += 1
        if name in ("loop", "foreach", "fused", "flash"):
            self.adam(name, told, blocks)
        if name == "flash":
            told_so = [a for a, b in blocks.items() if b.get("kernel_role") == "log-sum-exp"]
            self.need(f"flash: log-sum-exps {told_so}, not {told['log_sum_exps']}",
                      sorted(told_so) == sorted(told["log_sum_exps"]) and len(told_so) == 3)

    def adam(self, name, told, blocks):
        """Each tensor's part in the optimizer, which only its kernels can have told: the helper was off."""
        parts = {"parameter": "adam/parameter", "gradient": "adam/gradient", "exp_avg": "adam/first moment",
                 "exp_avg_sq": "adam/second moment"}
        seen = collections.Counter()
        for tensor in told["tensors"]:
            part = parts.get(tensor["label"].split()[0])
            if part is None:
                continue
            self.counts["adam"] += 1
            role = (blocks.get(tensor["address"]) or {}).get("kernel_role")
            if role == part:
                seen[part] += 1
                self.counts["adam right"] += 1
            else:
                self.misses[f"{name}: {part} is said to be {role}"] += 1
        self.need(f"{name}: all four lists of Adam", len(seen) == 4)

    def run(self, folder):
        environment = dict(os.environ, VRAMTRACK_LIBRARY=self.options.tracer, VRAMTRACK_SIMGPU=self.options.simgpu,
                           VRAMTRACK_HELPER="off")
        if not (folder / "generate.json").exists():
            done = subprocess.run([self.options.vramtrack, "run", "--simulate", "h100-80g", "--stop-after-steps", "0",
                                   "--kernels", "on", "-o", f"{folder}/", "--", self.options.python,
                                   HERE / "touch_job.py", folder, *JOBS], capture_output=True, text=True,
                                  env=environment)
            self.need(f"the jobs: {done.stderr[-2000:]}", done.returncode == 0)
        for name in JOBS:
            self.job(folder, name)
        total = self.counts["tensors"]
        for what in ("made_by", "last_used_by"):
            print(f"{what}: {self.counts[what]} of {total} tensors")
            self.need(f"{what}: {self.counts[what]} of {total}", self.counts[what] >= WANTED * total)
        print(f"Adam's lists: {self.counts['adam right']} of {self.counts['adam']} tensors")
        self.need("Adam's lists", self.counts["adam right"] >= WANTED * self.counts["adam"] > 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tracer", required=True)
    parser.add_argument("--vramtrack", required=True)
    parser.add_argument("--simgpu", required=True)
    parser.add_argument("--keep", metavar="DIR")
    options = parser.parse_args()
    options.python = os.environ.get("VRAMTRACK_PYTHON") or sys.executable
    if subprocess.run([options.python, "-c", "import torch"], capture_output=True).returncode:
        print(f"skipped: {options.python} has no PyTorch (set VRAMTRACK_PYTHON)")
        return SKIPPED
    test = Test(options)
    with tempfile.TemporaryDirectory(prefix="vramtrack-touch-") as temporary:
        test.run(pathlib.Path(options.keep or temporary))
    for miss, times in test.misses.most_common(20):
        print(f"  {times:4} {miss}")
    for failure in test.failures[:20]:
        print("failed:", failure)
    return 1 if test.failures else 0


if __name__ == "__main__":
    sys.exit(main())
