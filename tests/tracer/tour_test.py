#!/usr/bin/env python3
"""The tracer on victim_tour, compared with two witnesses that are not the tracer: what the program says it asked
for and got, and the totals of the simulated GPU after each call.

The ledger here is written for this test alone; it shares nothing with the analyzer's.
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

ALLOC, FREE_BEGIN, FREE_END, HANDLE, RELEASE, MAP, UNMAP = 1, 2, 3, 4, 5, 6, 7
POOL_DESTROY, POOL_RESERVED, IMPORT, FAILED, RETAIN, KERNEL = 11, 12, 13, 22, 23, 80
MEMORY = {1: "device", 2: "managed", 3: "pinned", 4: "registered", 5: "array", 6: "pool", 7: "graph",
          11: "module"}
GRAPH_POOL = 1 << 63

SEQUENTIAL = ["device-memory", "nested-frames", "async-pools", "virtual-memory", "second-mapping", "managed-memory",
              "pinned-memory", "arrays", "graph-memory", "failing-request", "leak"]
UNTOUCHED = ["misuse", "errors-per-thread", "null-arguments", "device-reset"]
CONCURRENT = ["several-threads", "several-streams"]


class Ledger:
    """What the driver handed out, by the events of a trace."""

    def __init__(self):
        self.live = {}  # address -> (memory, size)
        self.sums = collections.Counter()
        self.handles = {}  # handle -> [size, references]
        self.mappings = {}  # address -> (size, handle)
        self.pools = {}

    def apply(self, e):
        kind = e["kind"]
        if kind == ALLOC and not e["flags"] & 32:
            self.live[e["address"]] = (MEMORY.get(e["memory"], "other"), e["size"])
            self.sums[MEMORY.get(e["memory"], "other")] += e["size"]
        elif kind == FREE_END and e["result"] == 0 and e["address"] in self.live:
            memory, size = self.live.pop(e["address"])
            self.sums[memory] -= size
        elif kind == HANDLE and MEMORY.get(e["memory"]) == "device":
            self.handles[e["object"]] = [e["size"], 1]
        elif kind == RETAIN:
            self.handles[e["object"]][1] += 1
        elif kind == RELEASE:
            self.handles[e["object"]][1] -= 1
        elif kind == MAP:
            self.mappings[e["address"]] = (e["size"], e["object"])
        elif kind == UNMAP:
            begin, end = e["address"], e["address"] + e["size"]
            self.mappings = {a: m for a, m in self.mappings.items() if not begin <= a < end}
        elif kind == POOL_RESERVED:
            self.pools[e["object"]] = e["size"]
        elif kind == POOL_DESTROY:
            self.pools.pop(e["object"], None)

    def totals(self):
        mapped = {handle for _, handle in self.mappings.values()}
        return {"device": self.sums["device"], "array": self.sums["array"], "managed": self.sums["managed"],
                "pinned": self.sums["pinned"], "registered": self.sums["registered"],
                "pool_reserved": sum(size for pool, size in self.pools.items() if pool < GRAPH_POOL),
                "graph": sum(size for pool, size in self.pools.items() if pool >= GRAPH_POOL),
                "vmm": sum(size for handle, (size, references) in self.handles.items()
                           if references > 0 or handle in mapped)}


class Test(ProgramTest):
    def run(self, subject):
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, LD_PRELOAD=self.options.tracer, SIMGPU="8GiB", VRAMTRACK_OUTPUT=folder + "/")
            if self.options.preload:
                environment["LD_PRELOAD"] = ":".join([self.options.tracer] + self.options.preload)
            done = subprocess.run([self.options.victim, subject], capture_output=True, text=True, env=environment,
                                  timeout=120)
            self.check(f"{subject}: exit code", done.returncode, 0)
            witness = [json.loads(line) for line in done.stdout.splitlines()]
            traces = [p for p in pathlib.Path(folder).glob("*.vrt") if not p.is_symlink()]
            self.check(f"{subject}: traces", len(traces), 1)
            if len(traces) != 1:
                return witness, [], {}
            dump = subprocess.run([self.options.dump, traces[0]], capture_output=True, text=True, check=True)
            lines = [json.loads(line) for line in dump.stdout.splitlines()]
            return witness, lines[1:], lines[0]

    def match(self, call, event):
        """Whether the event is the trace of what the witness calls `call`."""
        address = int(call["address"], 16)
        if call["event"] == "fail":
            return event["kind"] == FAILED and event["api"] == call["api"]
        if call["event"] == "alloc":
            if event["kind"] == HANDLE:
                return call["kind"] == "vmm" and event["size"] == call["bytes"]
            return event["kind"] == ALLOC and event["address"] == address
        if call["kind"] == "vmm":
            if call["api"] != "cuMemRelease":
                return event["kind"] == UNMAP and event["address"] == address
            return event["kind"] == RELEASE and event["object"] == address and event["last"]
        return event["kind"] == FREE_END and event["address"] == address and event["result"] == 0

    def sequential(self, subject):
        witness, events, info = self.run(subject)
        releases = {e["object"]: e for e in events if e["kind"] == RELEASE}
        for e in events:
            e["last"] = releases.get(e["object"]) is e
        ledger = Ledger()
        position = 0
        for call in witness:
            if call["event"] not in ("alloc", "free", "fail"):
                continue
            start = position
            while position < len(events) and not self.match(call, events[position]):
                position += 1
            self.check(f"{subject}: {call['event']} of {call['bytes']} bytes by {call['api']} is recorded",
                       position < len(events), True)
            if position == len(events):
                position = start
                continue
            event = events[position]
            position += 1
            # What the same call changed besides.
            while position < len(events) and events[position]["kind"] == POOL_RESERVED and \
                    events[position]["api"] == call["api"]:
                position += 1
            for e in events[start:position]:
                ledger.apply(e)
            if call["event"] == "alloc":
                self.check(f"{subject}: bytes of {call['api']}", event["size"], call["bytes"])
                self.check(f"{subject}: api", event["api"], call["api"])
                self.check(f"{subject}: {call['api']} has a stack", event["stack"] != 0, True)
            totals = ledger.totals()
            for name, bytes_ in totals.items():
                self.check(f"{subject}: {name} after {call['event']} of {call['bytes']} by {call['api']}", bytes_,
                           call["usage"][name])
        self.check(f"{subject}: dropped", info.get("dropped"), 0)
        self.check(f"{subject}: simulated", info.get("simulated"), True)

    def concurrent(self, subject):
        witness, events, _ = self.run(subject)

        def calls(kind):
            return collections.Counter((c["api"], int(c["address"], 16), c["bytes"]) for c in witness
                                       if c["event"] == kind and c["kind"] != "vmm")
        traced = collections.Counter((e["api"], e["address"], e["size"]) for e in events if e["kind"] == ALLOC)
        self.check(f"{subject}: allocations", traced, calls("alloc"))
        freed = collections.Counter((e["api"], e["address"]) for e in events
                                    if e["kind"] == FREE_END and e["result"] == 0)
        self.check(f"{subject}: frees", freed,
                   collections.Counter((api, address) for api, address, _ in calls("free").elements()))

    def untouched(self, subject):
        """What a program does wrong, or asks for with null, it gets the same answers to."""
        def answers(preload):
            with tempfile.TemporaryDirectory() as folder:
                environment = dict(os.environ, LD_PRELOAD=":".join(preload), SIMGPU="2x 8GiB", VRAMTRACK_QUIET="1")
                done = subprocess.run([self.options.victim, subject], capture_output=True, text=True, cwd=folder,
                                      env=environment, timeout=120)
            return done.returncode, done.stderr, re.sub(r'"address":"\w+"|"(thread|process)":\d+', "", done.stdout)
        self.check(f"{subject}: answers", answers([self.options.tracer] + self.options.preload),
                   answers(self.options.preload))

    def two_processes(self):
        """Memory that was opened through IPC is counted by its owner alone."""
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, LD_PRELOAD=":".join([self.options.tracer] + self.options.preload),
                               SIMGPU="8GiB", VRAMTRACK_OUTPUT=folder + "/", VRAMTRACK_QUIET="1")
            subprocess.run([self.options.victim, "shared-between-processes"], capture_output=True, env=environment,
                           timeout=120, check=True)
            allocated, imported = [], []
            for trace in pathlib.Path(folder).glob("*.vrt"):
                if trace.is_symlink():
                    continue
                dump = subprocess.run([self.options.dump, trace], capture_output=True, text=True, check=True).stdout
                events = [json.loads(line) for line in dump.splitlines()[1:]]
                allocated.append(sum(e["size"] for e in events if e["kind"] == ALLOC))
                imported.append(sum(e["size"] for e in events if e["kind"] == IMPORT))
        self.check("IPC: allocated, by process", sorted(allocated), [0, 8 << 20])
        self.check("IPC: imported, by process", sorted(imported), [0, 8 << 20])

    def two_devices(self):
        """An event is of the device that its call concerned."""
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, LD_PRELOAD=":".join([self.options.tracer] + self.options.preload),
                               SIMGPU="2x 8GiB", VRAMTRACK_OUTPUT=folder + "/", VRAMTRACK_QUIET="1")
            subprocess.run([self.options.victim, "two-devices"], capture_output=True, env=environment, timeout=120,
                           check=True)
            trace = next(p for p in pathlib.Path(folder).glob("*.vrt") if not p.is_symlink())
            dump = subprocess.run([self.options.dump, trace], capture_output=True, text=True, check=True).stdout
        events = [json.loads(line) for line in dump.splitlines()[1:]]
        self.check("two devices", sorted(e["device"] for e in events if e["kind"] == ALLOC), [0, 1])

    def early(self, program):
        """Memory that a library takes before main and gives back after it."""
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, LD_PRELOAD=self.options.tracer, SIMGPU="8GiB", VRAMTRACK_OUTPUT=folder + "/",
                               VRAMTRACK_QUIET="1")
            self.check("early: exit", subprocess.run([program], env=environment, timeout=60).returncode, 0)
            traces = [p for p in pathlib.Path(folder).glob("*.vrt") if not p.is_symlink()]
            self.check("early: traces", len(traces), 1)
            dump = subprocess.run([self.options.dump, *traces], capture_output=True, text=True, check=True).stdout
        events = [json.loads(line) for line in dump.splitlines()[1:]]
        self.check("early: allocations", [(e["api"], e["size"]) for e in events if e["kind"] == ALLOC],
                   [("cudaMalloc", 1 << 20)])
        self.check("early: frees", [(e["api"], e["result"]) for e in events if e["kind"] == FREE_END], [("cudaFree", 0)])

    def kernels(self):
        """The kernel that follows an allocation is recorded, with the name that the compiler gave it."""
        _, events, _ = self.run("kernels")
        names = {e["text"] for e in events if e["kind"] == KERNEL}
        self.check("kernels: a name is recorded", bool(names) and "" not in names, True)
        witness, events, _ = self.run("device-variables")
        end = next(line for line in reversed(witness) if "usage" in line)
        ledger = Ledger()
        for e in events:
            if e["kind"] == 18 or e["api"] == "cuLibraryUnload":
                continue  # the program's end unloads, after the witness spoke
            ledger.apply(e)
        self.check("bytes of variables", ledger.sums["module"], end["usage"]["module"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tracer", required=True)
    parser.add_argument("--dump", required=True)
    parser.add_argument("--victim", required=True)
    parser.add_argument("--preload", nargs="*", default=[], help="stand-ins, where the victim does not find them")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--early", help="early_program")
    options = parser.parse_args()
    test = Test(options)
    for subject in SEQUENTIAL:
        test.sequential(subject)
    for subject in CONCURRENT:
        test.concurrent(subject)
    for subject in UNTOUCHED:
        test.untouched(subject)
    test.two_devices()
    test.two_processes()
    if options.early:
        test.early(options.early)
    if options.kernels:
        test.kernels()
    for failure in test.failures[:40]:
        print(failure)
    print(f"{test.checks} checks, {len(test.failures)} failed")
    return 1 if test.failures or test.checks == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
