#!/usr/bin/env python3
"""Jobs of several processes in real PyTorch: `vramtrack leaks FOLDER` finds those that hold a context and do nothing.

usage: processes_test.py VRAMTRACK            (VRAMTRACK_PYTHON has PyTorch; else skipped: 77)

Whoever is forgotten is so for longer than IDLE by the job's own clock, and the ranks of a healthy job go in step: no
machine is too slow for this test.
"""
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
IDLE = 2  # seconds
MIB = 1 << 20


# Inside the traced processes.

def report(folder, role):
    import torch
    told = {"pid": os.getpid(), "reserved": torch.cuda.memory_reserved()}
    pathlib.Path(folder, f"{role}.json").write_text(json.dumps(told))


def evaluator(folder, ready, work):
    """Keeps its batch and waits for work that comes only when all is over."""
    import torch
    batch = torch.ones(40 * MIB, dtype=torch.uint8, device="cuda")
    report(folder, "evaluator")
    ready.set()
    work.get()
    del batch


class Touches:
    """What initialises CUDA in a worker that only loads."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, worker):
        import torch
        torch.zeros(1, device="cuda")
        report(self.folder, "loader")


def train(seconds, go_on=lambda: None):
    import torch
    model = torch.nn.Linear(64, 64).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    begin = time.monotonic()
    while time.monotonic() < begin + seconds:
        model(torch.randn(8, 64, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        go_on()
        time.sleep(0.05)


def forgotten(folder):
    """An evaluator that waits, and a loader's worker that touched the device, beside a main process that works."""
    import torch
    spawn = multiprocessing.get_context("spawn")
    ready, work = spawn.Event(), spawn.Queue()
    child = spawn.Process(target=evaluator, args=(folder, ready, work))
    child.start()
    data = torch.utils.data.TensorDataset(torch.randn(8, 64))
    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context="spawn",
                                         persistent_workers=True, worker_init_fn=Touches(folder))
    for _ in loader:
        pass
    ready.wait()
    train(2 * IDLE)
    report(folder, "main")
    work.put(None)
    child.join()


def rank(folder, number, barrier):
    import torch
    data = torch.utils.data.TensorDataset(torch.randn(8, 64))
    for _ in torch.utils.data.DataLoader(data, batch_size=4, num_workers=1):  # its worker has no CUDA
        pass
    steps = iter(range(1 << 30))
    while next(steps) < 20 * 2 * IDLE:
        barrier.wait()
        train(0)
        torch.ones(64, device="cuda")
        time.sleep(0.05)
    report(folder, f"rank{number}")


def healthy(folder):
    """Two ranks in step, each with a worker; the main process has no CUDA."""
    barrier = multiprocessing.Barrier(2)
    ranks = []
    for number in range(2):
        pid = os.fork()
        if pid == 0:
            rank(folder, number, barrier)
            sys.exit(0)
        ranks.append(pid)
    if any(os.waitpid(pid, 0)[1] for pid in ranks):
        sys.exit("a rank failed")


def survivor(folder):
    import torch
    batch = torch.ones(24 * MIB, dtype=torch.uint8, device="cuda")
    report(folder, "survivor")
    while pathlib.Path(folder).exists() and not pathlib.Path(folder, "end").exists():
        time.sleep(0.05)
    del batch


def left_behind(folder):
    """A process that nobody ends when the job is over."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        survivor(folder)
        sys.exit(0)
    while not pathlib.Path(folder, "survivor.json").exists():
        time.sleep(0.05)
    train(0.2)
    report(folder, "main")


JOBS = {job.__name__: job for job in (forgotten, healthy, left_behind)}


# Outside.

class Test:
    def __init__(self, vramtrack, python):
        self.vramtrack, self.python, self.failed = vramtrack, python, []

    def trace(self, job, folder):
        command = [self.vramtrack, "run", "--simulate", "24GiB", "--stop-after-steps", "0", "-o", f"{folder}/", "--",
                   self.python, os.path.abspath(__file__), "--inside", job, str(folder)]
        with open(folder / "log", "wb") as log:
            if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log).returncode:
                raise SystemExit(f"{job} failed:\n" + (folder / "log").read_text()[-4000:])

    def check(self, what, value, wanted):
        if value != wanted:
            self.failed.append(f"{what}: {value}, not {wanted}")

    def processes(self, folder):
        result = subprocess.run([self.vramtrack, "leaks", str(folder), "--idle", str(IDLE), "--json"],
                                capture_output=True, text=True)
        if result.returncode:
            raise SystemExit(result.stderr)
        text = subprocess.run([self.vramtrack, "leaks", str(folder), "--idle", str(IDLE)], capture_output=True, text=True)
        print(text.stdout)
        self.check("columns", max(map(len, text.stdout.replace(str(folder), "").splitlines())) <= 92, True)
        return json.loads(result.stdout)

    def roles(self, folder):
        told = {file.stem: json.loads(file.read_text()) for file in folder.glob("*.json")}
        return {role: (entry["pid"], entry["reserved"]) for role, entry in told.items()}

    def findings(self, report):
        return sorted((finding["pid"], finding["held_bytes"]) for finding in report["findings"])

    def forgotten(self, folder):
        self.trace("forgotten", folder)
        report, roles = self.processes(folder), self.roles(folder)
        # Neither counts by our own word: PyTorch said who they are and what they reserve.
        # A loader's worker may be ended by PyTorch before it closes its file: then it is noted, not accused.
        found = self.findings(report) + [roles["loader"] for pid in report["unknown_end"] if pid == roles["loader"][0]]
        self.check("forgotten", sorted(found), sorted([roles["evaluator"], roles["loader"]]))
        self.check("accused", roles["evaluator"] in self.findings(report), True)
        for finding in report["findings"]:
            self.check("a context", finding["context_bytes"] > 0, True)
            self.check("idle for long", finding["others_worked_s"] >= IDLE, True)
            self.check("its command is told", "python" in " ".join(finding["command"]), True)
        self.check("processes", len(report["processes"]), 3)

    def healthy(self, folder):
        self.trace("healthy", folder)
        report, roles = self.processes(folder), self.roles(folder)
        self.check("healthy", self.findings(report), [])
        self.check("processes", sorted(p["pid"] for p in report["processes"]), sorted(pid for pid, _ in roles.values()))

    def left_behind(self, folder):
        try:
            self.trace("left_behind", folder)
            time.sleep(1.5 * IDLE)
            report, roles = self.processes(folder), self.roles(folder)
            self.check("left behind", self.findings(report), [roles["survivor"]])
            self.check("running", [finding["running"] for finding in report["findings"]], [True])
        finally:
            (folder / "end").write_text("")


def main():
    if sys.argv[1] == "--inside":
        JOBS[sys.argv[2]](sys.argv[3])
        return 0
    python = os.environ.get("VRAMTRACK_PYTHON") or sys.executable
    if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode:
        print(f"skipped: {python} has no PyTorch (set VRAMTRACK_PYTHON)")
        return SKIPPED
    test = Test(os.path.abspath(sys.argv[1]), python)
    for job in sys.argv[2:] or JOBS:
        with tempfile.TemporaryDirectory(prefix="vramtrack-processes-") as folder:
            getattr(test, job)(pathlib.Path(folder))
    print("\n".join(test.failed) or "ok")
    return 1 if test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
