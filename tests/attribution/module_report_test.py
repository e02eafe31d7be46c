#!/usr/bin/env python3
"""`report --by module` and the module names of `blocks`, against hooks on the model's own named_modules().

usage: module_report_test.py VRAMTRACK
Python with PyTorch: VRAMTRACK_PYTHON. Exit status 77 without it.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

VRAMTRACK = os.path.abspath(sys.argv[1])
PYTHON = os.environ.get("VRAMTRACK_PYTHON") or sys.executable
HERE = pathlib.Path(__file__).resolve().parent
failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED:", what)


def vramtrack(*arguments):
    done = subprocess.run([VRAMTRACK, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{arguments}: {done.stderr}")
    return done.stdout


def nodes(trees):
    for node in trees:
        yield node
        yield from nodes(node["children"])


def prefixes(name):
    parts = name.split(".")
    return [".".join(parts[: i + 1]) for i in range(len(parts))]


def summed(name, layers):
    return ".".join("*" if p in layers else p.rpartition(".")[2] for p in prefixes(name))


def check_blocks(trace, truth):
    blocks = json.loads(vramtrack("blocks", trace, "--at", "mark:forward", "--json"))["blocks"]
    blocks = [b for b in blocks if b["device"] == 0 and b["origin"] == "allocator"]
    said = {b["address"]: b["module_name"] for b in blocks}
    expect({b["address"]: b["size"] for b in blocks} == truth["live"], "live blocks are those that the allocator lists")
    for address, name in {**truth["made"], **truth["owners"]}.items():
        if address in truth["live"]:
            expect(said.get(address) == name, f"{address:#x} is of {name}, not {said.get(address)}")
    return blocks


def check_trees(trace, truth, blocks):
    """The sums of each tree, from the names that the witness gave (and from ours where it gave none)."""
    named = {**{b["address"]: b["module_name"] for b in blocks},
             **{a: n for a, n in {**truth["made"], **truth["owners"]}.items() if a in truth["live"]}}
    named = {a: n for a, n in named.items() if n}
    layers = {p for n in named.values() for p in prefixes(n)[:-1] if p.rpartition(".")[2].isdigit()}
    expect(layers == {"blocks.0", "blocks.1", "blocks.2"}, f"layers: {layers}")
    by_layer, in_all = collections.Counter(), collections.Counter()
    for address, name in named.items():
        for path in prefixes(name):
            by_layer[path] += truth["live"][address]
        for path in prefixes(summed(name, layers)):
            in_all[path] += truth["live"][address]
    report = json.loads(vramtrack("report", trace, "--at", "mark:forward", "--by", "module", "--json"))
    device = report["devices"][0]
    for field, wanted in (("modules", by_layer), ("modules_summed", in_all)):
        given = {n["module"]: n for n in nodes(device[field])}
        for path, size in wanted.items():
            expect(path in given and given[path]["bytes"] == size,
                   f"{field} {path}: {given.get(path, {}).get('bytes')} bytes, not {size}")
        for path, node in given.items():
            inner = sum(c["bytes"] for c in node["children"])
            expect(node["bytes"] == inner + node["own_bytes"], f"{path}: its parts do not add up")
            expect(sum(s["bytes"] for s in node["sites"]) == node["own_bytes"], f"{path}: sites do not add up")
        expect(sum(n["bytes"] for n in device[field]) == sum(g["bytes"] for g in device["groups"]),
               f"{field} does not hold everything")
    expect(in_all["blocks.*.attention.qkv"] == 3 * by_layer["blocks.0.attention.qkv"] > 0, "three equal layers")


def check_text(trace):
    text = vramtrack("report", trace, "--at", "mark:forward", "--by", "module", "--top", "40")
    expect("blocks.*.attention.qkv (3 modules)" in text, "the summed row in words")
    expect("blocks.1.attention.qkv" in text, "the row of one layer")
    expect("at train_gpt.py" in text, "rows show call sites")
    rows = [line for line in text.splitlines() if line.strip()[:1].isdigit()]
    expect(len(rows) > 40 and all(len(line) <= 92 for line in rows), "rows of at most 92 columns")
    markdown = vramtrack("report", trace, "--at", "mark:forward", "--by", "module", "--markdown", "--top", "40")
    expect("blocks.\\*.attention.qkv (3 modules)" in markdown, "the summed row in Markdown")
    for by in ("phase", "category", "step"):
        for extra in ((), ("--markdown",)):
            text = vramtrack("report", trace, "--by", by, "--at", "mark:forward", *extra)
            expect("at train" in text, f"--by {by} {extra}: rows show call sites")
    text = vramtrack("report", trace)
    expect("  at train_gpt.py" not in text, "the plain report is not expanded")


def main():
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode:
        print(f"skipped: {PYTHON} has no PyTorch (set VRAMTRACK_PYTHON)")
        return 77
    with tempfile.TemporaryDirectory(prefix="vramtrack-modules-") as folder:
        out = pathlib.Path(folder) / "truth.json"
        vramtrack("run", "--simulate", "h100-80g", "--stop-after-steps", "0", "-o", f"{folder}/", "--allow-writes", folder, "--", PYTHON,
                  HERE / "module_witness.py", out)
        truth = {k: {int(a): v for a, v in values.items()} for k, values in json.loads(out.read_text()).items()}
        trace = next(pathlib.Path(folder).glob("vramtrack.*.vrt"))
        expect(len(truth["made"]) > 40, "the witness saw blocks")
        blocks = check_blocks(trace, truth)
        check_trees(trace, truth, blocks)
        check_text(trace)
    print("failures:", len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
