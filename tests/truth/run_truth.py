#!/usr/bin/env python3
"""Attribution against the truth: labelled PyTorch jobs, traced, and what vramtrack says of each block.

usage: run_truth.py VRAMTRACK [SCRIPT ...] [--quick] [--ways helper,stacks,snapshot] [--keep DIR]
Each script runs three ways: with the Python helper, without it, and as PyTorch's own memory snapshot.
Python with PyTorch: VRAMTRACK_PYTHON. A real GPU is used with --device real.
Exit status: 0, 1 where a requirement that is held is missed, 77 without PyTorch.
"""
import argparse
import collections
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

import compare

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
WAYS = ("helper", "stacks", "snapshot")
WANTED = {"helper": (0.99, 0.97), "stacks": (0.95, 0.90), "snapshot": (0.90, 0.90)}  # over the suite, each script
CLAIMED = 0.97  # of the bytes claimed at confidence 0.9 or more
OTHER = {"helper": 0.01, "stacks": 0.03, "snapshot": 0.03}  # nobody knows what it is, over the suite
CATEGORIES = {"helper": 0.95}  # precise and complete, of each category that holds 1 % of a script's peak
SUB_ROWS = {"helper": 0.95, "stacks": 0.90, "snapshot": 0.80}  # precise and complete, over the suite


# Inside the traced process.

def run_one(function, folder, with_snapshot):
    import torch
    from witness import Witness
    witness = Witness()
    if with_snapshot:
        torch.cuda.memory._record_memory_history(stacks="all")
        mark = witness.mark

        def mark_and_dump(name):
            mark(name)
            torch.cuda.memory._dump_snapshot(str(folder / f"{function.__name__}.{name}.pickle"))
        witness.mark = mark_and_dump
    with witness:
        formula = function(witness)
    if with_snapshot:
        torch.cuda.memory._dump_snapshot(str(folder / f"{function.__name__}.pickle"))
    witness.write(folder / f"{function.__name__}.json", pid=os.getpid(), kv=formula or {},
                  judge_peak=function.peak)


def inside(options):
    sys.path.insert(0, str(HERE))
    import torch  # noqa: F401  (once, for all children)
    from scripts import SCRIPTS
    wanted = [SCRIPTS[n] for n in options.names] or [f for f in SCRIPTS.values() if f.quick or not options.quick]
    wanted = [f for f in wanted if all(importlib.util.find_spec(m) for m in f.needs)]
    if any(f.needs for f in wanted):
        import transformers
        transformers.LlamaForCausalLM, transformers.GPT2LMHeadModel, transformers.DynamicCache  # noqa: B018
    failed = 0
    for function in wanted:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                run_one(function, pathlib.Path(options.folder), options.inside == "snapshot")
                status = 0
            except Exception:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        _, status = os.waitpid(child, 0)
        failed += status != 0
    (pathlib.Path(options.folder) / "scripts").write_text(json.dumps([[f.__name__, f.aside] for f in wanted]))
    return 1 if failed else 0


# Outside.

def trace(options, way, folder):
    environment = dict(os.environ, HF_HUB_OFFLINE="1", PYTHONDONTWRITEBYTECODE="1", TOKENIZERS_PARALLELISM="false")
    environment["VRAMTRACK_HELPER"] = "on" if way == "helper" else "off"
    if way != "helper":  # which would have brought the module for marks along
        environment["PYTHONPATH"] = os.pathsep.join([str(HERE.parents[1] / "python"), os.environ.get("PYTHONPATH", "")])
    simulate = [] if options.device == "real" else ["--simulate", options.device, "--stop-after-steps", "0"]
    command = [options.vramtrack, "run", *simulate, "-o", f"{folder}/", "--", options.python, __file__, options.vramtrack,
               *options.names, *(["--quick"] if options.quick else []), "--inside", way, "--folder", str(folder)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    if process.returncode:
        print(process.stdout[-2000:], process.stderr[-4000:])
    return process.returncode


def judge(options, way, folder, name):
    """The results at every moment of one script."""
    known = json.loads((folder / f"{name}.json").read_text())
    traces = [p for p in folder.glob(f"vramtrack.*.{known['pid']}.*.vrt")]
    moments = [(m["name"], m["labels"], None) for m in known["marks"]]
    if known.get("judge_peak", True):
        moments.append(("peak", known["peak"]["labels"], known["peak"]))
    results = {}
    for moment, labels, peak in moments:
        if way == "snapshot":
            file = folder / (f"{name}.pickle" if peak else f"{name}.{moment}.pickle")
            at = "allocated-peak" if peak else "end"
        else:
            file, at = traces[0], "allocated-peak" if peak else f"mark:{moment}"
        if options.verbose:
            print(f"    {name} {way} {moment}")
        blocks = compare.blocks_at(options.blocks or options.vramtrack, file, at)
        results[moment] = compare.compare(blocks, labels, dict(known["blas"]), peak, options.verbose)
        if moment in known["kv"]:
            results[moment + " kv"] = (compare.kv_bytes(blocks), known["kv"][moment])
    return results


def percent(part, whole):
    return f"{100 * part / whole:6.2f}" if whole else "     -"


def add_up(results):
    total = collections.Counter()
    for result in results:
        for field in compare.Result._fields[:7]:
            total[field] += getattr(result, field)
    return total


def print_categories(results):
    truth, said, right = collections.Counter(), collections.Counter(), collections.Counter()
    confused = collections.Counter()
    for result in results:
        for true, answers in result.truth.items():
            for answer, size in answers.items():
                truth[true] += size
                said[answer] += size
                right[true] += size if true == answer else 0
                if true != answer:
                    confused[true, answer] += size
    print("    category          true MiB   precise  complete  mostly taken for")
    for name in sorted(set(truth) | set(said), key=lambda n: -truth[n]):
        other = max(((s, a) for (t, a), s in confused.items() if t == name), default=(0, ""))
        print(f"    {name:16} {truth[name] / 2**20:9.1f}   {percent(right[name], said[name])}    "
              f"{percent(right[name], truth[name])}  {other[1]}")


def precision_and_recall(pairs, name):
    """Of a name among (truth, answer) -> bytes; None where nothing is of that name."""
    true = sum(size for (t, _), size in pairs.items() if t == name)
    said = sum(size for (_, a), size in pairs.items() if a == name)
    right = pairs.get((name, name), 0)
    return (right / said if said else None, right / true if true else None)


def missed_categories(table, wanted):
    """At each script's peak, the categories that hold 1 % of it and are given wrongly or not at all too often."""
    for (name, _), results in table.items():
        peak = results.get("peak")
        if peak is None:
            continue
        pairs = {(t, a): size for t, answers in peak.truth.items() for a, size in answers.items()}
        for category in peak.truth:
            if sum(peak.truth[category].values()) < 0.01 * peak.total or category == "unlabelled":
                continue
            precision, recall = precision_and_recall(pairs, category)
            if min(precision or 0, recall) < wanted:
                yield f"{name}: {category} at the peak: {percent(precision or 0, 1)} % precise, {percent(recall, 1)} % complete"


def missed_sub_rows(results, wanted):
    """Prints and returns how often the measured sub-rows are right."""
    pairs = collections.Counter()
    for result in results:
        pairs.update(result.sub)
    for row in compare.SUB_ROWS:
        precision, recall = precision_and_recall(pairs, row)
        if recall is None:
            continue
        print(f"    {row:20} {percent(precision or 0, 1)} % precise, {percent(recall, 1)} % complete")
        if min(precision or 0, recall) < wanted:
            yield f"{row}: {percent(precision or 0, 1)} % precise, {percent(recall, 1)} % complete"


def print_sub_rows(results):
    """Where the truth is a sub-row: what was given instead."""
    rows = collections.defaultdict(collections.Counter)
    for result in results:
        for row, answers in result.rows.items():
            if "/" in row and row != "activations/backward":
                rows[row].update(answers)
    for row, answers in sorted(rows.items()):
        given = ", ".join(f"{name} {percent(size, sum(answers.values())).strip()}" for name, size in answers.most_common(3))
        print(f"    {row:20} given as {given}")


def report(way, table):
    """Prints one way's table; returns what was missed."""
    missed = []
    suite, worst = WANTED[way]
    print(f"\n{way}: script, % right, unknown, wrong, without a label, right of what was claimed at >= 0.9; lowest moment")
    for (name, aside), results in table.items():
        for moment, pair in [(m, r) for m, r in results.items() if isinstance(r, tuple) and len(r) == 2]:
            print(f"    {name} {moment}: {pair[0]} bytes, by the formula {pair[1]}")
            if pair[0] != pair[1]:
                missed.append(f"{way} {name}: {moment}: {pair[0]} bytes, by the formula {pair[1]}")
        results = {m: r for m, r in results.items() if isinstance(r, compare.Result)}
        sums = add_up(results.values())
        low = min(results, key=lambda m: results[m].right / max(results[m].total, 1))
        print(f"    {name:18}{'*' if aside else ' '} {percent(sums['right'], sums['total'])} "
              f"{percent(sums['unknown'], sums['total'])} {percent(sums['wrong'], sums['total'])} "
              f"{percent(sums['unlabelled'], sums['total'])} {percent(sums['claimed_right'], sums['claimed'])}"
              f"   {low} {percent(results[low].right, results[low].total)}")
        if sums["right"] < worst * sums["total"]:
            missed.append(f"{way} {name}: {percent(sums['right'], sums['total'])} % right, wanted {100 * worst:.0f}")
    every = [r for results in table.values() for r in results.values() if isinstance(r, compare.Result)]
    sums = add_up(every)
    print(f"    {'all':18}  {percent(sums['right'], sums['total'])} {percent(sums['unknown'], sums['total'])} "
          f"{percent(sums['wrong'], sums['total'])} {percent(sums['unlabelled'], sums['total'])} "
          f"{percent(sums['claimed_right'], sums['claimed'])}   (* kept aside)")
    print_categories(every)
    print_sub_rows(every)
    missed += [f"{way} {line}" for line in missed_sub_rows(every, SUB_ROWS[way])]
    if way in CATEGORIES:
        missed += [f"{way} {line}" for line in missed_categories(table, CATEGORIES[way])]
    if sums["unknown"] > OTHER[way] * sums["total"]:
        missed.append(f"{way}: {percent(sums['unknown'], sums['total'])} % other, at most {100 * OTHER[way]:.0f} wanted")
    if sums["right"] < suite * sums["total"]:
        missed.append(f"{way}: {percent(sums['right'], sums['total'])} % right over the suite, wanted {100 * suite:.0f}")
    aside, rest = (add_up(r for (_, kept), results in table.items() if kept == wanted for r in results.values()
                          if isinstance(r, compare.Result)) for wanted in (True, False))
    shares = [s["right"] / s["total"] if s["total"] else 1 for s in (aside, rest)]
    if shares[0] < shares[1] - 0.01 and aside["total"]:
        missed.append(f"{way}: the scripts kept aside are {100 * (shares[1] - shares[0]):.1f} points worse")
    if sums["claimed_right"] < CLAIMED * sums["claimed"]:
        missed.append(f"{way}: of what is claimed at 0.9 or more {percent(sums['claimed_right'], sums['claimed'])} % right")
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vramtrack")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--quick", action="store_true", help="only the quick scripts")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--device", default="h100-80g", help="what to simulate, or `real` (default: %(default)s)")
    parser.add_argument("--keep", metavar="DIR", help="keep the recordings there, and use those that are there already")
    parser.add_argument("--blocks", metavar="VRAMTRACK", help="another build's analyzer reads the recordings")
    parser.add_argument("--hold", default="", metavar="WAYS", help="ways whose requirements decide the exit status")
    parser.add_argument("--verbose", action="store_true", help="say what was taken for what, and why")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    if options.inside:
        return inside(options)
    options.python = os.environ.get("VRAMTRACK_PYTHON") or sys.executable
    if subprocess.run([options.python, "-c", "import torch"], capture_output=True).returncode:
        print(f"skipped: {options.python} has no PyTorch (set VRAMTRACK_PYTHON)")
        return SKIPPED
    missed = []
    with tempfile.TemporaryDirectory(prefix="vramtrack-truth-") as temporary:
        for way in options.ways.split(","):
            folder = pathlib.Path(options.keep or temporary) / way
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / "scripts").exists() and trace(options, way, folder):
                missed.append(f"{way}: a script failed")
            listed = json.loads((folder / "scripts").read_text())
            listed = [n for n in listed if (folder / f"{n[0]}.json").exists() and (not options.names or n[0] in options.names)]
            table = {tuple(n): judge(options, way, folder, n[0]) for n in listed}
            lost = report(way, table) if table else [f"{way}: nothing was traced"]
            for line in lost:
                print("    missed:", line)
            missed += [line for line in lost if way in options.hold.split(",")]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
