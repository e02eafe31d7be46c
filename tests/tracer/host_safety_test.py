#!/usr/bin/env python3
"""The tracer never harms its host: programs of every kind print and return the same with it as without.

Each program runs twice, once alone and once with libvramtrack.so preloaded. Outputs and exit codes must be equal;
the lines that the tracer itself prints begin with "vramtrack: " and are the only difference allowed. Programs that
use no GPU must leave no file.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Programs without a GPU. What is not installed is skipped, by name.
ORDINARY = [
    ["ls", "/"], ["bash", "-c", "for i in 1 2 3; do echo $i | cat; done; (exit 5)"],
    ["sh", "-c", "true && echo ok; kill -TERM $$"], ["git", "--version"], ["git", "-C", "{source}", "log", "-1"],
    ["python3", "-c", "pass"], ["python3", "-S", "-c", "import threading; t = threading.Thread(target=print, args=(1,)); "
                                                      "t.start(); t.join()"],
    ["python3", "-W", "error", "-c", "import os; p = os.fork(); p and print(os.waitpid(p, 0)[1])"],
    ["python3", "-c", "import subprocess; print(subprocess.run(['echo', 'x'], capture_output=True).stdout)"],
    ["python3", "-c", "import ctypes; print(hasattr(ctypes.CDLL(None), 'cuInit'), hasattr(ctypes.CDLL(None), 'puts'))"],
    ["python3", "-c", "import multiprocessing as m\nif __name__ == '__main__':\n"
                      "  with m.get_context('fork').Pool(2) as p: print(p.map(abs, [-1, -2]))"],
    ["perl", "-e", "print 1 + 1"], ["awk", "BEGIN { print 6 * 7 }"], ["sed", "--version"], ["tar", "--version"],
    ["gcc", "--version"], ["cmake", "--version"], ["find", "{source}/docs", "-name", "*.md"], ["sort", "/etc/passwd"],
    ["grep", "-c", "root", "/etc/passwd"], ["/sbin/ldconfig", "-p"], ["go", "version"], ["gofmt", "-h"],
    ["node", "-e", "console.log(1)"], ["java", "-version"], ["xargs", "--version"], ["timeout", "0.1", "sleep", "5"],
    ["nice", "true"], ["setsid", "-w", "echo", "x"], ["env", "-i", "/bin/echo", "bare"],
]

EXPORTS = re.compile(r"cu[A-Z]\w*|cupti[A-Z]\w*|cuda[A-Z]\w*|dlsym|dlclose|vramtrack_(mark|push|pop|step|label)|_ZN3c10\w+")
NEEDED = re.compile(r"lib(c|m|dl|pthread)\.so\.\d+|ld-linux-x86-64\.so\.2")


class Test:
    def __init__(self, options):
        self.options = options
        self.failures = []
        self.checks = 0
        self.programs = 0

    def check(self, what, condition, detail=""):
        self.checks += 1
        if not condition:
            self.failures.append(f"{what} {detail}".strip())

    def run(self, command, folder, preload=None, **variables):
        environment = dict(os.environ, **variables)
        environment.pop("LD_PRELOAD", None)
        if preload:
            environment["LD_PRELOAD"] = preload
        return subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=folder, env=environment,
                              stdin=subprocess.DEVNULL, timeout=120)

    def compare(self, name, command, alone, traced):
        said = [line for line in traced.stderr.splitlines() if line.startswith("vramtrack: ")]
        stderr = "".join(line for line in traced.stderr.splitlines(keepends=True) if not line.startswith("vramtrack: "))
        self.check(f"{name}: exit code", alone.returncode == traced.returncode,
                   f"{traced.returncode}, alone {alone.returncode}: {traced.stderr[-300:]}")
        self.check(f"{name}: stdout", alone.stdout == traced.stdout, f"{traced.stdout[-300:]!r}, alone "
                                                                    f"{alone.stdout[-300:]!r}")
        self.check(f"{name}: stderr", alone.stderr == stderr, f"{stderr[-300:]!r}, alone {alone.stderr[-300:]!r}")
        return said

    def ordinary(self, preload, label=""):
        for command in ORDINARY:
            command = [word.replace("{source}", self.options.source) for word in command]
            if shutil.which(command[0]) is None:
                print(f"skipped: {command[0]} is not installed")
                continue
            with tempfile.TemporaryDirectory() as folder:
                alone = self.run(command, folder)
                traced = self.run(command, folder, preload)
                name = label + " ".join(command)[:50]
                said = self.compare(name, command, alone, traced)
                self.check(f"{name}: nothing said", not said, str(said))
                self.check(f"{name}: no file", not list(pathlib.Path(folder).glob("*.vrt")))
                self.programs += 1

    def host_modes(self):
        """victim_host dies, forks and opens libraries in every way, with GPU memory in use."""
        modes = json.loads(pathlib.Path(self.options.modes).read_text())
        for mode, expected in modes.items():
            if expected.get("needs") == "nvcc" and not self.options.nvcc:
                print(f"skipped: no nvcc for victim_host {mode}")
                continue
            with tempfile.TemporaryDirectory() as folder:
                command = [self.options.host, mode]
                alone = self.run(command, folder, SIMGPU="8GiB")
                traced = self.run(command, folder, self.options.tracer, SIMGPU="8GiB")
                self.compare(f"victim_host {mode}", command, alone, traced)
                code = -expected["signal"] if "signal" in expected else expected["exit"]
                self.check(f"victim_host {mode}: expected exit", traced.returncode == code, f"{traced.returncode}")
                self.check(f"victim_host {mode}: expected stdout", traced.stdout == expected["stdout"],
                           repr(traced.stdout))
                self.programs += 1

    def unusable_output(self):
        """Where no trace can be written: one line, and the program goes on."""
        for output in ("/proc/", "/dev/full/x.vrt"):
            with tempfile.TemporaryDirectory() as folder:
                command = [self.options.host, "local"]
                alone = self.run(command, folder, SIMGPU="8GiB")
                traced = self.run(command, folder, self.options.tracer, SIMGPU="8GiB", VRAMTRACK_OUTPUT=output)
                said = self.compare(f"output {output}", command, alone, traced)
                self.check(f"output {output}: one line", len(said) == 1 and "nothing is recorded" in said[0], str(said))
                self.programs += 1

    def static_program(self):
        """A statically linked program ignores preloads; that must not change."""
        if shutil.which("gcc") is None:
            return print("skipped: no gcc for a static program")
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "static.c")
            source.write_text("#include <stdio.h>\nint main(void) { puts(\"static\"); return 6; }\n")
            if subprocess.run(["gcc", "-static", "-o", f"{folder}/static", source], capture_output=True).returncode:
                return print("skipped: no static libc")
            self.compare("a static program", [], self.run([f"{folder}/static"], folder),
                         self.run([f"{folder}/static"], folder, self.options.tracer))
            self.programs += 1

    def sanitized_program(self):
        """libasan wants to be first; `vramtrack run` puts it there."""
        if shutil.which("gcc") is None or not self.options.vramtrack:
            return print("skipped: no gcc, or no vramtrack, for a program with libasan")
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "asan.c")
            source.write_text("#include <stdio.h>\n#include <stdlib.h>\nint main(void) { char* p = malloc(10); "
                              "puts(\"sane\"); free(p); return 0; }\n")
            if subprocess.run(["gcc", "-fsanitize=address", "-o", f"{folder}/asan", source],
                              capture_output=True).returncode:
                return print("skipped: no libasan")
            alone = self.run([f"{folder}/asan"], folder)
            traced = self.run([self.options.vramtrack, "run", "--", f"{folder}/asan"], folder)
            self.compare("a program with libasan, by run", [], alone, traced)
            self.programs += 1

    def go_program(self):
        """Go's runtime comes without libc, and makes threads of its own way."""
        if shutil.which("go") is None:
            return
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "hello.go").write_text("package main\nimport \"fmt\"\nfunc main() { c := make(chan int); "
                                                        "go func() { c <- 42 }(); fmt.Println(<-c) }\n")
            built = subprocess.run(["go", "build", "-o", "hello", "hello.go"], cwd=folder, capture_output=True,
                                   env=dict(os.environ, HOME=folder, GOFLAGS="-mod=mod", GO111MODULE="off"))
            if built.returncode:
                return print("skipped: go does not build a program here")
            self.compare("a Go program", [], self.run(["./hello"], folder),
                         self.run(["./hello"], folder, self.options.tracer))
            self.programs += 1

    def real_runtime(self):
        """NVIDIA's own runtime, static and shared, on a machine where it finds no driver that it accepts."""
        if not self.options.nvcc:
            return print("skipped: no nvcc for programs with NVIDIA's runtime")
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "hello.cu").write_text(
                "#include <cstdio>\n__global__ void nothing() {}\nint main() { void* p = nullptr; int n = -1;\n"
                "int a = cudaGetDeviceCount(&n), b = cudaMalloc(&p, 1024); nothing<<<1, 1>>>();\n"
                "int c = cudaGetLastError(); std::printf(\"%d %d %d %d\\n\", a, n, b, c); return 0; }\n")
            for kind in ("static", "shared"):
                subprocess.run([self.options.nvcc, "-cudart", kind, "-o", f"{folder}/{kind}", f"{folder}/hello.cu"],
                               check=True, capture_output=True, timeout=120)
                library = str(pathlib.Path(self.options.nvcc).resolve().parent.parent / "lib64")
                paths = [library] + ([f"{self.options.simgpu}:{library}"] if self.options.simgpu else [])
                for path in paths if kind == "static" else [library]:
                    alone = self.run([f"{folder}/{kind}"], folder, LD_LIBRARY_PATH=path)
                    traced = self.run([f"{folder}/{kind}"], folder, self.options.tracer, LD_LIBRARY_PATH=path)
                    self.compare(f"NVIDIA's runtime, {kind}, {path}", [], alone, traced)
                    self.programs += 1

    def other_preloads(self):
        found = [path for name in ("libjemalloc.so.2", "libtcmalloc.so.4", "libtcmalloc_minimal.so.4")
                 for path in pathlib.Path("/usr/lib/x86_64-linux-gnu").glob(name)]
        if not found:
            print("skipped: neither jemalloc nor tcmalloc is installed")
        for library in found:
            self.ordinary(f"{self.options.tracer}:{library}", f"with {library.name}: ")

    def library_itself(self):
        def lines(*command):
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        needed = [re.search(r"\[(.*)\]", line).group(1) for line in lines("readelf", "-d", self.options.tracer)
                  if "(NEEDED)" in line]
        self.check("needed libraries", needed and all(NEEDED.fullmatch(name) for name in needed), str(needed))
        exported = [line.split()[-1].split("@")[0] for line in
                    lines("nm", "-D", "--defined-only", self.options.tracer)]
        strange = [name for name in exported if not EXPORTS.fullmatch(name)]
        self.check("exported symbols", len(exported) > 100 and not strange, str(strange[:10]))
        foreign = [line.split()[-1] for line in lines("nm", "-D", "--undefined-only", self.options.tracer)
                   if line.split()[0] == "U" and "@GLIBC_" not in line]
        self.check("undefined symbols", not foreign, str(foreign[:10]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tracer", required=True)
    parser.add_argument("--host", help="victim_host")
    parser.add_argument("--modes", help="host_modes.json")
    parser.add_argument("--vramtrack")
    parser.add_argument("--nvcc")
    parser.add_argument("--simgpu", help="folder of the stand-in libraries")
    parser.add_argument("--source", required=True)
    options = parser.parse_args()
    test = Test(options)
    test.library_itself()
    test.ordinary(options.tracer)
    test.other_preloads()
    test.static_program()
    test.sanitized_program()
    test.go_program()
    test.real_runtime()
    if options.host:
        test.host_modes()
        test.unusable_output()
    for failure in test.failures:
        print(failure)
    print(f"{test.programs} programs, {test.checks} checks, {len(test.failures)} failed")
    return 1 if test.failures or test.programs < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
