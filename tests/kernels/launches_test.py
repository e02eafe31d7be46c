#!/usr/bin/env python3
"""Every launch, copy and set of a CUDA program is in the trace with exactly the memory that the program says it
gave it, whatever the way in which it was launched and however the program's device code is packed."""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from checks import ProgramTest  # noqa: E402

KERNEL, COPY, SET, ACCESS, GRAPH_LAUNCH = 80, 81, 82, 83, 84
GRAPH_NODE = 256


def demangled(names):
    names = sorted(names)
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    plain = [line.split("(")[0].removeprefix("void ") for line in text.splitlines()]
    return dict(zip(names, plain))


class Test(ProgramTest):
    def run(self, program, kernels):
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, LD_PRELOAD=self.options.tracer, SIMGPU="8GiB", VRAMTRACK_QUIET="1",
                               VRAMTRACK_OUTPUT=folder + "/", VRAMTRACK_KERNELS=kernels)
            done = subprocess.run([program], capture_output=True, text=True, env=environment, timeout=120)
            self.check(f"{program}: exit code", (done.returncode, done.stderr), (0, ""))
            traces = [p for p in pathlib.Path(folder).glob("*.vrt") if not p.is_symlink()]
            dump = subprocess.run([self.options.dump, *traces], capture_output=True, text=True, check=True)
        witness = [json.loads(line) for line in done.stdout.splitlines()]
        events = [json.loads(line) for line in dump.stdout.splitlines()][1:]
        return witness, events

    def everything(self, program):
        name = pathlib.Path(program).name
        witness, events = self.run(program, "on")
        names = demangled({e["text"] for e in events if e["text"]})
        main = events[0]["thread"]

        def told(e):
            node = "node" if e["flags"] & GRAPH_NODE else ""
            if e["kind"] == ACCESS:
                return (node or "launch", names.get(e["text"], ""), 0, e["accesses"])
            if e["kind"] == COPY:
                return ((node + "-" if node else "") + "copy", "", e["size"], [e["address"], e["extra"]])
            if e["kind"] == SET:
                return ((node + "-" if node else "") + "set", "", e["size"], [e["address"]])
            return ("graph-launch", "", 0, [])

        work = [e for e in events if e["kind"] in (COPY, SET, ACCESS, GRAPH_LAUNCH)]
        got = [told(e) for e in work if e["thread"] == main]
        said = [(w["what"], w["name"], w["size"], w["addresses"]) for w in witness if w["what"] != "thread-launch"]
        self.check(f"{name}: number of launches, copies, sets", len(got), len(said))
        for number, (one, other) in enumerate(zip(got, said)):
            self.check(f"{name}: {number}", one, other)
        threads = collections.Counter(str(told(e)) for e in work if e["thread"] != main)
        wanted = collections.Counter(str(("launch", w["name"], 0, w["addresses"])) for w in witness
                                     if w["what"] == "thread-launch")
        self.check(f"{name}: launches of threads", threads, wanted)
        self.check(f"{name}: of threads", sum(wanted.values()), 800)
        nodes = {e["object"] for e in work if e["flags"] & GRAPH_NODE}
        self.check(f"{name}: graphs launched", {e["object"] for e in work if e["kind"] == GRAPH_LAUNCH}, nodes)

    def names_only(self, program):
        """By default only the launch that follows an allocation is written, and nothing of what it was given."""
        _, events = self.run(program, "names")
        self.check("names: accesses", [e["kind"] for e in events if e["kind"] in (ACCESS, COPY, SET, GRAPH_LAUNCH)], [])
        names = demangled({e["text"] for e in events if e["kind"] == KERNEL})
        self.check("names: the first", [names[e["text"]] for e in events if e["kind"] == KERNEL][:1],
                   ["launches::fill"])
        _, events = self.run(program, "off")
        self.check("off", [e["kind"] for e in events if e["kind"] in (KERNEL, ACCESS)], [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tracer", required=True)
    parser.add_argument("--dump", required=True)
    parser.add_argument("programs", nargs="+")
    options = parser.parse_args()
    test = Test(options)
    for program in options.programs:
        test.everything(program)
    test.names_only(options.programs[0])
    for failure in test.failures[:40]:
        print(failure)
    print(f"{test.checks} checks, {len(test.failures)} failed")
    return 1 if test.failures or test.checks == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
