#!/usr/bin/env python3
"""Stacks that many threads take at once: every id is defined, once, and says the right depth.

usage: threads_test.py <capture_host> <capture library> <print_definitions>
"""
import json
import subprocess
import sys
import tempfile

host, library, printer = sys.argv[1:4]
with tempfile.TemporaryDirectory() as folder:
    path = folder + "/records"
    out = subprocess.run([host, library, "threads", path], stdout=subprocess.PIPE, text=True)
    print(out.stdout, end="")
    if out.returncode != 0:
        sys.exit(1)
    printed = subprocess.run([printer, path, "--symbols"], check=True, stdout=subprocess.PIPE).stdout
    stacks = json.loads(printed)["stacks"]
depths = {}
for number, stack in stacks.items():
    depth = sum("at_depth" in frame["function"] for frame in stack)
    depths.setdefault(depth, []).append(number)
    # The thread's first frame is there: the walk went all the way.
    if not any("clone" in f["function"] or "start_thread" in f["function"] or "std::thread" in f["function"]
               or "_M_run" in f["function"] for f in stack[-4:]):
        print("stack", number, "ends in", stack[-1])
        sys.exit(1)
ids = int(out.stdout.split()[3])
print("defined", len(stacks), "depths", len(depths))
ok = sorted(depths) == list(range(1, 65)) and len(stacks) >= ids
sys.exit(0 if ok else 1)
