#!/usr/bin/env python3
"""Who holds what, inside real Python processes: every CPython that is found, and PyTorch where VRAMTRACK_PYTHON has it.

usage: holders_test.py <preload library>
"""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
library = os.path.abspath(sys.argv[1])
FOLDER = HERE.parents[1] / "tracer" / "python"


def pythons():
    """As in helper_test.py."""
    for version in ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]:
        found = sorted(pathlib.Path.home().glob(".pyenv/versions/%s.*/bin/python%s" % (version, version)))[-1:]
        found += [p for p in [pathlib.Path("/usr/bin/python" + version)] if os.access(p, os.X_OK)]
        for python in found:
            yield str(python)


def passes(python, victim):
    environment = dict(os.environ, LD_PRELOAD=library, HELPER_TEST_LOG=os.devnull, PYTHONDONTWRITEBYTECODE="1")
    result = subprocess.run([python, str(HERE / victim), str(FOLDER)], env=environment, capture_output=True, text=True)
    good = result.returncode == 0 and result.stdout == "ok\n" and result.stderr == ""
    print("%s %s: %s" % ("ok  " if good else "FAIL", python, victim))
    if not good:
        print(result.stdout + result.stderr)
    return good


torch_python = os.environ.get("VRAMTRACK_PYTHON", "")
results = [passes(python, "holders_victim.py") for python in pythons()]
if torch_python and subprocess.run([torch_python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0:
    results.append(passes(torch_python, "torch_holders_victim.py"))
else:
    print("PyTorch: skipped, not installed")
sys.exit(0 if results and all(results) else 1)
