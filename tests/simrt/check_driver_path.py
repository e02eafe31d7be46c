#!/usr/bin/env python3
"""How the runtime reaches the driver, and by which entry launches go: seen by spy_driver.cpp in between.

    check_driver_path.py VICTIM_TOUR SPY_FOLDER DRIVER [--per-thread] [--kernels]

The order and the names are what NVIDIA's runtime asks for on a machine; a tracer's hooks are built for them.
"""

import argparse
import os
import re
import subprocess
import sys

# Requests that must be among those with flags 0, and with the per-thread default stream's flag: name, version.
LEGACY = {("cuMemAlloc", 3020), ("cuMemFree", 3020), ("cuMemAllocManaged", 6000),
          ("cuMemHostAlloc", 2020), ("cuMemHostRegister", 6050), ("cuMemAllocAsync", 11020),
          ("cuMemcpyAsync", 4000), ("cuLaunchKernel", 4000), ("cuLaunchKernelEx", 11060),
          ("cuIpcOpenMemHandle", 11000), ("cuLibraryLoadData", 12000)}
PER_THREAD = {("cuMemAllocAsync", 11020), ("cuMemFreeAsync", 11020), ("cuMemcpyAsync", 7000),
              ("cuMemcpy", 7000), ("cuLaunchKernel", 7000), ("cuLaunchKernelEx", 11060)}
# What the vendor's runtime never asks for, because programs do.
NEVER = {"cuMemCreate", "cuMemMap", "cuMemAddressReserve", "cuMemAllocHost"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("victim")
    parser.add_argument("spy_folder")
    parser.add_argument("driver")
    parser.add_argument("--per-thread", action="store_true")
    parser.add_argument("--kernels", action="store_true")
    options = parser.parse_args()
    environment = dict(os.environ, SIMGPU="8GiB", SPY_DRIVER=options.driver,
                       LD_LIBRARY_PATH=options.spy_folder)
    environment.pop("LD_PRELOAD", None)
    subject = "kernels" if options.kernels else "device-memory"
    done = subprocess.run([options.victim, subject], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60)
    asked = [(name, int(version), int(flags)) for name, version, flags in
             re.findall(r"^asked (\S+) (\d+) (\d+)$", done.stderr, re.M)]
    launched = {name: int(count) for name, count in
                re.findall(r"^launched (\S+) (\d+)$", done.stderr, re.M)}
    problems = []
    if done.returncode != 0:
        problems.append(f"exit {done.returncode}: {done.stderr[-300:]}")
    if asked[:4] != [("-", 0, 0), ("cuInit", 2000, 0), ("cuGetProcAddress", 11030, 0),
                     ("cuGetProcAddress", 12000, 0)]:
        problems.append(f"begins with {asked[:4]}")
    with_flags = {flags: {(name, version) for name, version, its in asked if its == flags}
                  for flags in (0, 2)}
    problems += [f"not asked with flags 0: {one}" for one in sorted(LEGACY - with_flags[0])]
    problems += [f"not asked with flags 2: {one}" for one in sorted(PER_THREAD - with_flags[2])]
    problems += [f"suffix in {name}" for name, _, _ in asked if re.search(r"_(v\d|ptsz|ptds)$", name)]
    problems += [f"asked for {name}" for name, _, _ in asked if name in NEVER]
    if options.kernels:
        suffix = "_ptsz" if options.per_thread else ""
        # <<<>>> twice and cudaLaunchKernel once, the extended and the cooperative launch once each; the empty
        # grid not at all.
        wanted = {"cuLaunchKernel" + suffix: 3, "cuLaunchKernelEx" + suffix: 1,
                  "cuLaunchCooperativeKernel" + suffix: 1}
        seen = {name: count for name, count in launched.items() if count}
        if seen != wanted:
            problems.append(f"launches {seen} instead of {wanted}")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(asked)} requests, {sum(flags == 2 for _, _, flags in asked)} of them for the "
          f"per-thread default stream; launches {launched}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
