#!/usr/bin/env python3
"""The helper inside real Python processes, against what the programs know of themselves.

usage: helper_test.py <preload library> [--torch-only]
VRAMTRACK_PYTHON names a Python that has PyTorch; without it that part is skipped.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
library, torch_python = os.path.abspath(sys.argv[1]), os.environ.get("VRAMTRACK_PYTHON", "")
failures = 0


def check(condition, what):
    global failures
    if not condition:
        failures += 1
        print("  FAIL", what)


def pythons():
    for version in ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]:
        pattern = os.path.expanduser("~/.pyenv/versions/%s.*/bin/python%s" % (version, version))
        found = sorted(glob.glob(pattern))[-1:]
        found += [p for p in ["/usr/bin/python" + version] if os.access(p, os.X_OK)]
        if not found:
            print("CPython %s: skipped, not installed" % version)
        for python in found:
            yield version, python


def run(python, arguments, preload=True, **variables):
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        environment = dict(os.environ, HELPER_TEST_LOG=log, **variables)
        environment.pop("PYTHONPATH", None)
        if preload:
            environment["LD_PRELOAD"] = library
        result = subprocess.run([python] + arguments, env=environment, cwd=folder,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = open(log).read().splitlines() if os.path.exists(log) else []
    return result, lines


def annotations(python):
    victim = os.path.join(HERE, "annotations_victim.py")
    wanted = ["mark begin", "push outer", "push inner", "pop", "pop", "step 7",
              "label 0x1000 512 kv_cache:layer 0"]
    for flags in ([], ["-I"], ["-S"], ["-E"], ["-s", "-O"]):
        result, lines = run(python, flags + [victim])
        check(result.returncode == 0 and result.stdout == "active True\n",
              "%s: %s%s" % (flags, result.stdout, result.stderr))
        check(lines == wanted, "%s: %s" % (flags, lines))
    # Off: as if we were not there. The package on the path then finds the C functions by itself.
    result, lines = run(python, [victim], VRAMTRACK_HELPER="off")
    check(result.returncode != 0 and "No module named 'vramtrack'" in result.stderr, "off: found")
    package = os.path.join(HERE, "..", "..", "python")
    code = "import sys; sys.path.insert(0, %r); exec(open(%r).read())" % (package, victim)
    result, lines = run(python, ["-c", code], VRAMTRACK_HELPER="off")
    check(result.stdout == "active True\n" and lines == wanted,
          "package: %s %s" % (result.stderr, lines))
    result, lines = run(python, ["-c", code], preload=False)
    check(result.stdout == "active False\n" and not lines, "untraced: " + result.stderr)


def inert(python):
    code = "import sys, json, threading; print(sorted(sys.modules), threading.active_count())"
    with_us, lines = run(python, ["-c", code])
    without, _ = run(python, ["-c", code], preload=False)
    check(with_us.stdout == without.stdout and with_us.stderr == without.stderr == "",
          "a plain process differs: %s" % with_us.stderr)
    check(not lines, "a plain process is described: %s" % lines)


def without_torch(python):
    """Ticks in a process without torch, with threads, pending interrupts and a fork."""
    code = """
import ctypes, os, threading
f = ctypes.CDLL(None).pretend_allocations
threads = [threading.Thread(target=f, args=(3000,)) for _ in range(4)]
[t.start() for t in threads]; f(3000); [t.join() for t in threads]
sum(range(100000))
pid = os.fork()
f(100)
sum(range(100000))
if pid == 0: os._exit(0)
print(os.waitpid(pid, 0)[1])
"""
    result, lines = run(python, ["-c", code])
    check(result.returncode == 0 and result.stdout == "0\n" and result.stderr == "",
          "without torch: %s%s" % (result.stdout, result.stderr))
    version = subprocess.run([python, "-c", "import sys; print(sys.version.split()[0])"],
                             stdout=subprocess.PIPE, text=True).stdout.strip()
    check("metadata python " + version in lines, "no metadata: %s" % lines[:3])


def interrupts(python):
    """KeyboardInterrupt belongs to the program, also while the helper runs."""
    code = """
import ctypes, _thread
f = ctypes.CDLL(None).pretend_allocations
try:
    _thread.interrupt_main(); f(100)
    sum(range(1000000))
    for i in range(1000000): pass
    print("lost")
except KeyboardInterrupt:
    print("interrupted")
"""
    result, _ = run(python, ["-c", code])
    check(result.stdout == "interrupted\n", "interrupt: %s%s" % (result.stdout, result.stderr))


def training(python):
    result, lines = run(python, [os.path.join(HERE, "training_victim.py")], VRAMTRACK_CPU="1")
    check(result.returncode == 0, "training: " + result.stderr)
    if result.returncode != 0:
        return
    told = json.loads(result.stdout)
    labels = {}
    # Before, there are only parts of the model, which have no full names.
    for line in lines[lines.index("mark built"):]:
        if line.startswith("label "):
            _, pointer, size, name = line.split(" ", 3)
            labels.setdefault(name, set()).add((int(pointer, 16), int(size)))
    steps = [line for line in lines if line.startswith("step ")]
    # The first step may be over before the helper knows of PyTorch, not the others.
    check(steps == ["step 1", "step 2", "step 3", "step 4"], "steps: %s" % steps)
    for name, (pointer, size) in told["expected"].items():
        if name.startswith("gradients:"):  # these move from step to step
            check(any(s == size for _, s in labels.get(name, ())), "not labelled: " + name)
        else:
            check((pointer, size) in labels.get(name, ()), "not labelled: " + name)
    for name in labels:
        check(name in told["expected"], "labelled, but not of the model: " + name)
    # Each of the three blocks is told from the others, from the first call on: a call that came before the
    # helper knew its module has its name in the end.
    modules = ["blocks.%d" % (call % 3) for call in range(12)]
    check(told["attributed"] == modules, "modules: %s" % told["attributed"])
    check(told["outside"] == [""] * 4, "outside of modules: %s" % told["outside"])
    check(not told["broken"], "broken: %s" % told["broken"])
    check(not told["kept"], "a parameter was kept alive")
    check(told["threads"] == 0 and told["garbage"] == 0, "left behind: %s" % told)
    check(any(line.startswith("metadata torch ") for line in lines), "no torch version")
    print("  training: %d labels, %d steps" % (len(labels), len(steps)))


for version, python in pythons() if "--torch-only" not in sys.argv else []:
    print("CPython %s: %s" % (version, python))
    annotations(python)
    inert(python)
    without_torch(python)
    interrupts(python)
if torch_python and subprocess.run([torch_python, "-c", "import torch"],
                                   stderr=subprocess.DEVNULL).returncode == 0:
    print("PyTorch: " + torch_python)
    training(torch_python)
else:
    print("PyTorch: skipped, not installed")
print("%d failures" % failures)
sys.exit(1 if failures else 0)
