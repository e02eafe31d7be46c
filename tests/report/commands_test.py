"""Every command, as a user runs it: on good files it answers, on bad ones it says so in one line.

commands_test.py VRAMTRACK MAKE_TRACE SNAPSHOTS
"""
import json
import os
import subprocess
import sys
import tempfile

VRAMTRACK, MAKE_TRACE, SNAPSHOTS = (os.path.abspath(path) for path in sys.argv[1:4])

# How each command takes a file. Those that this build does not have are left out.
COMMANDS = [
    ["report", "FILE"],
    ["report", "FILE", "--json"],
    ["report", "FILE", "--markdown"],
    ["blocks", "FILE"],
    ["blocks", "FILE", "--json"],
    ["check", "FILE"],
    ["check", "FILE", "--json"],
    ["oom", "FILE"],
    ["fragmentation", "FILE"],
    ["leaks", "FILE"],
    ["waste", "FILE"],
    ["audit", "FILE"],
    ["export", "FILE"],
    ["diff", "FILE", "FILE"],
    ["growth", "FILE", "FILE", "FILE", "--by", "seq=1,2,3"],
    ["symbolize", "FILE"],
]

failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED:", what)


def run(arguments, cwd=None):
    return subprocess.run([VRAMTRACK] + arguments, cwd=cwd, capture_output=True, timeout=1800)


def available():
    listing = run(["--help"]).stdout.decode()
    names = {line.split()[0] for line in listing.splitlines() if line.startswith("  ")}
    return [c for c in COMMANDS if c[0] in names]


def with_file(command, path):
    return [path if word == "FILE" else word for word in command]


def make(path, kind=""):
    subprocess.run([MAKE_TRACE, path] + ([kind] if kind else []), check=True)
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def expect_refusal(command, path, what):
    done = run(with_file(command, path))
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    name = f"{' '.join(command)} on {what}"
    expect(done.returncode == 2, f"{name}: exit code {done.returncode}, not 2; {lines[-1:]}")
    expect(len(lines) == 1, f"{name}: {len(lines)} lines on stderr: {lines[:3]}")
    expect(done.stdout == b"", f"{name}: wrote to stdout: {done.stdout[:80]!r}")


def hostile_files(folder):
    whole = make(os.path.join(folder, "whole.vrt"))
    window = whole.index(b"CHNK") if b"CHNK" in whole else len(whole)
    flipped = bytearray(whole)
    flipped[window + 100] ^= 0x40
    newer = bytearray(whole)
    newer[8] = 99
    bad = {
        "empty": b"",
        "text": b"This is not a trace.\n",
        "wrong magic": b"X" + whole[1:],
        "newer version": bytes(newer),
        "only a header": whole[:80],
        "half": whole[: len(whole) // 2],
        "all but the last ten bytes": whole[:-10],
        "damaged": bytes(flipped),
        "zeros": bytes(1 << 20),
        "binary": bytes(range(256)) * 64,
    }
    for name, data in bad.items():
        path = os.path.join(folder, "bad." + name.replace(" ", "_") + ".vrt")
        write(path, data)
        yield name, path
    empty = os.path.join(folder, "empty")  # of a folder with recordings, `leaks` reads all
    os.makedirs(empty, exist_ok=True)
    yield "a directory", empty
    yield "no such file", os.path.join(folder, "absent.vrt")


def test_refusals(folder):
    for name, path in hostile_files(folder):
        for command in available():
            expect_refusal(command, path, name)


def test_cut_everywhere(folder):
    """The text report, cut at many lengths: a clear refusal each time."""
    whole = make(os.path.join(folder, "whole.vrt"))
    path = os.path.join(folder, "cut.vrt")
    for length in range(0, len(whole) - 8, max(1, len(whole) // 150)):
        write(path, whole[:length])
        expect_refusal(["report", "FILE", "--json"], path, f"a file cut to {length}")


# Commands that need more than every recording holds say what is missing.
LACKING = {"waste": b"--kernels on", "audit": b"--cupti"}


def test_good_files(folder):
    good = os.path.join(folder, "good.vrt")
    make(good)
    failed = os.path.join(folder, "failed.vrt")
    make(failed, "oom")
    for command in available():
        # Growth is of runs that came to their end.
        done = run(with_file(command, good if command[0] == "growth" else failed))
        name = " ".join(command)
        if command[0] in LACKING:
            expect(done.returncode == 2 and LACKING[command[0]] in done.stderr and done.stdout == b"",
                   f"{name}: exit code {done.returncode}: {done.stderr!r}")
            continue
        expect(done.returncode in (0, 3), f"{name}: exit code {done.returncode}: {done.stderr!r}")
        if "--json" in command:
            document = json.loads(done.stdout)
            expect(document["schema"].startswith("vramtrack."), f"{name}: schema")
            expect(done.stderr == b"", f"{name}: stderr {done.stderr!r}")


def test_report_json(folder):
    path = os.path.join(folder, "good.vrt")
    make(path)
    document = json.loads(run(["report", path, "--json", "--at", "mark:top"]).stdout)
    device = document["devices"][0]
    mib = 1 << 20
    expect(device["moment"]["in_use_bytes"] == 375 * mib, "in use at the mark")
    expect(device["allocated_peak"]["allocated_bytes"] == 170 * mib, "allocated peak")
    expect(sum(device["moment"]["categories"].values()) == 375 * mib, "categories sum up")

    blocks = json.loads(run(["blocks", path, "--json", "--at", "mark:top"]).stdout)["blocks"]
    expect(sum(b["size"] for b in blocks) == (170 + 25) * mib, "blocks sum to what is live")
    kv = [b for b in blocks if b["category"] == "kv_cache"]
    expect(len(kv) == 1 and kv[0]["confidence"] > 0.5 and kv[0]["reason"], "the KV block")
    expect(kv[0]["frames"][1]["line"] == 42, "frames of the KV block")
    expect(kv[0]["module"] == "GPT/Attention", "module of the KV block")
    expect(kv[0]["phase"] == "kv_cache" and kv[0]["step"] == 2, "phase and step of the KV block")


def test_salvage(folder):
    whole = bytearray(make(os.path.join(folder, "whole.vrt")))
    whole[whole.index(b"CHNK") + 100] ^= 0x40
    path = os.path.join(folder, "damaged.vrt")
    write(path, bytes(whole))
    done = run(["--salvage", "report", path])
    expect(done.returncode == 0 and b"damaged" in done.stdout, "salvage reads and says so")


def test_latest(folder):
    empty = os.path.join(folder, "empty_folder")
    os.mkdir(empty)
    done = run(["report"], cwd=empty)
    expect(done.returncode == 2 and b"no trace in this folder" in done.stderr, "no latest trace")
    make(os.path.join(empty, "vramtrack.old.vrt"))
    os.utime(os.path.join(empty, "vramtrack.old.vrt"), (1, 1))
    make(os.path.join(empty, "vramtrack.new.vrt"), "oom")
    done = run(["report"], cwd=empty)
    expect(b"Out of memory" in done.stdout, "the newest trace is the latest")
    os.symlink("vramtrack.old.vrt", os.path.join(empty, "vramtrack.latest.vrt"))
    done = run(["report"], cwd=empty)
    expect(b"Out of memory" not in done.stdout, "the link says which is the latest")


def test_usage(folder):
    for arguments in ([], ["nonsense"], ["report", "--by", "colour"], ["report", "--nonsense"],
                      ["report", "--json", "--markdown"]):
        done = run(arguments, cwd=folder)
        expect(done.returncode == 2, f"usage {arguments}: exit code {done.returncode}")
        expect(len(done.stderr.decode().strip().splitlines()) == 1, f"usage {arguments}: one line")
    path = os.path.join(folder, "good.vrt")
    make(path)
    expect_refusal(["report", "FILE", "--at", "mark:nowhere"], path, "a mark that is not there")
    expect_refusal(["report", "FILE", "--at", "oom"], path, "a job without an OOM")
    expect_refusal(["blocks", "FILE", "--at", "oom"], path, "a job without an OOM")
    expect_refusal(["oom", "--message", " \n"], path, "an empty message")
    expect(run(["--version"]).returncode == 0, "--version")


def test_snapshots(folder):
    names = [n for n in sorted(os.listdir(SNAPSHOTS)) if n.endswith(".pickle.zst")]
    expect(len(names) >= 13, "snapshots are there")
    for name in names:
        for command in (["report", "FILE", "--json"], ["check", "FILE", "--json"]):
            done = run(with_file(command, os.path.join(SNAPSHOTS, name)))
            expect(done.returncode == 0, f"{command[0]} on {name}: {done.stderr!r}")
            document = json.loads(done.stdout)
            for device in document.get("devices", []):
                for view in ("peak", "allocated_peak", "moment"):
                    view = device[view]
                    expect(sum(view["categories"].values()) == view["in_use_bytes"],
                           f"{name}: categories sum up")


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            with tempfile.TemporaryDirectory() as folder:
                test(folder)
            print("done:", name)
    sys.exit(1 if failures else 0)


main()
