"""Real PyTorch on the simulated GPU, out of memory for planted reasons: what `vramtrack oom` says of the
trace must be the reason. Where the exception is one of PyTorch's messages, its text alone must not say
anything else with confidence.

  run_planted.py --simgpu DIR --tracer FILE --vramtrack FILE [NAME ...]
Skipped (77) without PyTorch; VRAMTRACK_PYTHON names the Python that has it.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
CARD = "h100-80g"


def preloads(directory, tracer, python):
    found = subprocess.run([python, "-c", "import torch; print(torch.version.cuda or '')"],
                           capture_output=True, text=True)
    major = found.stdout.strip().split(".")[0]
    if found.returncode or not major:
        sys.exit(SKIPPED)
    names = ["libcuda.so.1", "libnvidia-ml.so.1", f"libcudart.so.{major}", f"libcublasLt.so.{major}",
             f"libcublas.so.{major}", "libcudnn.so.9", "libnccl.so.2"]
    return ":".join([tracer] + [str(pathlib.Path(directory, name)) for name in names])


def verdicts():
    """name -> verdict, read from the source, so that this process needs no PyTorch."""
    text = (HERE / "scripts.py").read_text()
    return dict(re.findall(r'def (\w+)\(\):\n    """([a-z ]+)"""', text))


def ask(vramtrack, *arguments, text=None):
    answer = subprocess.run([vramtrack, "oom", "--json", *arguments], capture_output=True, text=True,
                            input=text)
    return json.loads(answer.stdout) if answer.stdout else {"verdict": None, "error": answer.stderr}


def run(name, options, python, preload):
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_PRELOAD=preload, SIMGPU=CARD, VRAMTRACK_OUTPUT=folder + "/")
        done = subprocess.run([python, str(HERE / "scripts.py"), name], env=environment, text=True,
                              capture_output=True, timeout=1800)
        traces = list(pathlib.Path(folder).glob("vramtrack.scripts*.vrt"))
        if not traces:
            return {"verdict": None, "error": "no trace: " + done.stderr[-500:]}, None, done.stderr
        said = ask(options.vramtrack, str(traces[0]))
    errors = re.findall(r"(?:OutOfMemoryError|AcceleratorError|RuntimeError): .*", done.stderr)
    message = ask(options.vramtrack, "--message", "-", text=errors[-1]) if errors else None
    return said, message, done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--simgpu", required=True)
    parser.add_argument("--tracer", required=True)
    parser.add_argument("--vramtrack", required=True)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    python = os.environ.get("VRAMTRACK_PYTHON") or sys.executable
    preload = preloads(options.simgpu, options.tracer, python)
    failures = 0
    for name, expected in verdicts().items():
        if options.names and name not in options.names:
            continue
        said, message, stderr = run(name, options, python, preload)
        good = said.get("verdict") == expected
        told = ""
        if message and message.get("recognised"):
            wrong = message["verdict"] not in (expected, "undetermined")
            told = f"; its text alone: {message['verdict']} ({message['confidence']})"
            # From the text alone a leak and a peak look like a full card; that is no contradiction.
            blind = expected in ("leak", "transient peak") and message["verdict"] == "capacity"
            good = good and not (wrong and not blind and message["confidence"] == "high")
        failures += not good
        print(f"{'ok  ' if good else 'FAIL'} {name:22} {said.get('verdict')} (planted: {expected}){told}")
        if not good:
            print("     ", said.get("reason") or said.get("error"), "\n", stderr[-600:])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
