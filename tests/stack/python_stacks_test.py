#!/usr/bin/env python3
"""Compares captured Python stacks with Python's own, for every CPython that is found.

usage: python_stacks_test.py <capture library> <print_definitions> [<python> ...]
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

VERSIONS = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]
HERE = os.path.dirname(os.path.abspath(__file__))
CUT = "[deeper frames were cut]"


def find(version):
    """The interpreters of that version, at most one of each kind: pyenv's, the system's."""
    pattern = os.path.expanduser("~/.pyenv/versions/%s.*/bin/python%s" % (version, version))
    found = sorted(glob.glob(pattern))[-1:]
    found += [p for p in ["/usr/bin/python" + version] if os.access(p, os.X_OK)]
    return found


def compare(case, stack):
    python = [[f["function"], f["file"], f["line"]] for f in stack if f["python"]]
    wanted = case["frames"]
    if case.get("cut"):
        if stack[-1]["function"] != CUT:
            return "the cut is not recorded"
        # One frame of Python may be preceded by native ones: what is there has to be right.
        if len(python) < 100 or python != wanted[: len(python)]:
            return "wrong frames before the cut"
        return None
    if case.get("outermost_line_differs"):
        python = python[: len(wanted)]
    if python != wanted:
        return "expected %s\n     got %s" % (wanted[:6], python[:6])
    return None


def native_order(case, stack):
    """A native caller stands between the Python frames it connects."""
    name = case.get("native_between")
    if not name:
        return None
    places = [i for i, f in enumerate(stack) if f["function"].startswith(name)]
    if not places:
        return "no native frame %s" % name
    inner = [f for f in stack[: places[0]] if f["python"]]
    outer = [f for f in stack[places[0] :] if f["python"]]
    if [f["function"].rsplit(".")[-1] for f in inner] != ["python_again"] or not outer:
        return "%s is not where it belongs" % name
    return None


def modes(python, library, printer):
    """VRAMTRACK_STACKS chooses whose frames are taken."""
    code = (
        "import ctypes, sys\n"
        "library = ctypes.CDLL(sys.argv[1])\n"
        "def caller(): return library.capture()\n"
        "print(caller())\n"
        "library.save(sys.argv[2].encode())\n"
    )
    wrong = []
    for mode, python_wanted, native_wanted in [
        ("both", True, True), ("python", True, False), ("native", False, True), ("none", False, False)
    ]:
        with tempfile.TemporaryDirectory() as out:
            records = os.path.join(out, "records")
            environment = dict(os.environ, VRAMTRACK_STACKS=mode)
            number = subprocess.run([python, "-c", code, library, records], check=True,
                                    env=environment, stdout=subprocess.PIPE, text=True).stdout.strip()
            printed = subprocess.run([printer, records], check=True, stdout=subprocess.PIPE).stdout
        stack = json.loads(printed)["stacks"].get(number, [])
        names = [f["function"] for f in stack if f["python"]]
        native = [f for f in stack if not f["python"]]
        if names != (["caller", "<module>"] if python_wanted else []) or bool(native) != native_wanted:
            wrong.append("%s: %s and %d native frames" % (mode, names, len(native)))
    for error in wrong:
        print("  FAIL", error)
    return len(wrong)


def check(name, path, printer):
    with open(path + ".json") as file:
        cases = json.load(file)
    printed = subprocess.run(
        [printer, path + ".records", "--symbols"], check=True, stdout=subprocess.PIPE
    ).stdout
    stacks = json.loads(printed)["stacks"]
    failures = []
    for case in cases:
        stack = stacks.get(str(case["stack"]), [])
        if case["frames"] and not stack:
            error = "stack %d was never defined" % case["stack"]
        else:
            error = compare(case, stack) or native_order(case, stack)
        if error:
            failures.append("%s: %s" % (case["name"], error))
    for failure in failures[:5]:
        print("  FAIL", name, failure)
    print("  %-7s %d stacks, %d wrong" % (name, len(cases), len(failures)))
    return len(failures) + (0 if cases else 1)


def main():
    library, printer = sys.argv[1:3]
    failures = 0
    ran = 0
    for version in VERSIONS:
        pythons = [p for p in sys.argv[3:] if p.endswith(version)] or find(version)
        if not pythons:
            print("CPython %s: skipped, not installed" % version)
        for python in pythons:
            print("CPython %s: %s" % (version, python))
            with tempfile.TemporaryDirectory() as out:
                victim = os.path.join(HERE, "python_victim.py")
                run = subprocess.run([python, victim, library, out])
                if run.returncode != 0:
                    print("  FAIL exit code %d" % run.returncode)
                    failures += 1
                    continue
                ran += 1
                failures += check("parent", os.path.join(out, "parent"), printer)
                failures += check("child", os.path.join(out, "child"), printer)
                failures += modes(python, library, printer)
    if ran == 0:
        print("no interpreter found")
        return 77  # skipped
    return 1 if failures else 0


sys.exit(main())
