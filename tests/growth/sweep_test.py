"""`vramtrack sweep` with a program whose memory is known to the byte: the law it finds, runs that fail, runs
that do not fit the card, several variables, and what it refuses.

  sweep_test.py VRAMTRACK
"""

import json
import os
import pathlib
import pty
import subprocess
import sys
import tempfile

from traced_jobs import Checks

HERE = pathlib.Path(__file__).resolve().parent
VRAMTRACK = sys.argv[1]
VICTIM = [sys.executable, str(HERE / "sweep_victim.py"), "--seq", "{seq}"]


def sweep(options, command=None, **keywords):
    return subprocess.run([VRAMTRACK, "sweep", *options, "--", *(command or VICTIM)], capture_output=True, text=True,
                          **keywords)


def taken(seq, width=1):
    return width * ((1 << 20) + 4096 * seq + seq * seq)


def check_law(checks, folder):
    done = sweep(["--set", "seq=1024,2048,4096,8192", "--simulate", "h100-80g", "-o", folder, "--predict", "16384",
                  "--json"])
    checks.that(done.returncode == 0, f"exit code {done.returncode} {done.stderr[-300:]}")
    result = json.loads(done.stdout)
    checks.that(result["schema"] == "vramtrack.sweep/1" and result["simulated"], "says what it is")
    checks.that([r["values"]["seq"] for r in result["runs"]] == ["1024", "2048", "4096", "8192"], "runs in order")
    table = result["growth"][0]["table"]
    checks.that(table["allocated"]["bytes"] == [taken(n) for n in (1024, 2048, 4096, 8192)],
                f"bytes of each run {table['allocated']['bytes']}")
    law = table["allocated"]["law"]
    checks.that(abs(law["linear_bytes"] - 4096) < 1 and abs(law["quadratic_bytes"] - 1) < 1e-3
                and abs(law["constant_bytes"] - (1 << 20)) < 4096, f"law {law}")
    checks.that(abs(table["predictions"][0]["bytes"] - taken(16384)) < 0.001 * taken(16384), "predicts twice as far")
    logs = sorted(p.name for p in pathlib.Path(folder).glob("*.log"))
    checks.that(logs == ["seq=1024.log", "seq=2048.log", "seq=4096.log", "seq=8192.log"], f"logs {logs}")
    checks.that(pathlib.Path(folder, "seq=2048.log").read_text().startswith("seq 2048"), "the program's words are there")
    again = subprocess.run([VRAMTRACK, "growth", *(r["trace"] for r in result["runs"]), "--by",
                            "seq=1024,2048,4096,8192", "--json"], capture_output=True, text=True)
    same = json.loads(again.stdout)
    checks.that(same["allocated"] == table["allocated"], "growth says the same of the traces that were kept")
    refused = sweep(["--set", "seq=1024,2048", "--simulate", "h100-80g", "-o", folder])
    checks.that(refused.returncode == 2 and "--force" in refused.stderr, "traces are not overwritten")


def check_failures(checks):
    done = sweep(["--set", "seq=1024,2048,4096,8192", "--simulate", "h100-80g", "--json"],
                 [*VICTIM, "--fail-at", "2048"])
    result = json.loads(done.stdout)
    failed = [r for r in result["runs"] if r["outcome"] == "failed"]
    checks.that(done.returncode == 1 and len(failed) == 1 and failed[0]["values"]["seq"] == "2048"
                and "nothing good" in failed[0]["said"], f"the run that failed is named: {failed}")
    checks.that(result["growth"][0]["table"]["x"] == [1024, 4096, 8192], "and left out of the fit")
    text = sweep(["--set", "seq=1024,2048,4096", "--simulate", "h100-80g"], [*VICTIM, "--fail-at", "2048"])
    checks.that("seq=2048: failed (exit code 1): left out" in text.stdout, "the text says so")

    # 64 MiB at 7168 and 94 MiB at 8192, on a card of 64 MiB beyond its context.
    done = sweep(["--set", "seq=1024,2048,4096,16384", "--simulate", "1GiB", "--json"], [*VICTIM, "--width", "4"])
    result = json.loads(done.stdout)
    checks.that(done.returncode == 0 and result["runs"][3]["outcome"] == "ran out of memory",
                f"the run that did not fit: {result['runs'][3]} exit {done.returncode}")
    table = result["growth"][0]["table"]
    checks.that(table["x"] == [1024, 2048, 4096] and table["ran_out"][0]["x"] == 16384
                and 0 < table["ran_out"][0]["at_least_bytes"] <= taken(16384, 4), "is a lower bound, not a point")
    checks.that(abs(table["allocated"]["bytes"][2] - taken(4096, 4)) == 0, "the others count")


def check_grid(checks):
    done = sweep(["--set", "seq=1024,2048,4096", "--set", "width=1,3", "--simulate", "h100-80g", "--json"],
                 [*VICTIM, "--width", "{width}"])
    groups = {g["fixed"]: g["table"] for g in json.loads(done.stdout)["growth"]}
    checks.that(list(groups) == ["width=1", "width=3"], f"one fit for each width: {list(groups)}")
    for width in (1, 3):
        law = groups[f"width={width}"]["allocated"]["bytes"]
        checks.that(law == [taken(n, width) for n in (1024, 2048, 4096)], f"width {width}: {law}")


def check_refusals(checks):
    for options, command, word in (
            (["--set", "seq=1,2"], [sys.executable, "x.py"], "{seq}"),
            (["--set", "seq=512"], None, "one value"),
            (["--set", "seq=512,abc"], None, "abc"),
            (["--set", "seq=512,512"], None, "twice"),
            (["--set", "512,1024"], None, "NAME=VALUE"),
            (["--set", "seq=1,2", "--set", "seq=3,4"], None, "twice")):
        done = sweep([*options, "--simulate", "h100-80g"], command)
        checks.that(done.returncode == 2 and word in done.stderr and not done.stdout, f"refused: {done.stderr.strip()}")
    done = subprocess.run([VRAMTRACK, "sweep", "--set", "seq=1,2"], capture_output=True, text=True)
    checks.that(done.returncode == 2 and "what shall be run" in done.stderr, "refused without a command")


def check_steps(checks):
    """--stop-after-steps reaches the program, as it does through `run`; without it a rehearsal has its own default."""
    for options, expected in ((["--stop-after-steps", "5"], "5"), ([], "3")):
        with tempfile.TemporaryDirectory(prefix="vramtrack-sweep-") as folder:
            sweep(["--set", "seq=1,2", "--simulate", "h100-80g", "-o", folder, *options],
                  ["sh", "-c", "echo seq {seq} steps $VRAMTRACK_STOP_AFTER_STEPS"],
                  env={n: v for n, v in os.environ.items() if n != "VRAMTRACK_STOP_AFTER_STEPS"})
            said = [pathlib.Path(folder, f"seq={n}.log").read_text() for n in (1, 2)]
            checks.that(said == [f"seq {n} steps {expected}\n" for n in (1, 2)], f"steps of {options}: {said}")
    refused = sweep(["--set", "seq=1,2", "--stop-after-steps", "-1"])
    checks.that(refused.returncode == 2, "a negative number of steps is refused")


def check_terminal(checks):
    """The bar is drawn on a terminal's stderr and nowhere else."""
    leader, follower = pty.openpty()
    done = subprocess.Popen([VRAMTRACK, "sweep", "--set", "seq=1024,2048", "--simulate", "h100-80g", "--", *VICTIM],
                            stdout=subprocess.PIPE, stderr=follower)
    text, _ = done.communicate(timeout=120)
    os.close(follower)
    drawn = b""
    try:
        while chunk := os.read(leader, 4096):
            drawn += chunk
    except OSError:
        pass
    checks.that(b"1/2 seq=2048" in drawn and b"2048 width" not in drawn, f"the bar: {drawn[:200]}")
    checks.that(b"two points fit any law" in text and b"\x1b" not in text, "the report is plain, and warns of two points")


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="vramtrack-sweep-") as folder:
        check_law(checks, folder)
    check_failures(checks)
    check_grid(checks)
    check_refusals(checks)
    check_steps(checks)
    check_terminal(checks)
    return checks.done()


if __name__ == "__main__":
    sys.exit(main())
