#!/usr/bin/env python3
"""Three ways to say what memory is, on the same runs: vramtrack, torch.profiler's memory categories, mosaic's rules.

usage: compared.py VRAMTRACK [SCRIPT ...] [--quick] [--markdown]
Runs the truth suite's labelled jobs with PyTorch's snapshots and its profiler switched on, and judges at each mark what
each of the three says of every live block. The table in docs/attribution-compared.md is what --markdown prints.

torch.profiler is asked for the categories behind its memory timeline (torch.profiler._memory_profiler). mosaic
(github.com/facebookresearch/mosaic) is not run: `mosaic_category` follows the rules that its documentation and source
state, on the stacks of the same snapshot. Neither has all of our categories, so an answer counts as right wherever it
could mean the right thing (FITS): ACTIVATION is right for scores, logits, keys and values alike.
Python with PyTorch: VRAMTRACK_PYTHON. Exit status 77 without it.
"""
import argparse
import collections
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import time
import traceback

import compare

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
QUICK = ["gpt_eager"]
ALL = ["gpt_eager", "gpt_flash", "gpt_checkpoint", "gpt_accumulate", "llama_sdpa", "gpt2_eager", "generate_dynamic"]
TOOLS = ("vramtrack", "vramtrack on the snapshot", "torch.profiler", "mosaic's rules")
UNKNOWN = "unknown"

# What an answer may mean in our categories.
FITS = {
    "torch.profiler": {
        "INPUT": {"inputs"},
        "TEMPORARY": {"workspace", "activations", "attention", "inputs"},
        "ACTIVATION": {"activations", "attention", "kv_cache"},
        "GRADIENT": {"gradients"},
        "AUTOGRAD_DETAIL": {"activations", "attention", "workspace"},
        "PARAMETER": {"parameters"},
        "OPTIMIZER_STATE": {"optimizer_state"},
    },
    "mosaic's rules": {
        "PARAMETER": {"parameters"},
        "ACTIVATION": {"activations", "attention", "kv_cache", "workspace"},
        "BACKWARD": {"gradients", "activations", "attention", "workspace"},
        "OPTIMIZER": {"optimizer_state"},
        "NET": {"communication"},
        "FSDP": {"communication", "parameters"},
    },
}


def mosaic_category(frames):
    """The first frame, innermost first, that a rule knows."""
    for frame in frames:
        name, file = frame["name"], frame["filename"]
        if "fully_sharded_data_parallel.py" in file:
            return "FSDP"
        if "forward" in name:
            return "ACTIVATION"
        if "param" in name:
            return "PARAMETER"
        if "backward" in name or name == "clip_grad_norm_":
            return "BACKWARD"
        if name in ("custom_adamw", "_init_group"):
            return "OPTIMIZER"
        if name.startswith("dist_"):
            return "NET"
    return UNKNOWN


# Inside the traced process.

def profiled(profile, times):
    """For each time: the live allocations on the GPU, address -> category, as the profiler's timeline has them."""
    memory = profile._memory_profile()
    live, found, waiting = {}, {}, sorted(times.items(), key=lambda item: item[1])
    timeline = memory.timeline
    for when, action, (key, version), _ in timeline:
        while waiting and when > waiting[0][1]:
            found[waiting.pop(0)[0]] = dict(live)
        if getattr(getattr(key, "device", None), "type", "cuda") != "cuda" or not hasattr(key, "storage"):
            continue
        if action.name == "DESTROY":
            live.pop(key, None)
        elif action.name == "INCREMENT_VERSION":
            live[key] = version + 1
        else:
            live[key] = version
    for name, _ in waiting:
        found[name] = dict(live)

    def category(key, version):
        value = memory._categories.get(key, version)
        return value.name if value is not None else UNKNOWN
    return {name: {key.storage.ptr: category(key, version) for key, version in blocks.items()}
            for name, blocks in found.items()}


def run_one(function, folder):
    import torch
    from torch.profiler import ProfilerActivity, profile

    from witness import Witness
    witness, times = Witness(), {}
    mark = witness.mark

    def mark_and_dump(name):
        mark(name)
        times[name] = time.time_ns()
        torch.cuda.memory._dump_snapshot(str(folder / f"{function.__name__}.{name}.pickle"))
    witness.mark = mark_and_dump
    torch.cuda.memory._record_memory_history(stacks="all")
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True, with_stack=True) as run:
        with witness:
            function(witness)
    witness.write(folder / f"{function.__name__}.json", pid=os.getpid(), profiler=profiled(run, times))


def inside(options):
    import torch  # noqa: F401  (once, for all children)
    from scripts import SCRIPTS
    failed = 0
    for name in options.names:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                run_one(SCRIPTS[name], pathlib.Path(options.inside))
                status = 0
            except Exception:
                traceback.print_exc()
            sys.stderr.flush()
            os._exit(status)
        failed += os.waitpid(child, 0)[1] != 0
    return 1 if failed else 0


# Outside.

def snapshot_answers(path):
    with open(path, "rb") as file:
        snapshot = pickle.load(file)  # our own, written a moment ago
    return {block["address"]: mosaic_category(block.get("frames", ()))
            for segment in snapshot["segments"] for block in segment["blocks"] if block["state"] == "active_allocated"}


def answers_at(options, folder, name, known, moment):
    trace = next(folder.glob(f"vramtrack.*.{known['pid']}.*.vrt"))
    pickled = folder / f"{name}.{moment}.pickle"
    ours = compare.blocks_at(options.vramtrack, trace, f"mark:{moment}")
    imported = compare.blocks_at(options.vramtrack, pickled, "end")
    answers = {"vramtrack": {b["address"]: b["category"] for b in ours},
               "vramtrack on the snapshot": {b["address"]: b["category"] for b in imported},
               "torch.profiler": {int(a): c for a, c in known["profiler"][moment].items()},
               "mosaic's rules": snapshot_answers(pickled)}
    return ours, answers


def fits(tool, answer, categories):
    if answer in (UNKNOWN, "other"):
        return None
    return bool(FITS.get(tool, {}).get(answer, {answer}) & categories)


def judge(options, folder, names):
    """tool -> truth category -> answer -> bytes, and tool -> right, wrong, unknown."""
    table = {tool: collections.defaultdict(collections.Counter) for tool in TOOLS}
    score = {tool: collections.Counter() for tool in TOOLS}
    for name in names:
        known = json.loads((folder / f"{name}.json").read_text())
        for mark in known["marks"]:
            labels = {int(a): v for a, v in mark["labels"].items()}
            blocks, answers = answers_at(options, folder, name, known, mark["name"])
            for block in blocks:
                rows = compare.truth_of(block, labels, dict(known["blas"]), None)
                if rows is None:
                    continue
                categories = {compare.category(row) for row in rows}
                for tool in TOOLS:
                    answer = answers[tool].get(block["address"], UNKNOWN)
                    right = fits(tool, answer, categories)
                    table[tool][compare.category(rows[0])][answer] += block["size"]
                    score[tool]["unknown" if right is None else "right" if right else "wrong"] += block["size"]
    return table, score


def share(part, whole):
    return f"{100 * part / whole:.0f} %" if whole else "-"


def answers_text(answers):
    whole = sum(answers.values())
    return ", ".join(f"{answer} {share(size, whole)}" for answer, size in answers.most_common(3) if size >= 0.01 * whole)


def rows_of(table, score):
    truth = {c: sum(a.values()) for c, a in table["vramtrack"].items()}
    whole = sum(truth.values())
    yield ["what it is", "of all", *TOOLS]
    for category in sorted(truth, key=lambda c: -truth[c]):
        yield [category, share(truth[category], whole), *(answers_text(table[tool][category]) for tool in TOOLS)]
    for kind in ("right", "wrong", "unknown"):
        yield [kind, "", *(f"{100 * score[tool][kind] / whole:.1f} %" for tool in TOOLS)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vramtrack")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--quick", action="store_true", help="one script only")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--keep", metavar="DIR", help="keep the recordings there, and use those that are there already")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    options.names = options.names or (QUICK if options.quick else ALL)
    if options.inside:
        return inside(options)
    python = os.environ.get("VRAMTRACK_PYTHON") or sys.executable
    if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode:
        print(f"skipped: {python} has no PyTorch (set VRAMTRACK_PYTHON)")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="vramtrack-compared-") as temporary:
        folder = pathlib.Path(options.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not list(folder.glob("*.json")):
            command = [options.vramtrack, "run", "--simulate", "h100-80g", "--stop-after-steps", "0", "-o", f"{folder}/", "--", python, __file__,
                       options.vramtrack, *options.names, "--inside", str(folder)]
            if subprocess.run(command, env=dict(os.environ, HF_HUB_OFFLINE="1", PYTHONDONTWRITEBYTECODE="1"),
                              stdout=subprocess.DEVNULL).returncode:
                print("a script failed")
                return 1
        table, score = judge(options, folder, options.names)
    rows = list(rows_of(table, score))
    if options.markdown:
        rows.insert(1, ["---"] * len(rows[0]))
        print("\n".join("| " + " | ".join(row) + " |" for row in rows))
    else:
        for row in rows:
            print(" | ".join(row))
    # What the table is for: all three saw the same blocks, and ours is no worse.
    seen = {tool: sum(score[tool].values()) for tool in TOOLS}
    best = max(score[tool]["right"] for tool in ("torch.profiler", "mosaic's rules"))
    fine = len(set(seen.values())) == 1 and score["vramtrack on the snapshot"]["right"] >= best > 0
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
