"""scripts/claims in its small form: every claim has its row, the verdicts are those that docs/claims.md gives for the
larger model, and what rests on arithmetic alone is there to the letter.

  claims_test.py VRAMTRACK
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "estimate"))
from torch_python import use_torch_python  # noqa: E402

use_torch_python()
from traced_jobs import Checks  # noqa: E402

ROOT = HERE.parents[1]
ARITHMETIC = ("A3", "A12", "A16", "A17", "B1", "B3", "B4", "B7", "B11", "B14", "B15", "B20", "B21")
NAMES = [f"A{n}" for n in range(1, 22)] + [f"B{n}" for n in range(1, 23)]


def rows(text):
    """id -> (verdict, the whole row)"""
    found = {}
    for line in text.splitlines():
        match = re.match(r"\| ([AB]\d+) \| .+? \| \*\*(.+?)\*\* \| .+ \|$", line)
        if match:
            found[match.group(1)] = (match.group(2), line)
    return found


def main():
    checks = Checks()
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "claims"), "--small", "--vramtrack", sys.argv[1]],
                          capture_output=True, text=True)
    checks.that(done.returncode == 0, f"the script runs {done.stderr[-800:]}")
    here, page = rows(done.stdout), rows((ROOT / "docs" / "claims.md").read_text())
    checks.that(list(page) == NAMES and list(here) == NAMES, "43 claims, each once and in order")
    words = ("simulated", "8 layers, hidden size 1024")
    checks.that(all(w in (ROOT / "docs" / "claims.md").read_text() for w in words), "the page says how it was made")
    for name in [n for n in NAMES if n != "A13"]:  # says itself that it depends on the size
        checks.that(here[name][0] == page[name][0], f"{name}: {here[name][0]}, docs/claims.md has {page[name][0]}")
    for name in ARITHMETIC:
        checks.that(here[name][1] == page[name][1], f"{name}: the page's figures are the script's")
    return checks.done()


if __name__ == "__main__":
    sys.exit(main())
