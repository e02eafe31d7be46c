#!/usr/bin/env python3
"""Names and texts of errors, against the vendor's library, which gives them without a GPU.

    check_error_texts.py OURS REAL

Exits 77 (skipped) where there is no copy of the vendor's library.
"""

import ctypes
import json
import os
import sys


def texts(path):
    library = ctypes.CDLL(path)
    table = {}
    for function in ("cudaGetErrorName", "cudaGetErrorString"):
        get = getattr(library, function)
        get.restype = ctypes.c_char_p
        table[function] = [get(code).decode() for code in range(0, 1100)]
    return table


def main():
    ours_path, real_path = sys.argv[1:3]
    if not os.path.exists(real_path):
        print(f"skipped: no {real_path}")
        return 77
    # Each in a process of its own: both have the same soname.
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as out:
            json.dump(texts(real_path), out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        real = json.load(answer)
    ours = texts(ours_path)
    different = 0
    for function, answers in real.items():
        for code, text in enumerate(answers):
            if ours[function][code] != text:
                print(f"{function}({code}): {ours[function][code]!r}, the vendor's {text!r}", file=sys.stderr)
                different += 1
    known = sum(text != "unrecognized error code" for text in real["cudaGetErrorString"])
    print(f"{known} codes compared, {different} differences")
    return 1 if different or known < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
