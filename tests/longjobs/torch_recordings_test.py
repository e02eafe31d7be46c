#!/usr/bin/env python3
"""A ring and a sample of real PyTorch training on the simulated GPU. The witness is PyTorch: its own counters at the
end of the job, and those it reports with each block. The leak is planted: line LEAK keeps one activation per step.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

JOB = pathlib.Path(__file__).resolve().parent / "training_job.py"
LEAK = 1 + next(i for i, line in enumerate(JOB.read_text().splitlines()) if "kept.append" in line)
KEPT_PER_STEP = 8 * 1000 * 4  # 8 rows of 1000 floats, and the allocator's rounding
options = None


class Recordings(unittest.TestCase):
    def record(self, steps, *run_options):
        folder = tempfile.TemporaryDirectory(prefix="longjobs-")
        self.addCleanup(folder.cleanup)
        path, counters = pathlib.Path(folder.name, "job.vrt"), pathlib.Path(folder.name, "counters.json")
        subprocess.run([options.vramtrack, "run", "-o", path, "--simulate", "h100-80g", "--stop-after-steps", "0",
                        *run_options, "--", options.python, JOB, str(steps), "--leak", "--counters", counters],
                       check=True, env=dict(os.environ, VRAMTRACK_SAMPLE_SEED="11"))
        return path, json.loads(counters.read_text())

    def json_of(self, *arguments):
        done = subprocess.run([options.vramtrack, *arguments, "--json"], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    def planted(self, path):
        found = [f for f in self.json_of("leaks", path)["findings"] if f["kind"] == "live growth"]
        self.assertEqual([f["site"].split()[0] for f in found], [f"{JOB.name}:{LEAK}"])
        return found[0]

    def test_a_ring_agrees_with_the_counters_of_pytorch(self):
        path, counters = self.record(900, "--ring", "1M")
        check = self.json_of("check", path)
        self.assertTrue(check["whole"], check["problems"])
        self.assertIsNotNone(check["ring"])
        self.assertTrue(check["ring"]["complete"])
        self.assertGreater(check["ledgers"]["witness_checks"], 10_000)  # after the restart, every one
        report = self.json_of("report", path)
        device = report["devices"][0]
        peaks = [p["bytes"] for p in report["earlier_peaks"] if p["what"] == "allocated"]
        self.assertEqual(max([device["allocated_peak"]["allocated_bytes"], *peaks]), counters["peak"])
        leak = self.planted(path)
        self.assertAlmostEqual(leak["bytes_per_step"] / KEPT_PER_STEP, 1, delta=0.05)
        # Blocks from before the ring are still told apart by line: all 900, not only those of the ring.
        self.assertGreaterEqual(leak["live_blocks"], 890)

    def test_a_sample_estimates_what_the_counters_say(self):
        path, counters = self.record(300, "--sample", "128K")
        self.assertTrue(self.json_of("check", path)["whole"])
        device = self.json_of("report", path)["devices"][0]
        moment = device["moment"]
        self.assertEqual(moment["name"], "allocated-peak")
        self.assertAlmostEqual(moment["allocated_bytes"], counters["peak"],
                               delta=4 * moment["standard_error_bytes"] + 512)
        leak = self.planted(path)
        self.assertAlmostEqual(leak["live_bytes"], 300 * KEPT_PER_STEP, delta=4 * leak["standard_error_bytes"])


def main():
    global options
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramtrack", required=True)
    parser.add_argument("--python", default=os.environ.get("VRAMTRACK_PYTHON", sys.executable))
    options, rest = parser.parse_known_args()
    if subprocess.run([options.python, "-c", "import torch"], capture_output=True, check=False).returncode:
        print("skipped: no PyTorch; set VRAMTRACK_PYTHON")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
