#!/usr/bin/env python3
"""`vramtrack run --simulate` ends a program after steady steps: cleanly, and only then.

One traced Python imports PyTorch and forks a child per case, before CUDA is initialised. Each child notes what it
lived through; the witness of steadiness is PyTorch's own counters, read by the loop itself.

usage: steady_steps_test.py VRAMTRACK LIBVRAMTRACK SIMGPU_FOLDER      (VRAMTRACK_PYTHON has PyTorch; else skipped: 77)
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

STEPS = 12


# ---- inside: loops of STEPS steps; each returns nothing and notes its steps in `log`

def training(log, each_step=lambda step, loss: None, batch=lambda step: 16):
    import torch
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = model(torch.randn(batch(step), 256, device="cuda")).square().mean()
        loss.backward()
        each_step(step, loss)
        log["begun"] = step + 1
        try:
            optimizer.step()
        finally:
            stats = torch.cuda.memory_stats()
            log["counters"].append([stats[f"{kind}_bytes.all.{what}"] for kind in ("allocated", "reserved", "requested")
                                    for what in ("current", "peak")])


def steady(log):
    training(log)


def keeps_losses(log):
    kept = []
    training(log, lambda step, loss: kept.append(loss.detach()))


def grows_inside_a_block(log):
    """Four bytes more each step, which the block of 512 bytes hides."""
    import torch
    kept = []

    def step_of(step, loss):
        kept[:] = [torch.empty(1 + step, device="cuda")]
    training(log, step_of)


def larger_batches(log):
    training(log, batch=lambda step: 16 + 16 * step)


def two_lengths(log):
    training(log, batch=lambda step: 16 + 16 * (step % 2))


def grows_late(log):
    """Steady but for a larger batch at step 4: what was alike before does not count any more."""
    training(log, batch=lambda step: 64 if step == 3 else 16)


def inference(log):
    import torch
    model = torch.nn.Linear(256, 256).cuda()
    with torch.no_grad():
        for step in range(STEPS):
            log["begun"] = step + 1
            model(torch.randn(16, 256, device="cuda"))


def decoding_with_steps(log):
    """A cache that grows by 8 bytes per token, with steps that the program counts itself."""
    import torch
    import vramtrack
    keys = torch.empty(1, 4, dtype=torch.float16, device="cuda")
    for step in range(STEPS):
        vramtrack.step(step)
        log["begun"] = step + 1
        keys = torch.cat([keys, keys[:1]])


def own_steps(log):
    import torch
    import vramtrack
    weight = torch.randn(256, 256, device="cuda")
    for step in range(STEPS):
        vramtrack.step(step)
        log["begun"] = step + 1
        (weight @ weight).sum()


def own_steps_around_an_optimizer(log):
    """Two optimizer steps to a step of the program: the program's count."""
    import torch
    import vramtrack
    model = torch.nn.Linear(256, 256).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        vramtrack.step(step)
        log["begun"] = step + 1
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(16, 256, device="cuda")).sum().backward()
            optimizer.step()


def in_a_thread(log):
    import threading
    thread = threading.Thread(target=training, args=(log,))
    thread.start()
    thread.join()


def goes_on(log):
    """Catches everything, and trains again."""
    try:
        training(log)
    except BaseException as error:  # noqa: BLE001
        log["caught"] = repr(error)
        log["first"] = log["begun"]
    training(log)


def never(log):
    training(log)


def after_one(log):
    training(log)


# case -> the step in which it ends (STEPS: it runs to its end), and its own setting. AdamW makes its state in the first
# step; what needs none is steady from the first step on, and step(n) begins a step, and ends the one before.
CASES = {steady: 4, keeps_losses: STEPS, grows_inside_a_block: STEPS, larger_batches: STEPS, two_lengths: STEPS,
         grows_late: 7, inference: STEPS, decoding_with_steps: STEPS, own_steps: 3, own_steps_around_an_optimizer: 3,
         in_a_thread: STEPS, goes_on: STEPS, never: STEPS, after_one: 2}
SETTINGS = {never: "0", after_one: "1"}


def child(case, pipe):
    import atexit
    log = {"begun": 0, "counters": [], "finally": False, "end": False}

    def say():
        with os.fdopen(pipe, "w") as file:
            json.dump(log, file)
    atexit.register(say)
    if case in SETTINGS:
        os.environ["VRAMTRACK_STOP_AFTER_STEPS"] = SETTINGS[case]
    try:
        case(log)
        log["end"] = True
    except Exception as error:
        log["error"] = repr(error)
    finally:
        log["finally"] = True


def inside(folder):
    import torch  # noqa: F401
    import torch._dynamo  # noqa: F401  (what optimizers import)
    results = {}
    for case in CASES:
        reading, writing = os.pipe()
        with open(pathlib.Path(folder, case.__name__ + ".err"), "w") as errors:
            pid = os.fork()
            if pid == 0:
                os.close(reading)
                os.dup2(errors.fileno(), 2)
                child(case, writing)
                sys.exit(0)
        os.close(writing)
        with os.fdopen(reading) as file:
            text = file.read()
        result = json.loads(text) if text else {"error": "said nothing"}
        result["code"] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        result["pid"] = pid
        results[case.__name__] = result
    pathlib.Path(folder, "results.json").write_text(json.dumps(results))


# ---- outside

class Failures(list):
    def check(self, condition, message):
        if not condition:
            self.append(message)


def judge(case, end, result, said, failures):
    name, stopped = case.__name__, case in (steady, grows_late, own_steps, own_steps_around_an_optimizer, after_one)
    failures.check("error" not in result, f"{name}: {result.get('error')}")
    failures.check(result["code"] == 0, f"{name}: exit code {result['code']}: {said}")
    failures.check(result["begun"] == end, f"{name}: ended in step {result['begun']}, expected {end}")
    failures.check(result["finally"], f"{name}: `finally` did not run")
    failures.check(result["end"] is not stopped, f"{name}: {'ran to its end' if stopped else 'was ended'}")
    lines = [line for line in said.splitlines() if line.startswith("vramtrack: the program was ended after")]
    failures.check(len(lines) == (stopped or case is goes_on), f"{name}: said {said!r}")
    if stopped and result["counters"]:
        wanted = int(SETTINGS.get(case, 3))
        failures.check(len({str(c) for c in result["counters"][-wanted:]}) == 1,
                       f"{name}: PyTorch's counters moved in the steady steps: {result['counters']}")
        failures.check(wanted == 1 or result["counters"][0] != result["counters"][1], f"{name}: steady from the first step on")


def main():
    if sys.argv[1] == "--inside":
        return inside(sys.argv[2])
    vramtrack, library, simgpu = (os.path.abspath(a) for a in sys.argv[1:4])
    python = os.environ.get("VRAMTRACK_PYTHON") or sys.executable
    if subprocess.run([python, "-c", "import torch; assert torch.version.cuda"], capture_output=True).returncode:
        print(f"skipped: {python} has no PyTorch with CUDA (set VRAMTRACK_PYTHON)")
        return 77
    environment = dict(os.environ, VRAMTRACK_LIBRARY=library, VRAMTRACK_SIMGPU=simgpu)
    environment.pop("VRAMTRACK_STOP_AFTER_STEPS", None)
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([vramtrack, "run", "--simulate", "a100-40g", "-o", folder + "/", "--", python,
                              os.path.abspath(__file__), "--inside", folder], env=environment, capture_output=True, text=True)
        failures.check(run.returncode == 0, f"run: exit code {run.returncode}: {run.stderr}")
        failures.check("ends after 3 steady steps" in run.stderr.splitlines()[0], f"first line: {run.stderr}")
        results = json.loads(pathlib.Path(folder, "results.json").read_text())
        for case, end in CASES.items():
            judge(case, end, results[case.__name__], pathlib.Path(folder, case.__name__ + ".err").read_text(), failures)
        first = results["goes_on"].get("first")
        failures.check(first == 4 and "SystemExit" in results["goes_on"].get("caught", ""), f"goes_on: {results['goes_on']}")
        for case, noted in ((steady, True), (inference, False)):
            (trace,) = pathlib.Path(folder).glob(f"vramtrack.*.{results[case.__name__]['pid']}.*.vrt")
            report = subprocess.run([vramtrack, "report", trace, "--json"], capture_output=True, text=True)
            notes = json.loads(report.stdout)["notes"]
            failures.check(any("steady steps, 3 of 4" in note for note in notes) is noted, f"{case.__name__}: notes {notes}")
    print("\n".join(failures) or f"ok, {len(CASES)} cases")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
