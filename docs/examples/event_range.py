"""How much of a job's memory depends on when the GPU's events complete.

A block that other streams used waits, after it is freed, for their events. On the simulated GPU these
complete at once, or late and in an order that a seed decides. This runs a program once with the first
and with several seeds of the second, and prints the peaks and their range. A program of one stream
has a range of zero.

usage: event_range.py [--seeds N] [--card SPEC] [--vramtrack PATH] [--json FILE] -- program arguments...
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

MIB = 1024 ** 2
PEAKS = ("allocated_peak", "reserved_peak")


def run(options, events, folder):
    """The peaks of each device of each process of one run."""
    output = folder / events.replace(":", "-")
    command = [options.vramtrack, "run", "--simulate", options.card, "--events", events,
               "--stop-after-steps", str(options.stop_after_steps), "-o", f"{output}/", "--", *options.program]
    done = subprocess.run(command)
    if done.returncode != 0:
        sys.exit(f"event_range: the program ended with {done.returncode} when events complete {events}")
    rows = {}
    traces = sorted((t for t in output.glob("*.vrt") if not t.is_symlink()), key=lambda t: t.stat().st_mtime_ns)
    for process, trace in enumerate(traces):
        text = subprocess.run([options.vramtrack, "report", trace, "--json"], capture_output=True, text=True, check=True)
        for device in json.loads(text.stdout)["devices"]:
            if device["device"] >= 0:
                rows[process, device["device"]] = [device[PEAKS[0]]["allocated_bytes"],
                                                   device[PEAKS[1]]["reserved_bytes"]]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="how many seeds (default: %(default)s)")
    parser.add_argument("--card", default="h100-80g")
    parser.add_argument("--stop-after-steps", type=int, default=3)
    parser.add_argument("--vramtrack", default="vramtrack")
    parser.add_argument("--json", help="write the numbers there as well")
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    runs = {}
    with tempfile.TemporaryDirectory() as folder:
        for events in ["at-once"] + [f"late:{seed}" for seed in range(1, options.seeds + 1)]:
            runs[events] = run(options, events, Path(folder))
    results = []
    for process, device in sorted(set().union(*runs.values())):
        found = {events: rows[process, device] for events, rows in runs.items() if (process, device) in rows}
        print(f"\nprocess {process}, device {device}\n")
        print("| events complete | allocated peak MiB | reserved peak MiB |\n| --- | ---: | ---: |")
        for events, peaks in found.items():
            print(f"| {events} | " + " | ".join(f"{bytes / MIB:.1f}" for bytes in peaks) + " |")
        ranges = [max(p) - min(p) for p in zip(*found.values())]
        print("| range | " + " | ".join(f"{bytes / MIB:.1f}" for bytes in ranges) + " |")
        results.append({"process": process, "device": device, "runs": found, "range": ranges})
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
