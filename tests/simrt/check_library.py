#!/usr/bin/env python3
"""The file libcudart.so.N itself: programs bind at load time, so every name must be there, under the version node.

    check_library.py LIBRARY EXPORTS_TXT [--real LIBRARY]

EXPORTS_TXT lists what the vendor's releases of this major version export; --real names a copy of the vendor's
library, whose exports must all be listed (a newer one may have more: then the list is out of date).
"""

import argparse
import pathlib
import re
import subprocess
import sys

# The loader and libc's kin; anything else would have to be present in every host.
ALLOWED = re.compile(r"(libc|libm|libdl|libpthread|librt|ld-linux-x86-64)\.so\.\d+$")


def exports(library):
    """Name to version node."""
    text = subprocess.run(
        ["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    found = {}
    for line in text.splitlines():
        name, _, node = line.split()[-1].partition("@")
        if not name.startswith("libcudart"):
            found[name] = node.lstrip("@")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("exports", type=pathlib.Path)
    parser.add_argument("--real", type=pathlib.Path)
    options = parser.parse_args()
    listed = set(options.exports.read_text().split())
    ours = exports(options.library)
    dynamic = subprocess.run(
        ["readelf", "-dW", options.library], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    soname = re.search(r"\(SONAME\).*\[(.*)\]", dynamic).group(1)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    problems = [f"not exported: {name}" for name in sorted(listed - set(ours))]
    problems += [f"exported beyond the vendor's: {name}" for name in sorted(set(ours) - listed)]
    problems += [f"{name} has node {node!r}" for name, node in ours.items() if node != soname]
    problems += [f"needs {name}" for name in needed if not ALLOWED.match(name)]
    if soname != options.library.name:
        problems.append(f"soname {soname}")
    if options.real and options.real.exists():
        problems += [f"the vendor's has {name}, the list has not"
                     for name in sorted(set(exports(options.real)) - listed)]
    for problem in problems:
        print(f"{options.library.name}: {problem}", file=sys.stderr)
    print(f"{options.library.name}: {len(ours)} names under {soname}, needs {', '.join(needed)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
