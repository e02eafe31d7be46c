"""Runs the calling test under the Python that has PyTorch: the one named by VRAMTRACK_PYTHON at the
time of the test, else this one. Exits with 77, which ctest counts as skipped, where there is none."""

import importlib.util
import os
import sys

SKIP = 77


def use_torch_python():
    wanted = os.environ.get("VRAMTRACK_PYTHON", "")
    if wanted and os.path.exists(wanted) and os.environ.get("VRAMTRACK_TEST_PYTHON") != wanted:
        os.environ["VRAMTRACK_TEST_PYTHON"] = wanted
        os.execv(wanted, [wanted] + sys.argv)
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    for module in ("torch", "transformers"):
        if importlib.util.find_spec(module) is None:
            print(f"skipped: no {module}")
            sys.exit(SKIP)
