#!/usr/bin/env python3
"""Compares our reading of line tables with each CPython's own, instruction by instruction.

usage: python_lines_test.py <print_python_lines>
"""
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def find(version):
    pattern = os.path.expanduser("~/.pyenv/versions/%s.*/bin/python%s" % (version, version))
    found = sorted(glob.glob(pattern))[-1:]
    return found or [p for p in ["/usr/bin/python" + version] if os.access(p, os.X_OK)]


failures = ran = 0
for version in ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]:
    pythons = find(version)
    if not pythons:
        print("CPython %s: skipped, not installed" % version)
        continue
    dump = subprocess.run([pythons[0], os.path.join(HERE, "dump_python_lines.py")], check=True,
                          stdout=subprocess.PIPE).stdout
    ours = subprocess.run([sys.argv[1]], input=dump, check=True, stdout=subprocess.PIPE).stdout
    codes = instructions = wrong = 0
    for code, lines in zip(dump.splitlines(), ours.splitlines()):
        code, lines = json.loads(code), json.loads(lines)
        codes += 1
        instructions += len(lines)
        bad = [(i, a, b) for i, (a, b) in enumerate(zip(code["lines"], lines)) if a != b]
        if bad and not wrong:
            print("  FAIL", code["name"], "(instruction, Python's line, ours):", bad[:3])
        wrong += len(bad)
    print("CPython %s: %d code objects, %d instructions, %d wrong"
          % (version, codes, instructions, wrong))
    ran += 1
    failures += wrong + (instructions == 0)
sys.exit(77 if ran == 0 else 1 if failures else 0)
