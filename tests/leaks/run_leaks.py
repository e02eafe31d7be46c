#!/usr/bin/env python3
"""Planted leaks and healthy jobs in real PyTorch, traced, and what `vramtrack leaks` says of each.

usage: run_leaks.py VRAMTRACK LEAKY_LIBRARY [NAME ...] [--quick | --slow] [--keep DIR]
PyTorch is imported once; each job runs in a forked child. Python with PyTorch: VRAMTRACK_PYTHON.
Exit status: 0, 1 where a leak is missed or something healthy is reported, 77 without PyTorch.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import traceback

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


# Inside the traced process.

def inside(options):
    sys.path.insert(0, str(HERE))
    import torch
    import torch._dynamo  # noqa: F401  (what optimizers import at their first use)
    import healthy
    import planted
    HEALTHY, PLANTED = healthy.HEALTHY, planted.PLANTED
    jobs = {}
    for table in (PLANTED, HEALTHY):
        for name, job in table.items():
            if name in options.names or not options.names and (
                    job.quick if options.quick else not job.quick if options.slow else True):
                jobs[name] = job
    pids = {}
    for name, job in jobs.items():
        child = os.fork()
        if child == 0:
            status = 1
            try:
                torch.manual_seed(0)
                job()
                if planted.WITNESS:
                    (pathlib.Path(options.folder) / f"{name}.witness.json").write_text(json.dumps(planted.WITNESS))
                status = 0
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        _, status = os.waitpid(child, 0)
        if status:
            sys.exit(f"{name} failed")
        pids[name] = child
    told = {name: dict(pid=pid, healthy=name in HEALTHY) for name, pid in pids.items()}
    for name, job in PLANTED.items():
        if name in told:
            told[name].update(held=job.held, kind=job.kind, file=job.file, site=job.site,
                              lines=marked_lines(job), quick=job.quick)
    (pathlib.Path(options.folder) / "jobs.json").write_text(json.dumps(told))
    return 0


def marked_lines(job):
    """The lines that are marked with the job's name, as `file:line`."""
    with open(job.file) as source:
        return [f"{os.path.basename(job.file)}:{number}" for number, line in enumerate(source, 1)
                if "leaks: " in line and job.__name__ in re.split(r"[ ,]+", line.split("leaks: ")[1].strip())]


# Outside.

def trace(options, python, folder):
    environment = dict(os.environ, HF_HUB_OFFLINE="1", PYTHONDONTWRITEBYTECODE="1", LEAKY_LIBRARY=options.library)
    command = [options.vramtrack, "run", "--simulate", options.device, "--stop-after-steps", "0", "-o", f"{folder}/", "--",
               python, __file__, options.vramtrack, options.library, *options.names, *(["--quick"] if options.quick else []),
               *(["--slow"] if options.slow else []), "--inside", "--folder", str(folder)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    if process.returncode:
        print(process.stdout[-2000:], process.stderr[-4000:])
    return process.returncode


def judge(options, folder, name, job):
    files = list(folder.glob(f"vramtrack.*.{job['pid']}.*.vrt"))
    if len(files) != 1:
        return [f"{len(files)} traces of process {job['pid']}"]
    process = subprocess.run([options.vramtrack, "leaks", str(files[0]), "--json"], capture_output=True, text=True)
    if process.returncode:
        return [process.stderr.strip()]
    report = json.loads(process.stdout)
    sites = [f"{f['kind']} at {f['site'] or 'reserved memory'}" for f in report["findings"]]
    if options.verbose:
        print(subprocess.run([options.vramtrack, "leaks", str(files[0])], capture_output=True, text=True).stdout)
    if job["healthy"]:
        return [f"reported: {site}" for site in sites]
    wanted = [job["site"]] if job["site"] else job["lines"]
    failed = [f"reported besides: {s}" for s in sites if not any(re.search(re.escape(w) + r"(\D|$)", s) for w in wanted)]
    found = [f for f in report["findings"] if f["kind"] == job["kind"]]
    if not found:
        failed.append("not found")
    if job["kind"] == "graph pools" and found:
        witness = folder / f"{name}.witness.json"
        told = dict(graphs=found[0]["graph_pools"]["graphs"], pools=found[0]["graph_pools"]["pools"], bytes=found[0]["live_bytes"])
        if told != json.loads(witness.read_text()):
            failed.append(f"{told}, but PyTorch says {witness.read_text()}")
    chains = [h["chain"] for f in found for h in f["holders"]]
    if job["held"] is None:
        failed += [f"held, it says, by {chain}" for chain in chains]
    elif not any(re.search(job["held"], chain) for chain in chains):
        failed += [f"no holder like {job['held']}"] + [f"but {chain}" for chain in chains]
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vramtrack")
    parser.add_argument("library")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--quick", action="store_true", help="only the quick jobs")
    parser.add_argument("--slow", action="store_true", help="only the others")
    parser.add_argument("--device", default="24GiB", help="what to simulate (default: %(default)s)")
    parser.add_argument("--keep", metavar="DIR", help="keep the recordings there, and use those that are there already")
    parser.add_argument("--verbose", action="store_true", help="print the reports")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    if options.inside:
        return inside(options)
    python = os.environ.get("VRAMTRACK_PYTHON") or sys.executable
    if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode:
        print(f"skipped: {python} has no PyTorch (set VRAMTRACK_PYTHON)")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="vramtrack-leaks-") as temporary:
        folder = pathlib.Path(options.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "jobs.json").exists() and trace(options, python, folder):
            return 1
        jobs = json.loads((folder / "jobs.json").read_text())
        jobs = {name: job for name, job in jobs.items() if name in options.names or not options.names}
        failures = 0
        for name, job in jobs.items():
            failed = judge(options, folder, name, job)
            failures += bool(failed)
            print("FAIL" if failed else "ok  ", "healthy" if job["healthy"] else "planted", name)
            for line in failed:
                print("      ", line)
    print(f"{len(jobs) - failures} of {len(jobs)} jobs judged rightly")
    return 1 if failures or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
