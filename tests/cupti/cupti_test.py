#!/usr/bin/env python3
"""`run --cupti` and `audit` on programs whose doings are known: the victims' tours, a planted miss, programs that
use CUPTI themselves, and machines on which there is none.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from checks import ProgramTest  # noqa: E402

NOTE, CALL, KERNEL = 116, 115, 114
STARTED, STEPPED_ASIDE, ENDED, UNAVAILABLE = 1, 2, 3, 4
MEMORY = {"device", "managed", "pinned", "array", "pool"}  # of which CUPTI has records


class Test(ProgramTest):
    def run(self, command, cupti="on", preload=(), tracer=True, **variables):
        """stdout, stderr, events, audit (None where it refuses)."""
        with tempfile.TemporaryDirectory() as folder:
            libraries = ([self.options.tracer] if tracer else []) + list(preload)
            environment = dict(os.environ, LD_PRELOAD=":".join(libraries), SIMGPU="8GiB",
                               VRAMTRACK_OUTPUT=folder + "/", VRAMTRACK_CUPTI=cupti, **variables)
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment,
                                  timeout=120)
            self.check(f"{command}: exit", done.returncode, 0)
            traces = [p for p in pathlib.Path(folder).glob("*.vrt") if not p.is_symlink()]
            if not traces:
                return done.stdout, done.stderr, [], None
            self.check(f"{command}: traces", len(traces), 1)
            dump = subprocess.run([self.options.dump, traces[0]], capture_output=True, text=True, check=True).stdout
            events = [json.loads(line) for line in dump.splitlines()[1:]]
            subprocess.run([self.options.vramtrack, "symbolize", traces[0]], capture_output=True, check=True)
            audit = subprocess.run([self.options.vramtrack, "audit", "--json", traces[0]], capture_output=True,
                                   text=True)
            text = subprocess.run([self.options.vramtrack, "audit", traces[0]], capture_output=True, text=True)
            self.check(f"{command}: text and JSON agree on the exit", text.returncode, audit.returncode)
            self.text = text.stdout
            for line in text.stdout.splitlines():
                self.check(f"{command}: width of {line!r}", len(line) <= 92, True)
            if audit.returncode == 0:
                return done.stdout, done.stderr, events, json.loads(audit.stdout)
            self.check(f"{command}: a refusal is 2", audit.returncode, 2)
            self.check(f"{command}: a refusal is one line", len(audit.stderr.splitlines()), 1)
            self.refusal = audit.stderr
            return done.stdout, done.stderr, events, None

    def notes(self, events):
        return [e["result"] for e in events if e["kind"] == NOTE]

    def tour(self, victim, kernels=False):
        """Nothing is missed, and what both saw is what the program says it did."""
        name = pathlib.Path(victim).name
        out, _, events, audit = self.run([victim, "all"])
        witness = [json.loads(line) for line in out.splitlines()]
        # Registered memory and memory nodes of graphs are known exceptions; the program knows its own.
        done = collections.Counter((call["event"], call["kind"]) for call in witness
                                   if call["event"] in ("alloc", "free") and int(call["bytes"]) > 0)
        self.check(f"{name}: missed", audit["missed"], 0)
        self.check(f"{name}: missed, listed", (audit["only_hooks"], audit["only_cupti"], audit["unseen_calls"]),
                   ([], [], []))
        self.check(f"{name}: notes", self.notes(events), [STARTED, ENDED])
        self.check(f"{name}: allocations", audit["allocations_seen_by_both"],
                   sum(n for (event, kind), n in done.items() if event == "alloc" and kind in MEMORY))
        self.check(f"{name}: some exceptions", {e["what"].split()[0] for e in audit["exceptions"]} >=
                   {"virtual", "registered", "memory"}, True)
        self.check(f"{name}: says that it is simulated", "SIMULATED" in self.text, True)
        if kernels:
            self.check(f"{name}: kernels have names", all(e["text"] for e in events if e["kind"] == KERNEL), True)
            self.check(f"{name}: kernels", audit["kernels"] > 0, True)

    def planted_miss(self, host, plugin):
        out, _, events, audit = self.run([host, "hidden", plugin])
        self.check("hidden: the program", out, "hidden 0\n")
        self.check("hidden: by the hooks", len(audit["only_hooks"]), 0)
        self.check("hidden: by CUPTI", [(o["operation"], o["size"], o["api"], o["library"])
                                        for o in audit["only_cupti"]],
                   [("alloc", 7 << 20, "cuMemAlloc_v2", pathlib.Path(plugin).name),
                    ("free", 7 << 20, "cuMemFree_v2", pathlib.Path(plugin).name),
                    ("alloc", 7 << 20, "cuMemAlloc_v2", pathlib.Path(plugin).name)])
        self.check("hidden: the function is named", any("hidden_allocation" in frame
                                                        for frame in audit["only_cupti"][0]["frames"]), True)
        self.check("hidden: seen by both", audit["allocations_seen_by_both"], 2 * 42)
        self.check("hidden: verdict", self.text.splitlines()[0].startswith("MISSED: 3 by the hooks, 0 by CUPTI"), True)

    def profiler(self, host, plugin):
        for mode in ("late", "looked-up", "first"):
            alone = self.run([host, mode, plugin], tracer=False)[0]
            self.check(f"{mode}: the program gets records", alone.count("memory 1 "), 42)
            watched, errors, events, audit = self.run([host, mode, plugin])
            self.check(f"{mode}: the program's own records", watched, alone)
            self.check(f"{mode}: one line", errors.count("--cupti"), 1 if mode == "first" else 0)
            if mode == "first":
                self.check("first: note", self.notes(events), [UNAVAILABLE])
                self.check("first: refusal", "uses CUPTI itself" in self.refusal, True)
                continue
            self.check(f"{mode}: notes", self.notes(events), [STARTED, STEPPED_ASIDE])
            self.check(f"{mode}: missed", audit["missed"], 0)
            self.check(f"{mode}: before the program's profile", audit["allocations_seen_by_both"], 42)
            self.check(f"{mode}: from then on", audit["outside_the_witness_time"] > 0, True)
            self.check(f"{mode}: said", audit["witness"]["stepped_aside"], True)
        alone = self.run([host, "foreign", plugin], tracer=False)[0]
        watched, errors, events, _ = self.run([host, "foreign", plugin])
        self.check("foreign: output", watched, alone)
        self.check("foreign: one line", len(re.findall("--cupti: .*another tool has subscribed", errors)), 1)
        self.check("foreign: memory is traced all the same", sum(e["kind"] == 1 for e in events), 42)

    def missing(self, victim, real):
        """One line, and the trace is as good as without the option."""
        plain = self.run([victim, "device-memory"], cupti="off")[2]

        def kinds(events):
            return collections.Counter(e["kind"] for e in events if e["kind"] < 100)
        for name, library in [("no such file", "/nowhere/libcupti.so.13")] + [("NVIDIA's", path) for path in real]:
            _, errors, events, audit = self.run([victim, "device-memory"], cupti=library)
            self.check(f"{name}: one line", errors.count("tracing goes on without it"), 1)
            self.check(f"{name}: events", kinds(events), kinds(plain))
            self.check(f"{name}: notes", self.notes(events), [UNAVAILABLE])
            self.check(f"{name}: audit", audit, None)
        self.check("without --cupti: audit", self.run([victim, "device-memory"], cupti="off")[3], None)
        self.check("without --cupti: what to do", "--cupti" in self.refusal, True)

    def without_driver(self, host, real):
        for library in real:
            alone = self.run([host, library], tracer=False)[0]
            self.check(f"{library}: it fails", "subscribe 0" in alone, False)
            self.check(f"{library}: answers", self.run([host, library])[0], alone)

    def hollow_driver(self, host, real):
        """NVIDIA's own library refuses a driver that is none, after the tracer has asked it."""
        for library in real:
            out, errors, events, audit = self.run([host], cupti=library)
            self.check(f"{library}: the program", out, "init 0\nalloc 0\n")
            self.check(f"{library}: one line", errors.count("tracing goes on without it"), 1)
            self.check(f"{library}: CUPTI's reason", "CUPTI_ERROR" in errors, True)
            self.check(f"{library}: allocations", sum(e["kind"] == 1 for e in events), 1)
            self.check(f"{library}: audit", audit, None)


def main():
    parser = argparse.ArgumentParser()
    for name in ("tracer", "dump", "vramtrack", "host", "plugin", "real-host", "hollow-host"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--victims", nargs="+", default=[])
    parser.add_argument("--real", nargs="*", default=[], help="NVIDIA's libcupti, where this machine has it")
    parser.add_argument("--kernels", action="store_true")
    options = parser.parse_args()
    real = [path for path in options.real if os.path.exists(path)]
    test = Test(options)
    for victim in options.victims:
        test.tour(victim, options.kernels and "12" not in victim)
    test.planted_miss(options.host, options.plugin)
    test.profiler(options.host, options.plugin)
    test.missing(options.victims[0], real)
    test.without_driver(options.real_host, real)
    test.hollow_driver(options.hollow_host, real)
    for failure in test.failures[:40]:
        print(failure)
    print(f"{test.checks} checks, {len(test.failures)} failed; {len(real)} of NVIDIA's libraries tried")
    return 1 if test.failures or test.checks == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
