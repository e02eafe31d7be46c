#!/usr/bin/env python3
"""Planted waste is found and nothing else: `vramtrack waste` on a CUDA program and on a PyTorch job, each with waste of
every kind, of one kind, and of none. What it says of the peak without a finding is what the program that was repaired
in that place really reaches, by the program's own count."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from checks import ProgramTest  # noqa: E402

KINDS = ("unused", "early", "late", "idle")
SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent


class Test(ProgramTest):
    def waste(self, trace, *more):
        done = subprocess.run([self.options.vramtrack, "waste", trace, *more], capture_output=True, text=True)
        self.check(f"waste {' '.join(more)}: exit code", (done.returncode, done.stderr), (0, ""))
        return done.stdout

    def judge(self, name, planted, trace, measured):
        """`measured`: what each program reached, by the kinds that were left in it."""
        found = json.loads(self.waste(trace, "--json"))
        self.check(f"{name}: schema", found["schema"], "vramtrack.waste/1")
        self.check(f"{name}: kinds", sorted(f["kind"] for f in found["findings"]), sorted(planted))
        device, = found["devices"]
        self.check(f"{name}: the peak as it is", device["peak_bytes"], measured[tuple(planted)])
        self.check(f"{name}: the peak without any", device["peak_without_bytes"], measured[()])
        for finding in found["findings"]:
            kind = finding["kind"]
            self.check(f"{name}: where {kind} is", f"take_{kind}" in json.dumps(finding["frames"]), True)
            rest = tuple(k for k in planted if k != kind)
            if rest in measured:
                self.check(f"{name}: the peak without {kind}", finding["peak_without_bytes"], measured[rest])
        text = self.waste(trace)
        self.check(f"{name}: lines", [line for line in text.splitlines() if len(line) > 92], [])
        self.check(f"{name}: verdict", text.startswith("simulated: nothing is held" if not planted else "simulated: "), True)
        for finding in found["findings"]:
            sentence = {"unused": "never touched", "early": "before its first use", "late": "after its last use",
                        "idle": "between two uses"}[finding["kind"]]
            self.check(f"{name}: says {sentence}", sentence in text, True)

    def program(self, sets, *more):
        measured, traces = {}, {}
        with tempfile.TemporaryDirectory() as folder:
            for planted in sets:
                trace = f"{folder}/{'-'.join(planted) or 'none'}.vrt"
                environment = dict(os.environ, VRAMTRACK_LIBRARY=self.options.tracer)
                done = subprocess.run([self.options.vramtrack, "run", "--kernels", "on", "-o", trace, "--",
                                       self.options.program, *planted, *more],
                                      capture_output=True, text=True, env=environment)
                self.check(f"program {planted}: exit code", done.returncode, 0)
                measured[planted], traces[planted] = int(done.stdout), trace
            for planted in sets:
                self.judge(f"program {' '.join(more)} {planted}", planted, traces[planted], measured)

    def without_accesses(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = f"{folder}/names.vrt"
            environment = dict(os.environ, VRAMTRACK_LIBRARY=self.options.tracer)
            subprocess.run([self.options.vramtrack, "run", "-o", trace, "--", self.options.program], check=True,
                           capture_output=True, env=environment)
            done = subprocess.run([self.options.vramtrack, "waste", trace], capture_output=True, text=True)
            self.check("without --kernels on", (done.returncode, "--kernels on" in done.stderr), (2, True))

    def torch(self):
        sets = [(), KINDS, ("unused", "early", "late"), ("idle",)]
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, VRAMTRACK_LIBRARY=self.options.tracer, VRAMTRACK_SIMGPU=self.options.simgpu)
            done = subprocess.run([self.options.vramtrack, "run", "--simulate", "h100-80g", "--stop-after-steps", "0",
                                   "--kernels", "on", "-o", folder + "/", "--", self.options.python,
                                   HERE / "waste_job.py", *["+".join(s) or "none" for s in sets]],
                                  capture_output=True, text=True, env=environment)
            self.check("PyTorch: exit code", (done.returncode, done.stderr if done.returncode else ""), (0, ""))
            told = [line.split() for line in done.stdout.splitlines() if line.startswith("REACHED")]
            measured = {tuple() if names == "none" else tuple(names.split("+")): int(peak)
                        for _, names, _, peak in told}
            self.check("PyTorch: jobs", set(measured), set(sets))
            for _, names, pid, _ in told:
                planted = tuple() if names == "none" else tuple(names.split("+"))
                trace, = pathlib.Path(folder).glob(f"vramtrack.*.{pid}.*.vrt")
                self.judge(f"PyTorch {names}", planted, trace, measured)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tracer", required=True)
    parser.add_argument("--vramtrack", required=True)
    parser.add_argument("--program")
    parser.add_argument("--simgpu")
    options = parser.parse_args()
    test = Test(options)
    if options.program:
        test.program([(), KINDS, *[(k,) for k in KINDS], *[tuple(k for k in KINDS if k != one) for one in KINDS]])
        test.program([(), KINDS], "steps")
        test.without_accesses()
    else:
        options.python = os.environ.get("VRAMTRACK_PYTHON") or sys.executable
        if subprocess.run([options.python, "-c", "import torch"], capture_output=True).returncode:
            print(f"skipped: {options.python} has no PyTorch (set VRAMTRACK_PYTHON)")
            return SKIPPED
        test.torch()
    for failure in test.failures[:40]:
        print(failure)
    print(f"{test.checks} checks, {len(test.failures)} failed")
    return 1 if test.failures or test.checks == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
