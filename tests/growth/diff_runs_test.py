"""`vramtrack diff` on pairs of PyTorch jobs with one known change each: the change is on top, what the allocator
does is told apart from what the program does, limits decide the exit code, and a line that moved is no change.

  diff_runs_test.py VRAMTRACK
"""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "estimate"))
from torch_python import use_torch_python  # noqa: E402

use_torch_python()
from traced_jobs import Checks, ask, trace  # noqa: E402

VRAMTRACK = sys.argv[1]
MIB = 1024 ** 2


def difference(traces, before, after):
    return ask(VRAMTRACK, "diff", traces[before][0], traces[after][0])["devices"][0]


def text(traces, before, after):
    return subprocess.run([VRAMTRACK, "diff", traces[before][0], traces[after][0]], capture_output=True, text=True,
                          check=True).stdout


def total(found, name):
    return next(t for t in found["totals"] if t["name"] == name)["change_bytes"]


def check_known_changes(checks, traces):
    for before, after, rows, sign in (
            ("base", "batch", ("activations",), 1),
            ("batch", "checkpointed", ("activations",), -1),
            ("long fused", "long eager", ("attention", "attention/backward"), 1),
            ("long eager", "long fused", ("attention", "attention/backward"), -1)):
        found = difference(traces, before, after)
        top = [c for c in found["categories"] if not c["name"].startswith("cached")][0]
        checks.that(top["name"] in rows and top["change_bytes"] * sign > 0,
                    f"{before} -> {after}: on top {top['name']} {top['change_bytes']:+}")
        peaks = [traces[name][1]["peak"] for name in (before, after)]
        checks.that(found["peak_change_bytes"] == peaks[1] - peaks[0],
                    f"  the peak changes by {found['peak_change_bytes']:+}, as PyTorch counted")
    found = {c["name"]: c for c in difference(traces, "base", "dtype")["categories"]}
    for name in ("parameters", "optimizer_state"):
        halves = found[name]["before_bytes"] / found[name]["after_bytes"]
        checks.that(abs(halves - 2) < 0.01, f"base -> dtype: {name} is {halves:.3f} times as large before")
    changed = [c for c in difference(traces, "base", "dtype")["categories"] if not c["name"].startswith("cached")]
    checks.that(changed[0]["name"] in ("activations", "optimizer_state") and all(c["change_bytes"] <= 0 for c in changed
                if c["name"] != "rounding" and abs(c["change_bytes"]) > MIB), "  and nothing else rises")


def check_one_tensor(checks, traces):
    found = difference(traces, "base", "extra")
    top = found["sites"][0]
    checks.that(top["change_bytes"] == traces["extra"][1]["kept"] and "extra_tensor" in top["name"]
                and top["before_bytes"] == 0, f"one tensor more: {top['name']} {top['change_bytes']:+}")
    others = [s for s in found["sites"][1:] if abs(s["change_bytes"]) > 512]
    checks.that(not others, f"  and no other line changes: {[s['name'] for s in others][:3]}")


def check_allocator(checks, traces):
    found = difference(traces, "base", "rounded")
    changed = [c for c in found["categories"] if not c["name"].startswith("cached")]
    top = max(changed, key=lambda c: abs(c["change_bytes"]))
    checks.that(top["name"] == "rounding" and top["change_bytes"] > 0, f"allocator setting: on top {top['name']}")
    rest = sum(abs(c["change_bytes"]) for c in changed if c["name"] != "rounding")
    checks.that(rest <= 0.02 * top["change_bytes"], f"  nothing else moves: {rest} against {top['change_bytes']}")

    found = difference(traces, "lean cache", "fat cache")
    fall = traces["fat cache"][1]["held"] - traces["lean cache"][1]["held"]
    checks.that(total(found, "allocated") == fall < 0, f"allocated falls by {-fall}")
    checks.that(total(found, "cached") > 0, f"while cached rises by {total(found, 'cached')}")
    words = text(traces, "lean cache", "fat cache")
    checks.that("allocated falls by 60.00 MiB" in words and "what is cached moves the other way" in words,
                "and the verdict tells both")


def check_limits(checks, traces):
    files = [traces["base"][0], traces["batch"][0]]
    grows = difference(traces, "base", "batch")["peak_change_bytes"]
    for limit, code in ((grows, 0), (grows - 1, 1), (0, 1)):
        done = subprocess.run([VRAMTRACK, "diff", *files, "--fail-over", str(limit)], capture_output=True, text=True)
        checks.that(done.returncode == code and bool(done.stderr) == bool(code), f"--fail-over {limit}: {done.returncode}")
    done = subprocess.run([VRAMTRACK, "diff", *reversed(files), "--fail-over", "0"], capture_output=True, text=True)
    checks.that(done.returncode == 0, "a fall never fails")
    done = subprocess.run([VRAMTRACK, "diff", *files, "--fail-over", "much"], capture_output=True, text=True)
    checks.that(done.returncode == 2, "a limit that is no number is refused")


SCRIPT = """import torch{lines}
def load():
    return torch.empty({first} * 2**20, dtype=torch.uint8, device="cuda")
def work():
    a = torch.empty(64 * 2**20, dtype=torch.uint8, device="cuda")
    b = torch.empty({second} * 2**20, dtype=torch.uint8, device="cuda")
    return a, b
kept = load(), work()
"""


def check_moved_lines(checks):
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, lines, second in (("one", "", 40), ("two", "\n# an edit\n# of\n# the file's head", 56)):
            home = pathlib.Path(folder, name)
            home.mkdir()
            (home / "train.py").write_text(SCRIPT.format(lines=lines, first=32, second=second))
            files.append(str(home / "run.vrt"))
            subprocess.run([VRAMTRACK, "run", "--simulate", "h100-80g", "-o", files[-1], "--", sys.executable,
                            str(home / "train.py")], check=True, capture_output=True)
        found = ask(VRAMTRACK, "diff", *files)["devices"][0]
    changed = [s for s in found["sites"] if s["change_bytes"]]
    checks.that(len(changed) == 1 and changed[0]["change_bytes"] == 16 * MIB and "work" in changed[0]["name"],
                f"the one line that grew: {[(s['name'], s['change_bytes']) for s in changed]}")
    moved = [s for s in found["sites"] if s.get("moved_from")]
    checks.that(len(moved) == 3,
                f"lines that only moved are matched: {[(s['moved_from'], s['name']) for s in moved]}")


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="vramtrack-diff-") as folder:
        traces = trace(VRAMTRACK, HERE / "diff_jobs.py", folder)
        for check in (check_known_changes, check_one_tensor, check_allocator, check_limits):
            check(checks, traces)
    check_moved_lines(checks)
    return checks.done()


if __name__ == "__main__":
    sys.exit(main())
