"""Runs every command that README.md and docs/*.md show, as a reader would type them.

A fenced block that starts with ```sh holds commands; each file's blocks run in order, in one scratch
folder that holds `train.py` (docs/examples/train_gpt.py) and a link to docs/. A command must exit with 0, unless the line
before its block says `<!-- exit N -->`. Other fences (```text, ```json) show output and are not run.

usage: run_docs.py INSTALL_DIR PYTHON FILE.md...
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Commands that other tests run, with where: they build, or run all the tests.
ELSEWHERE = {
    "vramtrack run --simulate 24GiB --stop-after-steps 0 -- python -m pytest -p vramtrack.pytest_plugin "
    "docs/examples/test_gpu_memory.py": "the test `leaks: the pytest plugin`, where there is a pytest",
    "scripts/demo": "the test docs.demo",
    "scripts/test": "the continuous integration itself",
    "scripts/test --all": "before a release",
    "scripts/build": "the continuous integration itself",
    "scripts/setup": "the continuous integration itself",
}


def blocks(text):
    """Yields (expected exit code, commands) of each ```sh block, continuation lines joined."""
    pattern = re.compile(r"(?:<!-- exit (\d+) -->\s*\n)?```sh\n(.*?)```", re.S)
    for match in pattern.finditer(text):
        joined = match.group(2).replace("\\\n", " ")
        commands = [line.strip() for line in joined.splitlines()]
        yield int(match.group(1) or 0), [c for c in commands if c and not c.startswith("#")]


def environment(install, python):
    env = dict(os.environ)
    env["PATH"] = f"{python.parent}:{install / 'bin'}:{env['PATH']}"
    env.pop("LD_PRELOAD", None)
    return env


def run_file(path, install, python):
    failures, count = [], 0
    with tempfile.TemporaryDirectory(prefix="vramtrack-docs-") as scratch:
        folder = Path(scratch)
        env = environment(install, python)
        shutil.copy(ROOT / "docs" / "examples" / "train_gpt.py", folder / "train.py")
        (folder / "docs").symlink_to(ROOT / "docs")
        for expected, commands in blocks(path.read_text()):
            for command in commands:
                bare = re.sub(r"\s+#.*$", "", command)
                if bare in ELSEWHERE:
                    print(f"  elsewhere  {bare} ({ELSEWHERE[bare]})")
                    continue
                count += 1
                done = subprocess.run(["bash", "-c", bare], cwd=folder, env=env, timeout=600,
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True)
                good = done.returncode == expected
                print(f"  {'ok  ' if good else 'FAIL'}  {bare}")
                if not good:
                    failures.append(f"{path.name}: `{bare}` exited {done.returncode}, not {expected}:\n"
                                    f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return count, failures


def main():
    install, python = Path(sys.argv[1]), Path(sys.argv[2])
    total, failures = 0, []
    for name in sys.argv[3:]:
        print(name)
        count, failed = run_file(Path(name), install, python)
        total += count
        failures += failed
    for failure in failures:
        print(f"\n{failure}", file=sys.stderr)
    print(f"{total} commands run, {len(failures)} failed")
    return 1 if failures or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
