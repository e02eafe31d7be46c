#!/usr/bin/env python3
"""What the runtime answers on a machine without any driver, against the vendor's library.

    check_without_driver.py OURS REAL

Exits 77 (skipped) where there is no copy of the vendor's library, or where a driver is installed.
"""

import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

POINTER = ctypes.c_void_p


def answers(path):
    """Result of each call in turn, with the last error after it and what it wrote."""
    rt = ctypes.CDLL(path)
    rt.cudaFree.argtypes = rt.cudaFreeHost.argtypes = [POINTER]
    rt.cudaStreamSynchronize.argtypes = [POINTER]
    rt.cudaMemset.argtypes = [POINTER, ctypes.c_int, ctypes.c_size_t]
    rt.cudaMemcpy.argtypes = [POINTER, POINTER, ctypes.c_size_t, ctypes.c_int]
    number = ctypes.c_int(-7)
    size = ctypes.c_size_t(7)
    pointer = POINTER()
    attributes = (ctypes.c_char * 256)()
    host = ctypes.create_string_buffer(64)
    calls = [
        ("cudaDriverGetVersion", lambda: rt.cudaDriverGetVersion(ctypes.byref(number)), number),
        ("cudaGetDeviceCount", lambda: rt.cudaGetDeviceCount(ctypes.byref(number)), number),
        ("cudaGetDevice", lambda: rt.cudaGetDevice(ctypes.byref(number)), None),
        ("cudaSetDevice", lambda: rt.cudaSetDevice(0), None),
        ("cudaMalloc", lambda: rt.cudaMalloc(ctypes.byref(pointer), size), None),
        ("cudaMallocHost", lambda: rt.cudaMallocHost(ctypes.byref(pointer), size), None),
        ("cudaMallocManaged", lambda: rt.cudaMallocManaged(ctypes.byref(pointer), size, 1), None),
        ("cudaFree of null", lambda: rt.cudaFree(None), None),
        ("cudaFreeHost of null", lambda: rt.cudaFreeHost(None), None),
        ("cudaDeviceSynchronize", lambda: rt.cudaDeviceSynchronize(), None),
        ("cudaStreamSynchronize", lambda: rt.cudaStreamSynchronize(None), None),
        ("cudaMemset", lambda: rt.cudaMemset(host, 0, 64), None),
        ("cudaMemcpy", lambda: rt.cudaMemcpy(host, host, 64, 0), None),
        ("cudaPointerGetAttributes", lambda: rt.cudaPointerGetAttributes(attributes, host), None),
        ("cudaDeviceReset", lambda: rt.cudaDeviceReset(), None),
        ("cudaGetDeviceProperties", lambda: rt.cudaGetDeviceProperties((ctypes.c_char * 4096)(), 0), None),
        ("cudaMemGetInfo", lambda: rt.cudaMemGetInfo(ctypes.byref(size), ctypes.byref(size)), None),
    ]
    table = {}
    for name, call, written in calls:
        result = call()
        table[name] = [result, rt.cudaPeekAtLastError(), rt.cudaGetLastError(), rt.cudaGetLastError(),
                       written.value if written is not None else None]
    return table


def in_a_process(path):
    done = subprocess.run([sys.executable, __file__, "--answers", path], stdout=subprocess.PIPE, check=True,
                          env={k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")})
    return json.loads(done.stdout)


def main():
    if sys.argv[1] == "--answers":
        print(json.dumps(answers(sys.argv[2])))
        return 0
    ours, real = sys.argv[1:3]
    try:
        ctypes.CDLL("libcuda.so.1")
        print("skipped: a driver is installed")
        return 77
    except OSError:
        pass
    if not os.path.exists(real):
        print(f"skipped: no {real}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        # Away from the simulated driver, which it would find beside itself.
        alone = pathlib.Path(folder) / pathlib.Path(ours).name
        shutil.copy(ours, alone)
        simulated, vendor = in_a_process(str(alone)), in_a_process(real)
    different = [name for name in vendor if simulated[name] != vendor[name]]
    for name in different:
        print(f"{name}: {simulated[name]}, the vendor's {vendor[name]}", file=sys.stderr)
    print(f"{len(vendor)} calls compared, {len(different)} differences")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
