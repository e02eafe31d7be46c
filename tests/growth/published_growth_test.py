"""The published snapshots of one training program at four context lengths: `vramtrack growth` finds the peaks that
an independent reader found, the laws that theory gives where the runs are alike, and says where they are not.
The numbers in docs/reading-growth.md are those of the script that made them.

  published_growth_test.py VRAMTRACK
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from traced_jobs import Checks

ROOT = pathlib.Path(__file__).resolve().parents[2]
SNAPSHOTS = ROOT / "tests" / "data" / "snapshots"
CONTEXTS = (128, 256, 512, 1024)


def independent_peaks():
    """peak_requested of the device that was used, from an independent replay of the pickles."""
    expected = json.loads((SNAPSHOTS / "expected.json").read_text())
    peaks = []
    for context in CONTEXTS:
        entry = next(v for k, v in expected.items() if k == f"train-ctx{context}")
        text = json.dumps(entry)
        peaks.append(max(int(part.split(",")[0].split("}")[0]) for part in text.split('"peak_requested": ')[1:]))
    return peaks


def main():
    checks = Checks()
    points = [f"ctx={n}:{SNAPSHOTS / f'train-ctx{n}.pickle.zst'}" for n in CONTEXTS]
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "numbers.json")
        done = subprocess.run([sys.executable, str(ROOT / "docs" / "examples" / "published_growth.py"), "--vramtrack",
                               sys.argv[1], "--json", str(out), *points], capture_output=True, text=True)
        checks.that(done.returncode == 0, f"the script runs {done.stderr[-500:]}")
        result = json.loads(out.read_text())
    table = result["table"]
    for context, found, true in zip(CONTEXTS, table["allocated"]["bytes"], independent_peaks()):
        checks.that(abs(found - true) <= 0.001 * true, f"ctx {context}: peak {found}, an independent reader has {true}")
    rows = {r["name"]: r for r in table["categories"]}
    for name in ("parameters", "gradients", "optimizer_state"):
        checks.that(rows[name]["exponent"]["value"] == 0, f"{name} is constant")
    checks.that(abs(rows["activations/logits"]["exponent"]["value"] - 1) <= 0.02, "logits are linear")
    softmax = next(r for r in table["sites"] if r["name"].endswith("softmax") and r["bytes"][-1] > 1 << 30)
    ratios = [b / a for a, b in zip(softmax["bytes"][1:], softmax["bytes"][2:])]
    checks.that(all(abs(r - 4) < 0.2 for r in ratios), f"the softmax grows fourfold with each doubling: {ratios}")
    checks.that(any("may not be alike" in n for n in table["notes"]), f"the runs differ, and it says so: {table['notes']}")
    checks.that(any("moves between phases" in n for n in table["notes"]), "the peak moves, and it says so")
    page = (ROOT / "docs" / "reading-growth.md").read_text()
    printed = [line for line in done.stdout.splitlines() if line.startswith("|")]
    missing = [line for line in printed if line not in page]
    checks.that(not missing, f"docs/reading-growth.md has every row that the script prints; not {missing[:3]}")
    return checks.done()


if __name__ == "__main__":
    sys.exit(main())
