#!/usr/bin/env python3
"""The pytest plugin, in a traced process and in one that is not: the same verdicts, by another account.

usage: plugin_test.py VRAMTRACK
VRAMTRACK_PYTHON has PyTorch, VRAMTRACK_PYTEST is a folder that has pytest; without them skipped (77).
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
TESTS = '''
import gc
import pytest
import torch

KEPT = []


def take(mib):
    return torch.empty(mib * 2**20, dtype=torch.uint8, device="cuda")


@pytest.mark.gpu_memory(budget="100 MiB", leak=0)
def test_within():
    take(64)
    take(64)


@pytest.mark.gpu_memory(budget="100 MiB")
def test_over_budget():
    first, second = take(64), take(64)


@pytest.mark.gpu_memory(leak="1 MiB")
def test_leaks():
    KEPT.append(take(48))


@pytest.mark.gpu_memory(leak="64 MiB")
def test_keeps_little():
    KEPT.append(take(48))


@pytest.mark.gpu_memory(leak="1 MiB")
def test_leaves_garbage():
    gc.disable()
    cycle = [take(32)]
    cycle.append(cycle)


@pytest.fixture
def model():
    return take(80)


@pytest.mark.gpu_memory(leak=0)
def test_a_fixture_is_no_leak(model):
    assert model.is_cuda


@pytest.mark.gpu_memory(budget="1 GiB")
def test_fails_by_itself():
    assert take(1).numel() == 0


@pytest.mark.gpu_memory(budget="much")
def test_no_size():
    pass


def test_unmarked():
    KEPT.append(take(16))
'''
FAIL_WITH = {
    "test_over_budget": "gpu_memory: 128.00 MiB were allocated at once, the budget is 100.00 MiB, by %s",
    "test_leaks": "gpu_memory: 48.00 MiB stayed allocated, 1.00 MiB may, by %s",
    "test_fails_by_itself": "AssertionError",
    "test_no_size": "'much' is no size",
}
PASS = ["test_within", "test_keeps_little", "test_leaves_garbage", "test_a_fixture_is_no_leak", "test_unmarked"]


def run(vramtrack, python, folder, file, traced, extra=()):
    path = os.pathsep.join([os.environ["VRAMTRACK_PYTEST"], str(ROOT / "python")])
    environment = dict(os.environ, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1")
    if not traced:
        environment["VRAMTRACK"] = "off"
    command = [vramtrack, "run", "--simulate", "24GiB", "--stop-after-steps", "0", "-o", f"{folder}/", "--", python, "-m", "pytest",
               "-p", "vramtrack.pytest_plugin", "-p", "no:cacheprovider", "-rA", "--tb=short", *extra, str(file)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder)


def main():
    vramtrack = os.path.abspath(sys.argv[1])
    python, pytest = os.environ.get("VRAMTRACK_PYTHON"), os.environ.get("VRAMTRACK_PYTEST", "")
    if not python or not os.path.isdir(os.path.join(pytest, "pytest")):
        print("skipped: VRAMTRACK_PYTHON or VRAMTRACK_PYTEST is not set")
        return SKIPPED
    failed = []
    with tempfile.TemporaryDirectory(prefix="vramtrack-plugin-") as name:
        folder = pathlib.Path(name)
        file = folder / "test_memory.py"
        file.write_text(TESTS)
        for traced, account in (True, "the tracer's account"), (False, "PyTorch's counters (not traced)"):
            result = run(vramtrack, python, folder, file, traced)
            text = result.stdout
            outcomes = dict((line.split("::")[1].split(" ")[0], line.split(" ")[0])
                            for line in text.splitlines() if re.match(r"(PASSED|FAILED|ERROR) .*::", line))
            for test in PASS:
                if outcomes.get(test) != "PASSED":
                    failed.append(f"{account}: {test} {outcomes.get(test)}")
            for test, message in FAIL_WITH.items():
                message = message.replace("%s", account)
                if outcomes.get(test) not in ("FAILED", "ERROR") or message not in text:
                    failed.append(f"{account}: {test} {outcomes.get(test)}, not with: {message}")
            if failed:
                print(text[-6000:], result.stderr[-2000:])
                break
        example = run(vramtrack, python, folder, ROOT / "docs" / "examples" / "test_gpu_memory.py", True)
        if example.returncode or "1 passed" not in example.stdout:
            failed.append("the example in docs/: " + example.stdout[-2000:] + example.stderr[-500:])
    print("\n".join(failed) or "ok")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
