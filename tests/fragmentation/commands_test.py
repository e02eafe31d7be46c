#!/usr/bin/env python3
"""The published snapshots through the commands: figures of an independent reader, refusals, bounded memory.

  commands_test.py VRAMTRACK DATA
"""
import json
import os
import pathlib
import pickle
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

VRAMTRACK, DATA = sys.argv[1], pathlib.Path(sys.argv[2])
SNAPSHOTS = DATA / "snapshots"
EXPECTED = json.loads((SNAPSHOTS / "expected.json").read_text())


def run(*arguments):
    return subprocess.run([VRAMTRACK, *map(str, arguments)], capture_output=True, text=True, timeout=1800)


def fragmentation(name, *arguments):
    result = run("fragmentation", SNAPSHOTS / f"{name}.pickle.zst", "--json", *arguments)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


class Figures(unittest.TestCase):
    def test_every_device_at_the_end(self):
        keys = {"reserved": "reserved", "allocated": "allocated", "requested": "requested",
                "segments": "segments", "largest_free": "largest_free", "holes": "free_blocks"}
        for name, expected in EXPECTED.items():
            if name == "inconsistent-trace":
                continue  # its blocks do not fill its segments: the next test
            found = {str(device["device"]): device for device in fragmentation(name, "--at", "end")["devices"]}
            self.assertEqual(set(found), set(expected["devices"]), name)
            for device, figures in expected["devices"].items():
                for ours, theirs in keys.items():
                    self.assertEqual(found[device][ours], figures[theirs], (name, device, ours))
                self.assertEqual(sum(s["expandable"] for s in found[device]["segment_list"]),
                                 figures["expandable_segments"], (name, device))

    def test_the_inconsistent_one_is_explained(self):
        found = fragmentation("inconsistent-trace", "--at", "end")
        device = found["devices"][0]
        expected = EXPECTED["inconsistent-trace"]["devices"]["0"]
        for key in ("reserved", "allocated", "requested", "segments"):
            self.assertEqual(device[key], expected[key], key)
        self.assertTrue(any("5 of 5 segments claim" in note for note in found["notes"]), found["notes"])
        self.assertFalse(device["replay"]["exact"])
        self.assertEqual(device["replay"]["predictions"], [])

    def test_the_empty_one_is_explained(self):
        result = run("fragmentation", SNAPSHOTS / "empty.pickle.zst")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("snapshot is empty", result.stdout)


class Refusals(unittest.TestCase):
    def refused(self, content, words):
        with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
            file.write(content)
            file.flush()
            for command in ("fragmentation", "report", "oom"):
                result = run(command, file.name)
                self.assertEqual(result.returncode, 2, (command, words, result.stderr))
                self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
                self.assertIn(words, result.stderr)
                self.assertIn(file.name, result.stderr)

    def test_code(self):
        class Bomb:
            def __reduce__(self):
                return os.system, ("touch /nowhere/vramtrack",)

        for protocol in range(6):
            self.refused(pickle.dumps({"segments": Bomb()}, protocol=protocol), "system")

    def test_other_objects(self):
        self.refused(pickle.dumps({"segments": [complex(1, 2)]}), "complex")
        self.refused(pickle.dumps(pathlib.PurePosixPath("a")), "PurePosixPath")

    def test_lies_about_lengths(self):
        self.refused(b"\x80\x04X" + struct.pack("<I", 0x7fffffff) + b"abc", "a string claims")
        self.refused(b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"abc", "a string claims")
        self.refused(b"\x80\x04Nr" + struct.pack("<I", 0x7fffffff), "memo index")

    def test_nesting(self):
        self.refused(b"\x80\x04" + b"]" * 100_000 + b"a" * 99_999 + b".", "too deeply")

    def test_truncation(self):
        whole = (DATA / ".." / "fuzz" / "corpus" / "snapshot" / "small.protocol4.pickle").resolve().read_bytes()
        for length in (1, len(whole) // 2, len(whole) - 1):
            self.refused(whole[:length], "pickle")


class Memory(unittest.TestCase):
    @unittest.skipIf(os.environ.get("VRAMTRACK_SANITIZE"), "a sanitizer maps terabytes for itself")
    def test_three_times_the_file_is_enough(self):
        """A job's snapshot, made long: 40 MB. The limit is on address space, so that exceeding it fails."""
        if shutil.which("zstd") is None:
            self.skipTest("the zstd program is missing")
        packed = (SNAPSHOTS / "mostly-cached.pickle.zst")
        plain = subprocess.run(["zstd", "-dcq", packed], capture_output=True, check=True)
        snapshot = pickle.loads(plain.stdout)
        trace = snapshot["device_traces"][0]
        # Copies, so that each entry takes the room in the file that a real one does.
        snapshot["device_traces"][0] = [dict(entry, frames=list(entry["frames"]))
                                        for _ in range(80) for entry in trace]
        with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
            pickle.dump(snapshot, file, protocol=4)
            file.flush()
            size = os.path.getsize(file.name)
            self.assertGreater(size, 30 << 20)
            # What the program maps before it reads anything: libraries, stacks, arenas.
            before = 300 << 20
            limit = 3 * size + before
            result = subprocess.run(
                [VRAMTRACK, "report", file.name], capture_output=True, text=True, timeout=600,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
            self.assertEqual(result.returncode, 0, result.stderr)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
            self.assertLess(peak, 3 * size + (32 << 20))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
