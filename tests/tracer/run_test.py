#!/usr/bin/env python3
"""`vramtrack run`: exit codes, signals, where the traces go, and the one line at the end."""
import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time


class Test:
    def __init__(self, options):
        self.options = options
        self.failures = []
        self.checks = 0

    def check(self, what, condition, detail=""):
        self.checks += 1
        if not condition:
            self.failures.append(f"{what}: {detail}")

    def command(self, *words):
        return [self.options.vramtrack, "run", *words]

    def environment(self, **variables):
        environment = dict(os.environ, VRAMTRACK_LIBRARY=self.options.tracer, VRAMTRACK_SIMGPU=self.options.simgpu,
                           **variables)
        environment.pop("LD_PRELOAD", None)
        return environment

    def run(self, folder, *words, **variables):
        return subprocess.run(self.command(*words), cwd=folder, capture_output=True, text=True, timeout=120,
                              env=self.environment(**variables))

    def exit_codes(self, folder):
        for words, code in [(["--", "sh", "-c", "exit 7"], 7), (["true"], 0), (["--", "sh", "-c", "kill -9 $$"], 137),
                            (["--", "no-such-program-here"], 127), (["--", "/etc/passwd"], 126), ([], 2),
                            (["--stacks", "sideways", "--", "true"], 2), (["--no-such-option", "--", "true"], 2)]:
            done = self.run(folder, *words)
            self.check(f"exit code of run {words}", done.returncode == code, f"{done.returncode}, {done.stderr}")
            self.check(f"run {words} says one line at most", done.stderr.count("\n") <= 1, done.stderr)
        # What follows the program is the program's, options of ours included.
        done = self.run(folder, "sh", "-c", "echo \"$@\"", "x", "--", "-o", "y", "--force")
        self.check("arguments", done.stdout == "-- -o y --force\n", done.stdout)

    def no_gpu(self, folder):
        done = self.run(folder, "--", "true")
        self.check("without a GPU", "no GPU was used" in done.stderr and "--simulate" in done.stderr, done.stderr)
        self.check("without a GPU: no file", not list(pathlib.Path(folder).glob("*.vrt")))

    def simulated(self, folder):
        done = self.run(folder, "--simulate", "8GiB", "--", self.options.victim, "leak")
        self.check("simulated: exit", done.returncode == 0, done.stderr)
        lines = done.stderr.splitlines()
        self.check("simulated: first line", lines and "SIMULATED GPU (8GiB)" in lines[0], done.stderr)
        self.check("simulated: last line", "next: vramtrack report" in lines[-1] and " 0 dropped" in lines[-1], lines[-1])
        traces = [p for p in pathlib.Path(folder).glob("*.vrt") if not p.is_symlink()]
        self.check("simulated: one trace", len(traces) == 1, str(traces))
        latest = pathlib.Path(folder, "vramtrack.latest.vrt")
        self.check("simulated: link", latest.is_symlink() and latest.resolve() == traces[0].resolve())

    def rehearsal_options(self, folder):
        """What was chosen is said before the start, and reaches the program."""
        show = ["--", "sh", "-c", "echo $SIMGPU_EVENTS $VRAMTRACK_STOP_AFTER_STEPS"]
        for words, variable, out, said in [
                (["--simulate", "8GiB"], None, "3", "ends after 3 steady steps"),
                (["--simulate", "8GiB"], "7", "7", "ends after 7 steady steps"),
                (["--simulate", "8GiB", "--stop-after-steps", "1"], "7", "1", "ends after 1 steady step "),
                (["--simulate", "8GiB", "--stop-after-steps", "0"], None, "0", "runs to the end"),
                (["--stop-after-steps", "2"], None, "2", ""),
                ([], None, "0", ""),
                (["--simulate", "8GiB", "--events", "late:12"], None, "late:12 3", "events complete late:12"),
                (["--simulate", "8GiB", "--events", "at-once"], None, "3", "SIMULATED")]:
            variables = {"VRAMTRACK_STOP_AFTER_STEPS": variable} if variable else {}
            done = self.run(folder, *words, *show, **variables)
            self.check(f"run {words} {variables}", done.stdout.strip() == out and said in done.stderr.splitlines()[0],
                       done.stdout + done.stderr)
        for words, variables in [(["--events", "late:1"], {}), (["--simulate", "8GiB", "--events", "late"], {}),
                                 (["--simulate", "8GiB", "--events", "late:0"], {}),
                                 (["--simulate", "8GiB", "--stop-after-steps", "-1"], {}),
                                 (["--simulate", "8GiB"], {"VRAMTRACK_STOP_AFTER_STEPS": "soon"})]:
            done = self.run(folder, *words, "--", "true", **variables)
            self.check(f"refused: {words} {variables}", done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr)
        late = self.run(folder, "--simulate", "8GiB", "--events", "late:12", "-o", "late.vrt", "--", self.options.victim, "leak")
        report = subprocess.run([self.options.vramtrack, "report", "late.vrt"], cwd=folder, capture_output=True, text=True)
        self.check("the report says the seed", "events complete late, seed 12" in " ".join(report.stdout.split()),
                   late.stderr + report.stdout)

    def output(self, folder):
        victim = ["--simulate", "8GiB", "--", self.options.victim, "leak"]
        given = pathlib.Path(folder, "given.vrt")
        self.check("-o FILE", self.run(folder, "-o", "given.vrt", *victim).returncode == 0 and given.exists())
        before = given.read_bytes()
        done = self.run(folder, "-o", "given.vrt", *victim)
        self.check("-o FILE that exists", done.returncode == 2 and "--force" in done.stderr, done.stderr)
        self.check("-o FILE that exists is left alone", given.read_bytes() == before)
        done = self.run(folder, "-o", "given.vrt", "--force", *victim)
        self.check("--force", done.returncode == 0 and given.read_bytes() != before, done.stderr)
        self.check("-o DIR/", self.run(folder, "-o", "new/", *victim).returncode == 0)
        self.check("-o DIR/: a trace in it", len(list(pathlib.Path(folder, "new").glob("vramtrack.*.vrt"))) == 2)
        done = self.run(folder, "-o", "nowhere/x.vrt", *victim)
        self.check("-o in no folder", done.returncode == 2 and "there is no folder" in done.stderr, done.stderr)

    def two_processes(self, folder):
        done = self.run(folder, "--simulate", "8GiB", "--", self.options.victim, "shared-between-processes")
        self.check("two processes: one line for both", "2 traces in" in done.stderr, done.stderr)

    def signals(self, folder):
        for sent, code in [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGUSR1, 138)]:
            with subprocess.Popen(self.command("--", "sh", "-c", "echo ready; exec sleep 60"), cwd=folder, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.environment()) as process:
                process.stdout.readline()
                time.sleep(0.3)
                process.send_signal(sent)
                self.check(f"{sent.name} reaches the program", process.wait(30) == code, process.returncode)

    def preload_is_kept(self, folder):
        environment = self.environment()
        environment["LD_PRELOAD"] = self.options.other
        done = subprocess.run(self.command("--", "sh", "-c", "echo $LD_PRELOAD"), cwd=folder, capture_output=True,
                              text=True, timeout=60, env=environment)
        libraries = done.stdout.strip().split(":")
        self.check("the user's LD_PRELOAD stays, behind ours", libraries == [self.options.tracer, self.options.other],
                   str(libraries))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tracer", required=True)
    parser.add_argument("--vramtrack", required=True)
    parser.add_argument("--simgpu", required=True, help="folder of the stand-in libraries")
    parser.add_argument("--victim", required=True, help="victim_tour, without a way to the runtime of its own")
    parser.add_argument("--other", required=True, help="some library to preload")
    options = parser.parse_args()
    test = Test(options)
    for part in (test.exit_codes, test.no_gpu, test.simulated, test.rehearsal_options, test.output, test.two_processes, test.signals,
                 test.preload_is_kept):
        with tempfile.TemporaryDirectory() as folder:
            part(folder)
    for failure in test.failures:
        print(failure)
    print(f"{test.checks} checks, {len(test.failures)} failed")
    return 1 if test.failures else 0


if __name__ == "__main__":
    sys.exit(main())
