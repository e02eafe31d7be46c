#!/usr/bin/env python3
"""Runs victim_host in one mode, or all, on the simulated GPU: output and end are those of host_modes.json.

    check_host.py VICTIM_HOST MODES_JSON [--mode NAME] [--preload LIBRARIES]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys


def problems(victim, mode, wanted, preload):
    environment = dict(os.environ, SIMGPU="8GiB")
    environment.pop("LD_PRELOAD", None)
    if preload:
        environment["LD_PRELOAD"] = preload
    try:
        done = subprocess.run(
            [victim, mode], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60
        )
    except subprocess.TimeoutExpired:
        return ["does not end within 60 s"]
    end = -wanted["signal"] if "signal" in wanted else wanted["exit"]
    found = []
    for what, is_, should_be in (
        ("end", done.returncode, end),
        ("stdout", done.stdout.decode(), wanted["stdout"]),
        ("stderr", done.stderr.decode(), wanted.get("stderr", "")),
    ):
        if is_ != should_be:
            found.append(f"{what}: {is_!r} instead of {should_be!r}")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("victim")
    parser.add_argument("modes", type=pathlib.Path)
    parser.add_argument("--mode")
    parser.add_argument("--preload", default="")
    parser.add_argument("--without", default="", help="leave out modes that need this")
    options = parser.parse_args()
    modes = json.loads(options.modes.read_text())
    chosen = [options.mode] if options.mode else sorted(
        mode for mode, wanted in modes.items() if wanted.get("needs", "-") != options.without)
    bad = 0
    for mode in chosen:
        for problem in problems(options.victim, mode, modes[mode], options.preload):
            print(f"{mode}: {problem}", file=sys.stderr)
            bad += 1
    print(f"{len(chosen)} modes, {bad} differences")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
