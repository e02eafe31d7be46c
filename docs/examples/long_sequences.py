"""The experiment that everybody who trains on long sequences does, on a card nobody needs to own.

Runs train_gpt.py and kv_cache.py under `vramtrack run --simulate`, reads the peaks from the reports and
prints Markdown tables: length with and without checkpointing, accumulation, batch against accumulation,
the KV cache against its formula.

usage: long_sequences.py [--small] [--card SPEC] [--vramtrack PATH] [--json FILE]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
GIB = 1024 ** 3


class Bench:
    """Runs one script traced and returns the report of its trace."""

    def __init__(self, vramtrack, card, folder):
        self.vramtrack, self.card, self.folder, self.count = vramtrack, card, folder, 0

    def report(self, script, options, at=None):
        self.count += 1
        trace = self.folder / f"run{self.count}.vrt"
        command = [self.vramtrack, "run", "--simulate", self.card, "-o", trace, "--",
                   sys.executable, HERE / script, *map(str, options)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"long_sequences: {script} {' '.join(map(str, options))} failed:\n{done.stderr[-2000:]}")
        command = [self.vramtrack, "report", trace, "--json"] + (["--at", at] if at else [])
        report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        trace.unlink()
        return report["devices"][0], done.stdout


def gib(value):
    return f"{value / GIB:.2f}"


def category(view, name):
    return view["categories"].get(name, 0)


def train(bench, **options):
    flags = []
    for name, value in options.items():
        flags += [f"--{name}"] if value is True else [f"--{name}", value]
    device, _ = bench.report("train_gpt.py", ["--steps", 2, *flags])
    return device["allocated_peak"]


def lengths(bench, seqs, base):
    rows = []
    for seq in seqs:
        plain = train(bench, seq=seq, **base)
        saved = train(bench, seq=seq, checkpoint=True, **base)
        rows.append({"seq": seq, "peak": plain["allocated_bytes"], "attention": category(plain, "attention"),
                     "activations": category(plain, "activations"),
                     "checkpointed": saved["allocated_bytes"]})
    return rows


def accumulation(bench, base):
    return [{"accumulate": n, "peak": train(bench, accumulate=n, **base)["allocated_bytes"]}
            for n in (1, 2, 4, 8)]


def batch_or_accumulation(bench, base):
    base = dict(base)
    batch = base.pop("batch")
    return [{"batch": b, "accumulate": a,
             "peak": train(bench, batch=b, accumulate=a, **base)["allocated_bytes"]}
            for b, a in ((batch, 1), (2 * batch, 1), (batch, 2))]


def kv_cache(bench, tokens, layers):
    rows = []
    for count in tokens:
        device, text = bench.report("kv_cache.py", ["--tokens", count, "--layers", layers],
                                    at="mark:cache filled")
        formula = int(text.split("the formula gives ")[1].split()[0])
        rows.append({"tokens": count, "kv_cache": category(device["moment"], "kv_cache"),
                     "formula": formula})
    return rows


def show(results):
    print("| length | peak GiB | attention | other activations | with checkpointing |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for r in results["lengths"]:
        print(f"| {r['seq']} | {gib(r['peak'])} | {gib(r['attention'])} | {gib(r['activations'])} | "
              f"{gib(r['checkpointed'])} |")
    print("\n| accumulation | peak GiB |\n| ---: | ---: |")
    for r in results["accumulation"]:
        print(f"| {r['accumulate']} | {gib(r['peak'])} |")
    print("\n| batch | accumulation | peak GiB |\n| ---: | ---: | ---: |")
    for r in results["batch"]:
        print(f"| {r['batch']} | {r['accumulate']} | {gib(r['peak'])} |")
    print("\n| tokens | KV cache, bytes | formula, bytes |\n| ---: | ---: | ---: |")
    for r in results["kv_cache"]:
        print(f"| {r['tokens']} | {r['kv_cache']} | {r['formula']} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="two points of everything, in a minute")
    parser.add_argument("--card", default="h100-80g")
    parser.add_argument("--vramtrack", default="vramtrack")
    parser.add_argument("--json", help="write the numbers there as well")
    args = parser.parse_args()
    base = {"layers": 4, "hidden": 512, "heads": 8, "batch": 2, "vocab": 8000}
    if args.small:
        base.update(layers=2, hidden=256, heads=4, vocab=1000)
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(args.vramtrack, args.card, Path(scratch))
        results = {
            "lengths": lengths(bench, (256, 512) if args.small else (512, 1024, 2048, 4096), base),
            "accumulation": accumulation(bench, {**base, "seq": 256})[:2 if args.small else 4],
            "batch": batch_or_accumulation(bench, {**base, "seq": 256}),
            "kv_cache": kv_cache(bench, (256, 512) if args.small else
                                 (1024, 2048, 4096, 8192, 16384, 32768), 2 if args.small else 4),
        }
    show(results)
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=2) + "\n")
    wrong = [r["tokens"] for r in results["kv_cache"] if r["kv_cache"] != r["formula"]]
    if wrong:
        sys.exit(f"long_sequences: the KV cache differs from its formula at {wrong} tokens")


if __name__ == "__main__":
    main()
