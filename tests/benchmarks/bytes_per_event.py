#!/usr/bin/env python3
"""What a day of full recording takes on the disk: bytes per event of a real PyTorch training job.

  bytes_per_event.py --vramtrack build/install/bin/vramtrack [--steps 400] [--python PYTHON]

Runs tests/longjobs/training_job.py on the simulated GPU twice, once for a quarter of the steps. The difference of the
two is what steps cost; stacks, names and start-up are paid once. A day is extrapolated from it.
"""
import argparse
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

EVENTS_PER_SECOND = 20_000
JOB = pathlib.Path(__file__).resolve().parent.parent / "longjobs" / "training_job.py"


def chunk_bytes(path):
    """Bytes of all frames that hold chunks, their headers included."""
    data = path.read_bytes()
    frames_offset = struct.unpack_from("<Q", data, 40)[0]
    offset, total = frames_offset, 0
    while offset + 24 <= len(data):
        magic, kind, _, stored, _, _, _ = struct.unpack_from("<IHHIIII", data, offset)
        if magic != 0x454D5246:
            offset += 8
            continue
        if kind == 1:
            total += 24 + stored
        offset = (offset + 24 + stored + 7) // 8 * 8
    return total


def measure(options, folder, steps):
    path = folder / f"{steps}.vrt"
    subprocess.run([options.vramtrack, "run", "-o", path, "--simulate", "h100-80g", "--stop-after-steps", "0", "--",
                    options.python, JOB, str(steps), "--leak", "--layers", str(options.layers)], check=True,
                   stderr=subprocess.DEVNULL)
    check = json.loads(subprocess.run([options.vramtrack, "check", path, "--json"], check=True, capture_output=True,
                                      text=True).stdout)
    return check["events"], chunk_bytes(path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramtrack", required=True)
    parser.add_argument("--python", default=os.environ.get("VRAMTRACK_PYTHON", sys.executable))
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--layers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        few_events, few_bytes = measure(options, pathlib.Path(folder), options.steps // 4)
        events, size = measure(options, pathlib.Path(folder), options.steps)
    each = (size - few_bytes) / (events - few_events)
    day = each * EVENTS_PER_SECOND * 86400
    print(f"{events} events in {options.steps} steps; {each:.2f} bytes for each event")
    print(f"extrapolated: a day at {EVENTS_PER_SECOND} events per second takes {day / 1e9:.1f} GB")


if __name__ == "__main__":
    main()
