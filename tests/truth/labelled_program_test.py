#!/usr/bin/env python3
"""A CUDA C++ program that labels its memory by the API: everything it said must come back, nothing else be guessed.

usage: labelled_program_test.py VRAMTRACK LABELLED_PROGRAM
"""
import json
import pathlib
import subprocess
import sys
import tempfile

vramtrack, program = sys.argv[1:3]


def main():
    failures = 0
    with tempfile.TemporaryDirectory(prefix="vramtrack-labelled-") as folder:
        out = pathlib.Path(folder) / "truth.json"
        subprocess.run([vramtrack, "run", "--simulate", "h100-80g", "--stop-after-steps", "0", "-o", f"{folder}/", "--allow-writes", folder, "--",
                        program, str(out)], check=True, stdout=subprocess.DEVNULL)
        trace = next(pathlib.Path(folder).glob("vramtrack.*.vrt"))
        truth = json.loads(out.read_text())
        for moment in ("loaded", "busy", "idle"):
            said = subprocess.run([vramtrack, "blocks", str(trace), "--at", f"mark:{moment}", "--json"], check=True,
                                  capture_output=True, text=True).stdout
            given = {b["address"]: [b["size"], b["category"]] for b in json.loads(said)["blocks"] if b["device"] == 0}
            wanted = {int(a): v for a, v in truth[moment].items()}
            wrong = [(hex(a), wanted.get(a), given.get(a)) for a in {*wanted, *given} if wanted.get(a) != given.get(a)]
            print(f"{moment}: {len(wanted)} blocks, {sum(v[0] for v in wanted.values()) >> 20} MiB, {len(wrong)} wrong")
            for line in wrong:
                print("   ", *line)
            failures += len(wrong) + (len(wanted) < 8)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
