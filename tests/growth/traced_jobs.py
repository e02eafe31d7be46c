"""Runs many small PyTorch jobs traced on the simulated GPU: PyTorch is imported once, each job is a fork.

A module of jobs calls `run_inside(JOBS)` when it is started with --inside; a test calls `trace(...)`, which
gives the trace of each job and the numbers that the job itself returned.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import traceback


def run_inside(jobs, folder, names):
    import torch  # noqa: F401  (once, for all children)
    if importlib.util.find_spec("transformers"):
        import transformers
        transformers.LlamaForCausalLM, transformers.DynamicCache  # noqa: B018
        import torch._dynamo  # noqa: F401  (what optimizers import at their first use)
    done = {}
    for name in names or list(jobs):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with os.fdopen(writing, "w") as pipe:
                    json.dump(jobs[name]() or {}, pipe)
                status = 0
            except BaseException:  # noqa: BLE001  (said, and counted as a failure)
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            text = pipe.read()
        _, status = os.waitpid(child, 0)
        done[name] = {"pid": child, "status": status, "facts": json.loads(text or "{}")}
    pathlib.Path(folder, "jobs.json").write_text(json.dumps(done))


def trace(vramtrack, module, folder, names=(), card="h100-80g"):
    """name -> (trace, facts). `module` is the path of a module of jobs."""
    command = [vramtrack, "run", "--simulate", card, "--stop-after-steps", "0", "-o", f"{folder}/", "--",
               sys.executable, str(module), "--inside", str(folder), *names]
    environment = dict(os.environ, TOKENIZERS_PARALLELISM="false", PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    report = pathlib.Path(folder, "jobs.json")
    if done.returncode or not report.exists():
        sys.exit(f"the jobs failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    traces = {}
    for name, job in json.loads(report.read_text()).items():
        files = list(pathlib.Path(folder).glob(f"vramtrack.*.{job['pid']}.*.vrt"))
        if job["status"] != 0 or len(files) != 1:
            sys.exit(f"job {name} ended with {job['status']} and {len(files)} traces:\n{done.stderr[-4000:]}")
        traces[name] = (str(files[0]), job["facts"])
    return traces


def ask(vramtrack, *arguments, expect=0):
    """The JSON that a command prints."""
    done = subprocess.run([vramtrack, *map(str, arguments), "--json"], capture_output=True, text=True)
    if done.returncode != expect:
        sys.exit(f"vramtrack {' '.join(map(str, arguments))} exited with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


class Checks:
    """Counts what holds and prints what does not."""

    def __init__(self):
        self.failures = 0
        self.count = 0

    def that(self, holds, text):
        self.count += 1
        self.failures += not holds
        print(("ok   " if holds else "FAIL ") + text, flush=True)

    def done(self):
        print(f"{self.count - self.failures} of {self.count} hold")
        return 1 if self.failures or self.count == 0 else 0
