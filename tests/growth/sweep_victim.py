"""Takes memory as a model would, from the CUDA runtime alone: --seq N takes 1 MiB + 4096 N + N*N bytes,
--width times. Fails where it is told to, and where the device is full."""

import argparse
import ctypes
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--seq", type=int, required=True)
parser.add_argument("--width", type=int, default=1)
parser.add_argument("--fail-at", type=int, default=0)
args = parser.parse_args()
print(f"seq {args.seq} width {args.width}")
if args.seq == args.fail_at:
    sys.exit("nothing good comes of this length")
cudart = ctypes.CDLL("libcudart.so.13")
for size in (1 << 20, 4096 * args.seq, args.seq * args.seq):
    for _ in range(args.width):
        pointer = ctypes.c_void_p()
        error = cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size))
        if error:
            sys.exit(f"out of memory: error {error}")
