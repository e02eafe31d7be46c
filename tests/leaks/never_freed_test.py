#!/usr/bin/env python3
"""What lives when a PyTorch job ends: what the program kept has its line, and what is there by right is filed as such.

usage: never_freed_test.py VRAMTRACK
The witnesses are PyTorch's counters and the driver's, read by the job after its last allocation.
Exit status: 0, 1 where something differs, 77 without PyTorch. Python with PyTorch: VRAMTRACK_PYTHON.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from checks import ProgramTest  # noqa: E402

JOB = """
import json
import torch

weight = torch.randn(512, 512, device="cuda")
product = torch.zeros(1, 512, device="cuda") @ weight  # makes the handle of cuBLAS
spare = torch.empty(40 << 20, dtype=torch.uint8, device="cuda")
del spare
kept = torch.empty(3 << 20, dtype=torch.uint8, device="cuda")
free, total = torch.cuda.mem_get_info()
print(json.dumps({
    "cached": torch.cuda.memory_reserved() - torch.cuda.memory_allocated(),
    "outside": total - free - torch.cuda.memory_reserved(),
    "allocated": torch.cuda.memory_allocated(), "kept": kept.untyped_storage().nbytes()}))
"""
SKIPPED = 77


class NeverFreedTest(ProgramTest):
    def run(self, python, folder):
        job = folder / "job.py"
        job.write_text(JOB)
        trace = folder / "job.vrt"
        done = subprocess.run([self.options.vramtrack, "run", "--simulate", "24GiB", "--stop-after-steps", "0", "-o",
                               str(trace), "--", python, str(job)], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        witness = json.loads(done.stdout)
        leaks = subprocess.run([self.options.vramtrack, "leaks", str(trace), "--json"], capture_output=True, text=True)
        if leaks.returncode:
            sys.exit(leaks.stderr)
        entries = json.loads(leaks.stdout)["never_freed"]
        filed = {entry["known_good"]: entry["bytes"] for entry in entries if not entry["blocks"]}
        self.check("cached", filed.get("cache of the allocator"), witness["cached"])
        self.check("outside", filed.get("CUDA context", 0) + filed.get("CUDA libraries", 0), witness["outside"])
        self.check("libraries", filed.get("CUDA libraries", 0) > 0, True)
        self.check("allocated", sum(entry["bytes"] for entry in entries if entry["blocks"]), witness["allocated"])
        kept = [entry for entry in entries if entry["site"].startswith("job.py:9 ")]
        self.check("kept", [(entry["bytes"], entry["known_good"]) for entry in kept], [(witness["kept"], "")])
        self.check("spare", [entry for entry in entries if entry["site"].startswith("job.py:7 ")], [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vramtrack")
    options = parser.parse_args()
    python = os.environ.get("VRAMTRACK_PYTHON") or sys.executable
    if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode:
        print(f"skipped: {python} has no PyTorch (set VRAMTRACK_PYTHON)")
        return SKIPPED
    test = NeverFreedTest(options)
    with tempfile.TemporaryDirectory(prefix="vramtrack-never-freed-") as folder:
        test.run(python, pathlib.Path(folder))
    for failure in test.failures:
        print("FAIL", failure)
    print(f"{test.checks - len(test.failures)} of {test.checks} hold")
    return 1 if test.failures else 0


if __name__ == "__main__":
    sys.exit(main())
