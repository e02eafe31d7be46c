#!/usr/bin/env python3
"""Who holds the memory when real PyTorch runs out of it on the simulated GPU: `vramtrack oom` and `vramtrack report`
name the line and the way to the tensors, where something keeps more and more of them, and nothing where nothing does.
The witness is the program: it writes down where the tensors of its list lie. And the look harms nothing.

usage: oom_holders_test.py --simgpu DIR --tracer FILE --vramtrack FILE      (VRAMTRACK_PYTHON has PyTorch; else: 77)
"""
import argparse
import gc
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import weakref

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent / "planted"), str(HERE.parents[1] / "support")]
GiB = 1 << 30


# ---- The jobs. Each ends with the error, but for the last one.

class Trainer:
    def __init__(self, torch):
        self.model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024)).cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.history = []

    def step(self, torch, keep):
        batch = torch.empty(1 << 18, 1024, device="cuda")
        output = self.model(batch)  # KEPT by list_of_outputs
        output.square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        if keep:
            self.history.append(output.detach())


def list_of_outputs(torch, tell):
    trainer = Trainer(torch)
    try:
        while True:
            trainer.step(torch, True)
    except torch.OutOfMemoryError:
        tell(lies_at=[tensor.data_ptr() for tensor in trainer.history])
        raise


def cache_without_steps(torch, tell):
    answers = {}
    model = torch.nn.Linear(4096, 4096, device="cuda")
    try:
        with torch.no_grad():
            for request in range(1000):
                answers[request] = model(torch.empty(1 << 17, 4096, device="cuda"))  # KEPT by cache_without_steps
    except torch.OutOfMemoryError:
        tell(lies_at=[answer.data_ptr() for answer in answers.values()])
        raise


def batch_too_large(torch, tell):
    layers = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192, device="cuda") for _ in range(24)])
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    for rows in [1024] * 12 + [1 << 17]:
        layers(torch.empty(rows, 8192, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def first_batch_too_large(torch, tell):
    layers = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192, device="cuda") for _ in range(48)])
    layers(torch.empty(1 << 16, 8192, device="cuda")).sum().backward()


def tries_again(torch, tell):
    """Catches the error a few times and goes on; says what changed meanwhile."""
    trainer = Trainer(torch)
    for _ in range(12):
        trainer.step(torch, True)
    gone = []
    watched = [weakref.ref(tensor, gone.append) for tensor in trainer.history]

    def state():
        return {"references": [sys.getrefcount(reference()) for reference in watched], "enabled": gc.isenabled(),
                "thresholds": gc.get_threshold(), "older": gc.get_count()[1:], "gone": len(gone),
                "allocated": torch.cuda.memory_allocated(), "reserved": torch.cuda.memory_reserved(),
                "error": sys.exc_info()[0]}

    said, changed, objects = [], [], []
    for attempt in range(8):
        gc.enable() if attempt % 2 else gc.disable()
        gc.collect()
        torch.cuda.empty_cache()
        before = state()
        try:
            torch.empty(200 * GiB + attempt, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError as error:
            said.append([type(error).__name__, type(error).__module__, str(error), str(error.__context__)])
            del error
            served = torch.empty(GiB, dtype=torch.uint8, device="cuda")
            del served
        torch.cuda.empty_cache()
        changed += [(attempt, name) for name, value in state().items() if value != before[name]]
        gc.collect()
        objects.append(len(gc.get_objects()))
    del trainer
    gc.collect()
    tell(said=said, changed=changed, objects=objects[-1] - objects[1], kept_alive=len(watched) - len(gone),
         allocated=torch.cuda.memory_allocated())


JOBS = [list_of_outputs, cache_without_steps, batch_too_large, first_batch_too_large, tries_again]


def inside(folder, names):
    """One process that imports PyTorch, a child for each job."""
    import torch
    for job in JOBS:
        if names and job.__name__ not in names:
            continue
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            continue
        said = {"pid": os.getpid()}
        file = pathlib.Path(folder, job.__name__ + ".json")
        file.write_text(json.dumps(said))
        job(torch, lambda **more: file.write_text(json.dumps(dict(said, **more))))
        sys.exit(0)


# ---- What is said of them.

def line_of(job):
    """Where the memory that the job keeps is made."""
    lines = HERE.read_text().splitlines()
    return next(i for i, text in enumerate(lines, 1) if text.endswith("# KEPT by " + job))


class OomHoldersTest:
    def __init__(self, vramtrack, folder):
        self.vramtrack = vramtrack
        self.folder = folder
        self.failures = []

    def check(self, condition, what):
        if not condition:
            self.failures.append(what)

    def said_inside(self, job):
        return json.loads(pathlib.Path(self.folder, job + ".json").read_text())

    def ask(self, command, job, *options):
        (trace,) = pathlib.Path(self.folder).glob("vramtrack.*.%d.*.vrt" % self.said_inside(job)["pid"])
        result = subprocess.run([self.vramtrack, command, trace, *options], capture_output=True, text=True)
        self.check(result.returncode == 0, "%s %s: %s" % (command, job, result.stderr))
        return json.loads(result.stdout) if "--json" in options else result.stdout

    def sites(self, job):
        """Of both commands, by name."""
        report = self.ask("report", job, "--at", "oom", "--json")["devices"][0]["sites"]
        return [{site["site"]: site for site in sites} for sites in (self.ask("oom", job, "--json")["sites"], report)]

    def is_held(self, job, variable):
        """The line, the variable, and the very element on whose memory the look was taken."""
        lies_at = self.said_inside(job)["lies_at"]
        looked_at = {holder["chain"]: holder["address"]
                     for holder in self.ask("leaks", job, "--holders", "--json")["holders"]}
        chain = re.compile(r"^oom_holders_test\.py:\d+ %s\(\): %s\[(\d+)\]$" % (job, re.escape(variable)))
        for sites in self.sites(job):
            held = {name: site["holders"] for name, site in sites.items() if site["holders"]}
            lines = [name.split(" ")[0] for name in held]
            self.check(lines == ["%s:%d" % (HERE.name, line_of(job))], "%s: holders of %s" % (job, lines))
            for holders in held.values():
                first = holders[0]
                found = chain.match(first["chain"])
                self.check(found and first["at_oom"] and len(holders) == 1, "%s: %s" % (job, holders))
                if found:
                    self.check(lies_at[int(found[1])] == looked_at[first["chain"]],
                               "%s: another tensor than that of %s" % (job, first["chain"]))
        for command in ("oom", "report"):
            said = re.findall(r"held by (?!this process).*", self.ask(command, job))
            self.check(len(said) == 1 and chain.match(said[0][8:].strip()), "%s %s: %s" % (command, job, said))

    def is_not_held(self, job):
        self.check(self.ask("oom", job, "--json")["oom"], job + ": no OOM in it")
        for sites in self.sites(job):
            held = {name: site["holders"] for name, site in sites.items() if site["holders"]}
            self.check(sites and not held, "%s: %s" % (job, held))
        for command in ("oom", "report"):
            self.check("held by" not in self.ask(command, job).replace("held by this process", ""), "%s %s" % (command, job))

    def is_unharmed(self, job, untraced):
        said = self.said_inside(job)
        self.check(len(said["said"]) == 8 and said["said"][0][0] == "OutOfMemoryError", "caught: %s" % said["said"][:1])
        for traced, plain in zip(said["said"], untraced["said"], strict=True):
            self.check(traced == plain, "the error is\n%s\nand without vramtrack\n%s" % (traced, plain))
        self.check(said["changed"] == [], "changed: %s" % said["changed"])
        self.check(said["kept_alive"] == 0, "%d tensors are kept alive" % said["kept_alive"])
        self.check(said["allocated"] == untraced["allocated"], "%d bytes are kept" % said["allocated"])
        self.check(said["objects"] < 20, "%d objects more" % said["objects"])
        looked = [h for h in self.ask("leaks", job, "--holders", "--json")["holders"] if "history" in h["chain"]]
        self.check(looked, "no look was taken")


def main():
    if sys.argv[1] == "--inside":
        return inside(sys.argv[2], sys.argv[3:])
    from run_planted import preloads
    parser = argparse.ArgumentParser()
    for name in ("--simgpu", "--tracer", "--vramtrack"):
        parser.add_argument(name, required=True)
    options = parser.parse_args()
    python = os.environ.get("VRAMTRACK_PYTHON") or sys.executable
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as plain:
        for where, tracer, jobs in ((folder, [options.tracer], []), (plain, [], ["tries_again"])):
            preload = ":".join(tracer + preloads(options.simgpu, options.tracer, python).split(":")[1:])
            environment = dict(os.environ, LD_PRELOAD=preload, SIMGPU="h100-80g", VRAMTRACK_OUTPUT=where + "/",
                               PYTHONDONTWRITEBYTECODE="1")
            subprocess.run([python, HERE, "--inside", where, *jobs], env=environment, stderr=subprocess.DEVNULL, timeout=600)
        test = OomHoldersTest(options.vramtrack, folder)
        test.is_held("list_of_outputs", "trainer.history")
        test.is_held("cache_without_steps", "answers")
        test.is_not_held("batch_too_large")
        test.is_not_held("first_batch_too_large")
        test.is_unharmed("tries_again", json.loads(pathlib.Path(plain, "tries_again.json").read_text()))
    print("\n".join(test.failures) or "ok")
    return 1 if test.failures else 0


if __name__ == "__main__":
    sys.exit(main())
