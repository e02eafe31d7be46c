#!/usr/bin/env python3
"""Joins what the witness knows with what vramtrack says, by address, weighted by bytes.

usage: compare.py VRAMTRACK TRUTH.json RECORDING [--at MOMENT=LABELS ...] [--verbose]
The functions are what run_truth.py uses; alone it prints one recording's comparison.
"""
import argparse
import collections
import json
import subprocess
import sys

# What PyTorch asks cuBLAS to use is found by taking it back at the end; a block that no label covers counts as wrong
# unless it was made inside the call during which the peak was reached: then it is that call's temporary.
Result = collections.namedtuple("Result", "total right unknown wrong unlabelled claimed claimed_right truth said rows sub")
SUB_ROWS = ("activations/logits", "activations/kv")  # those that are measured


def category(row):
    return row.split("/")[0]


def blocks_at(vramtrack, recording, moment):
    process = subprocess.run([vramtrack, "blocks", "--at", moment, "--json", str(recording)], capture_output=True,
                             text=True)
    if process.returncode:
        raise RuntimeError(f"vramtrack blocks --at {moment}: {process.stderr.strip()}")
    return [b for b in json.loads(process.stdout)["blocks"] if b["origin"] == "allocator" and b["device"] >= 0]


def truth_of(block, labels, workspaces, peak):
    label = labels.get(block["address"])
    if label and label[0] <= block["size"]:
        return label[1]
    if workspaces.get(block["address"]) == block["size"]:
        return ["workspace"]
    if peak and not peak["optimizer"]:
        # Made in the middle of one call or one node, and gone before it returned.
        return ["workspace", "activations/backward", "attention"] if "Backward" in peak["where"] else ["workspace"]
    return ["workspace", "optimizer_state"] if peak else None


def compare(blocks, labels, workspaces, peak=None, verbose=False):
    """Bytes, by what is true and what was said."""
    labels = {int(a): v for a, v in labels.items()}
    counts = dict.fromkeys(Result._fields[:7], 0)
    truth, said = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    exact = collections.defaultdict(collections.Counter)  # the best row -> the row that was given
    sub = collections.Counter()  # (the true row, the row that was given)
    missed = collections.Counter()
    for block in blocks:
        size = block["size"]
        answer = block["category"]
        rows = truth_of(block, labels, workspaces, peak)
        right = rows is not None and answer in map(category, rows)
        row = answer + (f"/{block['sub_row']}" if block["sub_row"] else "")
        if rows is not None:
            # The best row is the truth where it is one of those; else one that was given may be right as well.
            best = rows[0] if rows[0] in SUB_ROWS or row not in rows else row
            sub[best, row] += size
        # Several rows may be right: then the one that was given stands for the truth.
        true = "unlabelled" if rows is None else answer if right else category(rows[0])
        counts["total"] += size
        counts["right" if right else "unknown" if answer == "other" else "wrong"] += size
        counts["unlabelled"] += size if rows is None else 0
        if block["confidence"] >= 0.9:
            counts["claimed"] += size
            counts["claimed_right"] += size if right else 0
        if rows is not None:
            exact[rows[0]][row] += size
        truth[true][answer] += size
        said[answer][true] += size
        if not right:
            how = labels.get(block["address"], [0, 0, "?"])[2]
            missed[(rows[0] if rows else "unlabelled", how, answer, block["sub_row"], block["reason"],
                    block["confidence"])] += size
    if verbose:
        for key, size in missed.most_common(8):
            print(f"      {size / 2**20:9.2f} MiB", *key, sep=" | ")
    return Result(**counts, truth=truth, said=said, rows=exact, sub=sub)


def kv_bytes(blocks):
    """What was asked for, or, where that is unknown, what the blocks take."""
    return sum(b["requested"] or b["size"] for b in blocks if b["category"] == "kv_cache")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vramtrack")
    parser.add_argument("truth")
    parser.add_argument("recording")
    options = parser.parse_args()
    with open(options.truth) as file:
        known = json.load(file)
    moments = [("mark:" + m["name"], m["labels"], None) for m in known["marks"]]
    moments.append(("allocated-peak", known["peak"]["labels"], known["peak"]))
    for moment, labels, peak in moments:
        result = compare(blocks_at(options.vramtrack, options.recording, moment), labels, dict(known["blas"]), peak, True)
        print(f"{moment:16} {100 * result.right / max(result.total, 1):6.2f} % of {result.total / 2**20:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
