"""Fits a law to recordings of one program at several lengths, and asks how well all but one predict the one.

Prints a Markdown table, the plot of `vramtrack growth`, and for each length what the others say of it.

usage: published_growth.py [--vramtrack PATH] [--json FILE] NAME=VALUE:FILE ...
"""

import argparse
import json
import subprocess
from pathlib import Path

MIB = 1024 ** 2


def growth(vramtrack, variable, points, *options):
    command = [vramtrack, "growth", *(str(file) for _, file in points), "--by",
               f"{variable}={','.join(str(x) for x, _ in points)}", *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def predictions(vramtrack, variable, points):
    """What all points but one say of the one."""
    rows = []
    for left_out in points:
        rest = [p for p in points if p is not left_out]
        if len(rest) < 3:
            continue
        found = json.loads(growth(vramtrack, variable, rest, "--predict", str(left_out[0]), "--json"))["predictions"][0]
        rows.append({"x": left_out[0], "predicted": found["bytes"], "low": found.get("low_bytes"),
                     "high": found.get("high_bytes"), "tested": found.get("tested")})
    return rows


def parse(argument):
    name, _, rest = argument.partition("=")
    value, _, file = rest.partition(":")
    if not (name and value.isdigit() and file):
        raise argparse.ArgumentTypeError(f"{argument}: wants NAME=VALUE:FILE, as ctx=512:train.pickle")
    return name, int(value), Path(file)


def exponent(row):
    return f"{row['exponent']['value']:.2f}" if row["exponent"] else "-"


def show(variable, table, rows):
    xs = table["x"]
    print(f"| MiB, each at its own highest | {' | '.join(f'{variable} {x:g}' for x in xs)} | exponent |")
    print("| --- |" + " ---: |" * (len(xs) + 1))
    most = table["allocated"]["bytes"][-1]
    for row in [table["allocated"], *table["phases"], *table["categories"]]:
        if max(row["bytes"]) < 0.02 * most:
            continue
        print(f"| {row['name']} | {' | '.join(f'{b / MIB:,.0f}' for b in row['bytes'])} | {exponent(row)} |")
    print(f"\n| {variable} left out | peak, MiB | predicted by the others, MiB | error |\n| ---: | ---: | ---: | ---: |")
    true = dict(zip(xs, table["allocated"]["bytes"]))
    for row in rows:
        peak = true[row["x"]]
        print(f"| {row['x']} | {peak / MIB:,.0f} | {row['predicted'] / MIB:,.0f} ({row['low'] / MIB:,.0f} to "
              f"{row['high'] / MIB:,.0f}){'' if row['tested'] else ', untested law'} | "
              f"{100 * (row['predicted'] - peak) / peak:+.1f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vramtrack", default="vramtrack")
    parser.add_argument("--json", metavar="FILE", help="write the numbers there as well")
    parser.add_argument("points", nargs="+", type=parse, metavar="NAME=VALUE:FILE")
    args = parser.parse_args()
    variable = args.points[0][0]
    points = sorted((x, file) for _, x, file in args.points)
    table = json.loads(growth(args.vramtrack, variable, points, "--json"))
    rows = predictions(args.vramtrack, variable, points)
    for note in table["notes"]:
        print(f"note: {note}\n")
    show(variable, table, rows)
    print("\n```text")
    print("\n".join(line.rstrip() for line in growth(args.vramtrack, variable, points).splitlines()
                    if " |" in line or " +--" in line or line.lstrip().startswith(variable + " 0")))
    print("```")
    if args.json:
        Path(args.json).write_text(json.dumps({"table": table, "predictions": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
