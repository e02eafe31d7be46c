#!/usr/bin/env python3
"""A rehearsal leaves the user's files as they are, and the script does not notice.

usage: rehearsal_test.py LIBREHEARSAL
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SCRIPT = """
import os, pathlib, shutil, subprocess, sys
old = pathlib.Path("checkpoint.pt")
assert old.read_text() == "precious"
old.write_text("simulated")                       # overwrite
assert old.read_text() == "simulated", old.read_text()
with open("log.txt", "a") as f:                   # append to an old file
    f.write(" and more")
assert pathlib.Path("log.txt").read_text() == "old log and more"
with open("data.bin", "r+b") as f:                # change a part
    f.seek(2); f.write(b"XX")
assert pathlib.Path("data.bin").read_bytes() == b"01XX45"
pathlib.Path("new.tmp").write_text("from a rename")
os.replace("new.tmp", "best.pt")                  # the usual way to save
assert pathlib.Path("best.pt").read_text() == "from a rename"
assert not os.path.exists("new.tmp")
os.rename("moved.pt", "moved.bak")                # rotation
assert pathlib.Path("moved.bak").read_text() == "move me"
os.remove("removed.pt")
shutil.rmtree("step-1")                           # save_total_limit
mine = pathlib.Path("mine.txt")                   # what the rehearsal made is its own
mine.write_text("a"); mine.write_text("ab")
subprocess.run(["sh", "-c", "echo from a shell > shell.txt; cat checkpoint.pt"], check=True)
pathlib.Path("open/allowed.txt").write_text("written")
fd = os.open("checkpoint.pt", os.O_RDONLY); os.close(fd)
"""

OLD = {"checkpoint.pt": "precious", "log.txt": "old log", "data.bin": "012345", "best.pt": "the best", "moved.pt": "move me",
       "removed.pt": "stay", "step-1/model.pt": "first", "shell.txt": "shell", "open/allowed.txt": "may go"}


def run(folder, library, **variables):
    environment = dict(os.environ, LD_PRELOAD=library, TMPDIR=str(folder / "tmp"), **variables)
    environment.pop("VRAMTRACK_REHEARSAL_START", None)
    return subprocess.run([sys.executable, "-c", SCRIPT], cwd=folder / "job", env=environment, capture_output=True,
                          text=True)


def contents(folder):
    return {name: (folder / "job" / name).read_text() if (folder / "job" / name).exists() else None for name in OLD}


def prepare(folder):
    (folder / "tmp").mkdir()
    for name, text in OLD.items():
        path = folder / "job" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    time.sleep(0.05)  # older than the rehearsal by more than a tick of the file system's clock


def check(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


def main():
    library = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(folder)
        result = run(folder, library, VRAMTRACK_SIMULATED="1", VRAMTRACK_ALLOW_WRITES=f"{folder}/job/open")
        check(result.returncode == 0, f"the script noticed:\n{result.stderr}")
        check(result.stdout == "simulated", f"a child reads {result.stdout!r}")
        expected = dict(OLD, **{"open/allowed.txt": "written"})
        check(contents(folder) == expected, f"files changed: {contents(folder)}")
        check((folder / "job" / "mine.txt").read_text() == "ab", "a new file is not written")
        check((folder / "job" / "moved.bak").read_text() == "move me", "a new name is not there")
        check("checkpoint.pt stays as it is" in result.stderr, f"nothing said: {result.stderr}")
        check(not list((folder / "tmp").iterdir()), f"left behind: {list((folder / 'tmp').iterdir())}")
    for variables in ({}, {"VRAMTRACK_SIMULATED": "1", "VRAMTRACK_PROTECT": "off"}):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            prepare(folder)
            result = run(folder, library, **variables)
            check(result.returncode == 0, f"fails without protection:\n{result.stderr}")
            check(contents(folder)["checkpoint.pt"] == "simulated", f"protected although {variables}")
            check(contents(folder)["removed.pt"] is None, f"not removed although {variables}")
    print("ok")


if __name__ == "__main__":
    main()
