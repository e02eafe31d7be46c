#!/usr/bin/env python3
"""Recordings of long jobs, through the built command: 100,000 steps analysed in bounded memory, the same leaks in a
ring and in a sample of the same job, and files that are still being written.

job_writer says what leaks: line 101 64 KiB every 4 steps, line 102 2 MiB every 50; nothing else.
"""
import argparse
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TRUE_RATES = {101: 64 * 1024 / 4, 102: 2 * 1024 * 1024 / 50}
SAMPLE_BYTES = 1 << 20
options = None


def record(folder, name, steps, **variables):
    path = folder / f"{name}.vrt"
    environment = dict(os.environ, VRAMTRACK_OUTPUT=str(path), VRAMTRACK_QUIET="on", **variables)
    subprocess.run([options.writer, str(steps)], env=environment, check=True)
    return path


def command(*arguments):
    """Exit code, output, errors and the most memory the command ever had, in KiB."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen([options.vramtrack, *map(str, arguments)], stdout=out, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        return process.returncode, out.read(), errors.read(), usage.ru_maxrss


def as_json(*arguments):
    code, out, errors, memory = command(*arguments, "--json")
    assert code == 0, errors
    return json.loads(out), memory


@functools.cache
def leaks_of(path):
    report, memory = as_json("leaks", path)
    found = {}
    for finding in report["findings"]:
        found[int(finding["site"].split(":")[1].split()[0])] = finding
    return found, report, memory


class LongJobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="longjobs-"))
        cls.steps = 100_000
        cls.full = record(cls.folder, "full", cls.steps)
        cls.short = record(cls.folder, "short", cls.steps // 10)
        cls.ring = record(cls.folder, "ring", cls.steps, VRAMTRACK_RING="8M")
        cls.sample = record(cls.folder, "sample", cls.steps, VRAMTRACK_SAMPLE=str(SAMPLE_BYTES),
                            VRAMTRACK_SAMPLE_SEED="7")

    @classmethod
    def tearDownClass(cls):
        for path in cls.folder.iterdir():
            path.unlink()
        cls.folder.rmdir()

    def expect_the_leaks(self, found):
        self.assertEqual(set(found), set(TRUE_RATES))
        for line, finding in found.items():
            self.assertAlmostEqual(finding["bytes_per_step"] / TRUE_RATES[line], 1, delta=0.02)

    def test_the_leaks_of_a_hundred_thousand_steps(self):
        found, report, memory = leaks_of(self.full)
        self.expect_the_leaks(found)
        self.assertEqual(report["steps"], self.steps)
        # Ten times the events: what is live has grown, by 22,500 blocks, and the list of steps. Nothing else may.
        _, _, short = leaks_of(self.short)
        grown = memory - short
        print(f"leaks: {memory} KiB for {self.steps} steps, {short} KiB for a tenth")
        self.assertLess(grown, 32 * 1024)

    def test_a_ring_finds_the_same_leaks(self):
        found, report, _ = leaks_of(self.ring)
        self.expect_the_leaks(found)
        self.assertTrue(any("ring: begins at" in note for note in report["notes"]))
        self.assertGreater(report["ring_begins_s"], 0)
        # What the ring carried over is all there: it holds as much as the full recording says.
        _, full, _ = leaks_of(self.full)
        self.assertEqual(report["never_freed"], full["never_freed"])
        check, _ = as_json("check", self.ring)
        self.assertTrue(check["whole"], check["problems"])
        self.assertGreater(check["ledgers"]["witness_checks"], 100_000)
        self.assertEqual(check["ledgers"]["witness_allocated_wrong"], 0)

    def test_a_ring_knows_which_kernel_ran_next(self):
        files = [record(self.folder, "kernels", 24_100, JOB_KERNELS="1"),
                 record(self.folder, "kernels-ring", 24_100, JOB_KERNELS="1", VRAMTRACK_RING="1M")]
        full, ring = ([(b["sequence"], b["address"], b["site"], b["kernel"]) for b in as_json("blocks", file)[0]["blocks"]]
                      for file in files)
        self.assertEqual(sorted(ring), sorted(full))
        begins = as_json("report", files[1])[0]["ring"]["first_event"]
        slow = [(sequence < begins, kernel) for sequence, _, site, kernel in sorted(ring) if ":104" in site]
        # The kernel of the third pair came after the ring's beginning, which knows the blocks from before it.
        self.assertEqual(slow, [(True, "slow 8000")] * 2 + [(True, "slow 16000")] * 2 + [(True, "slow 24000")] * 2
                         + [(False, None)] * 2)
        self.assertEqual({kernel for _, _, site, kernel in ring if ":101" in site}, {"kernel 1"})

    def test_a_ring_knows_the_peak_of_the_whole_job(self):
        ring, _ = as_json("report", self.ring)
        full, _ = as_json("report", self.full)
        peak = full["devices"][0]["allocated_peak"]["allocated_bytes"]
        known = [p["bytes"] for p in ring["earlier_peaks"] if p["what"] == "allocated"]
        known.append(ring["devices"][0]["allocated_peak"]["allocated_bytes"])
        self.assertEqual(max(known), peak)

    def test_a_sample_finds_the_same_leaks(self):
        found, report, _ = leaks_of(self.sample)
        self.assertEqual(set(found), set(TRUE_RATES))
        self.assertTrue(report["sampled"])
        full, _, _ = leaks_of(self.full)
        for line, finding in found.items():
            error = finding["standard_error_bytes"]
            self.assertGreater(error, 0)
            self.assertLess(error, 0.1 * full[line]["live_bytes"])
            self.assertAlmostEqual(finding["live_bytes"], full[line]["live_bytes"], delta=4 * error)
            self.assertAlmostEqual(finding["bytes_per_step"] / TRUE_RATES[line], 1, delta=0.2)
        # Events, not bytes: this job repeats itself so exactly that the full recording compresses to next to nothing.
        events = [as_json("check", file)[0]["events"] for file in (self.sample, self.full)]
        self.assertLess(events[0], events[1] / 2)

    def test_a_sample_says_how_far_its_sums_may_be_off(self):
        sample, _ = as_json("report", self.sample)
        full, _ = as_json("report", self.full)
        self.assertEqual(sample["sample_bytes"], SAMPLE_BYTES)
        moment = sample["devices"][0]["moment"]
        truth = full["devices"][0]["moment"]["allocated_bytes"]
        self.assertGreater(moment["standard_error_bytes"], 0)
        self.assertAlmostEqual(moment["allocated_bytes"], truth, delta=4 * moment["standard_error_bytes"])
        code, text, _, _ = command("report", self.sample)
        self.assertEqual(code, 0)
        self.assertIn("SAMPLED", text.splitlines()[0])
        self.assertIn("standard error", " ".join(text.split()))

    def test_without_steps_periods_are_found(self):
        path = record(self.folder, "periods", 4000, JOB_WITHOUT_STEPS="1")
        found, report, _ = leaks_of(path)
        self.assertFalse(report["by_step"])
        self.assertTrue(report["by_period"])
        self.assertEqual(report["steps"], 4000)
        self.expect_the_leaks(found)

    def test_a_file_that_is_still_being_written(self):
        for name, variables in (("growing", {}), ("growing-ring", {"VRAMTRACK_RING": "2M"})):
            path = self.folder / f"{name}.vrt"
            environment = dict(os.environ, VRAMTRACK_OUTPUT=str(path), VRAMTRACK_QUIET="on", **variables)
            with subprocess.Popen([options.writer, "0", "200"], env=environment) as writer:
                try:
                    self.read_while_it_grows(path)
                finally:
                    writer.send_signal(signal.SIGKILL)
            # And what the kill left.
            check, _ = as_json("check", path)
            self.assertTrue(check["whole"], check["problems"])
            self.assertFalse(any("still being written" in note for note in check["notes"]))

    def read_while_it_grows(self, path):
        deadline = time.monotonic() + 60
        while not path.exists() or path.stat().st_size < 4 << 20:
            self.assertLess(time.monotonic(), deadline, "the writer does not write")
            time.sleep(0.05)
        time.sleep(0.5)
        events = 0
        for _ in range(3):
            check, _ = as_json("check", path)
            self.assertTrue(check["whole"], check["problems"])
            self.assertFalse(check["finished"])
            self.assertTrue(any("still being written" in note for note in check["notes"]), check["notes"])
            for name in ("report", "leaks"):
                report, _ = as_json(name, path)
                self.assertTrue(any("still being written" in note for note in report["notes"]))
            self.assertGreater(check["events"], 0)
            events = max(events, check["events"])
        self.assertGreater(events, 1000)


def main():
    global options
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramtrack", required=True)
    parser.add_argument("--writer", required=True)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
