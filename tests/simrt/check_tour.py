#!/usr/bin/env python3
"""Runs subjects of victim_tour on the simulated GPU, without any tracer.

The victim says what it asked for and what it got (tests/victims/witness.h); each of its lines also carries the
simulated GPU's own totals. Both accounts are kept apart and compared line by line here:

* what a line calls expected is what it got;
* the totals are the sum of what the victim says is live, kind by kind;
* the device's `used` is the sum of its parts.

    check_tour.py VICTIM [--subject NAME] [--leaves BYTES] [--managed-variables BYTES] [--preload LIBRARIES] [--simgpu SPEC]
"""

import argparse
import collections
import json
import os
import subprocess
import sys

# Keys under which a line gives what it got, beside "expected".
RESULTS = ("is", "equal", "read", "caught", "result")
# Kinds whose bytes are the driver's exactly as asked for.
EXACT = ("device", "vmm", "managed", "pinned", "registered")
PARTS = ("device", "pool_reserved", "vmm", "array", "graph", "module", "context", "library")


class Mismatch(Exception):
    pass


def run(victim, subject, preload, simgpu):
    environment = dict(os.environ, SIMGPU=simgpu)
    environment.pop("LD_LIBRARY_PATH", None)
    environment.pop("LD_PRELOAD", None)
    if preload:
        environment["LD_PRELOAD"] = preload
    done = subprocess.run(
        [victim, subject], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120
    )
    if done.returncode != 0 or done.stderr:
        raise Mismatch(f"exit {done.returncode}, stderr: {done.stderr.decode(errors='replace')}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if not lines:
        raise Mismatch("the victim said nothing")
    return lines


def check_expected(line):
    if "expected" not in line:
        return 0
    got = [line[key] for key in RESULTS if key in line]
    if got != [line["expected"]]:
        raise Mismatch(f"expected {line['expected']}, got {got}")
    return 1


class Account:
    """What the victim says is live."""

    def __init__(self):
        self.live = {}
        self.bytes = collections.Counter()
        self.mapped_only = 0  # handles that were released while mapped

    def add(self, line):
        kind, address = line.get("kind"), line.get("address")
        if line["event"] == "alloc":
            held = self.live.setdefault((kind, address), [])
            # Another thread may have freed it and not have said so yet: a line follows its call.
            if any(thread == line.get("thread") for thread, _ in held):
                raise Mismatch(f"{kind} {address} is live already")
            held.append((line.get("thread"), line["bytes"]))
            self.bytes[kind] += line["bytes"]
        elif line["event"] == "free":
            held = self.live.get((kind, address), [])
            # Its own, where this thread has one: another's line may still be to come.
            own = [n for n, (thread, _) in enumerate(held) if thread == line.get("thread")] or [0]
            self.bytes[kind] -= held.pop(own[0])[1] if held else line["bytes"]
            if not held:
                self.live.pop((kind, address), None)
        elif line["event"] == "reset":
            self.live.clear()
            self.bytes.clear()


def check_totals(line, account, simultaneous, managed_variables):
    usage = line.get("usage")
    if usage is None:
        raise Mismatch("the simulated GPU gave no totals")
    if usage["used"] != sum(usage[part] for part in PARTS):
        raise Mismatch("used is not the sum of its parts")
    if simultaneous:
        return
    for kind in EXACT:
        # A program's own managed variables are there from the first kernel on.
        more = managed_variables if kind == "managed" else 0
        if usage[kind] - account.bytes[kind] not in (0, more):
            raise Mismatch(f"{kind}: the victim has {account.bytes[kind]}, simgpu {usage[kind]}")
    if not usage["pool_reserved"] >= usage["pool_used"] >= account.bytes["pool"]:
        raise Mismatch(f"pool: the victim has {account.bytes['pool']}, simgpu {usage}")
    if usage["array"] < account.bytes["array"]:
        raise Mismatch(f"array: the victim has {account.bytes['array']}, simgpu {usage['array']}")


def check(lines, leaves, several_at_once, managed_variables):
    """Returns how many lines and expectations were compared."""
    account = Account()
    expectations = 0
    first_process = next((line["process"] for line in lines if "process" in line), None)
    for line in lines:
        try:
            expectations += check_expected(line)
            # A second process has totals of its own; a second device is watched in its turn.
            if line.get("process", first_process) == first_process:
                account.add(line)
                check_totals(line, account, several_at_once, managed_variables)
        except Mismatch as error:
            raise Mismatch(f"{error}\n  in {json.dumps(line)}") from None
    # By the end every thread has said what it freed: an address that is still held twice was given twice.
    twice = [key for key, held in account.live.items() if len(held) > 1]
    if twice:
        raise Mismatch(f"handed out twice: {twice}")
    last = lines[-1]["usage"]
    if account.bytes["device"] != leaves or last["device"] != leaves:
        raise Mismatch(f"{leaves} bytes should be left: {account.bytes['device']}, {last['device']}")
    for kind in ("pool_reserved", "vmm", "array", "graph", "managed", "pinned", "registered"):
        more = managed_variables if kind == "managed" else 0
        if last[kind] not in (0, more):
            raise Mismatch(f"{kind} is left at the end: {last[kind]}")
    return len(lines), expectations


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("victim")
    parser.add_argument("--subject", default="all")
    parser.add_argument("--leaves", type=int, default=0)
    parser.add_argument("--managed-variables", type=int, default=0)
    parser.add_argument("--preload", default="")
    parser.add_argument("--simgpu", default="8GiB")
    options = parser.parse_args()
    try:
        lines = run(options.victim, options.subject, options.preload, options.simgpu)
        several_at_once = options.subject in ("all", "several-threads", "kernel-threads", "two-devices",
                                              "shared-between-processes")
        compared, expectations = check(lines, options.leaves, several_at_once,
                                       options.managed_variables)
    except Mismatch as error:
        print(f"{options.subject}: {error}", file=sys.stderr)
        return 1
    print(f"{options.subject}: {compared} lines agree with the totals, {expectations} expectations hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
