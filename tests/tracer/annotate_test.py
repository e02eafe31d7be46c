#!/usr/bin/env python3
"""The annotation API: what a program says is in its trace, and without the tracer it says nothing to nobody."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

MARK, PUSH, POP, STEP, LABEL = 64, 65, 66, 67, 68

parser = argparse.ArgumentParser()
parser.add_argument("--tracer", required=True)
parser.add_argument("--dump", required=True)
parser.add_argument("--program", required=True)
options = parser.parse_args()
failures = []


def check(what, got, expected):
    if got != expected:
        failures.append(f"{what}: {got}, expected {expected}")


with tempfile.TemporaryDirectory() as folder:
    environment = dict(os.environ, VRAMTRACK_QUIET="1")
    environment.pop("LD_PRELOAD", None)
    alone = subprocess.run([options.program], cwd=folder, env=environment, capture_output=True, text=True)
    check("alone", (alone.returncode, alone.stdout, alone.stderr), (0, "alone\n", ""))
    check("alone: files", os.listdir(folder), [])
    environment["LD_PRELOAD"] = options.tracer
    traced = subprocess.run([options.program], cwd=folder, env=environment, capture_output=True, text=True)
    check("traced", (traced.returncode, traced.stdout, traced.stderr), (0, "traced\n", ""))
    trace = next(p for p in pathlib.Path(folder).glob("*.vrt") if not p.is_symlink())
    lines = subprocess.run([options.dump, trace], capture_output=True, text=True, check=True).stdout.splitlines()
    events = [json.loads(line) for line in lines[1:]]

first = events[0]["thread"]
check("events", [(e["kind"], e["text"], e["thread"] == first) for e in events],
      [(PUSH, "load", True), (PUSH, "inner", True), (STEP, "", True), (POP, "", True), (POP, "", True),
       (LABEL, "kv_cache", True), (MARK, "from a thread", False), (MARK, "", True)])
check("step", [e["extra"] for e in events if e["kind"] == STEP], [7])
check("label", [(e["address"], e["size"]) for e in events if e["kind"] == LABEL], [(0x7f0000001000, 4096)])
for failure in failures:
    print(failure)
print("failed" if failures else "passed")
sys.exit(1 if failures else 0)
