"""Pairs of jobs that differ in one thing, for `vramtrack diff`. The model and its training step are those of
llama_jobs.py; the plain jobs hold tensors of known size."""

import functools
import sys

from llama_jobs import train
from traced_jobs import run_inside

MIB = 1024 ** 2


def extra_tensor():
    """A tensor that outlives the training and that nobody else makes."""
    import torch
    kept = torch.empty(24 * MIB, dtype=torch.uint8, device="cuda")
    train(seq=512, attention="sdpa")
    return {"kept": kept.numel()}


def rounded():
    """The allocator rounds requests up to powers of two and the middles between them."""
    import torch
    torch._C._accelerator_setAllocatorSettings("roundup_power2_divisions:2")
    return train(seq=512, attention="sdpa")


def held(sizes, passing=()):
    """Holds tensors of these MiB, after others were there for a moment: these stay in the cache."""
    import torch
    tensors = []
    for size in passing:
        tensors.append(torch.empty(size * MIB, dtype=torch.uint8, device="cuda"))
    tensors.clear()
    tensors = [torch.empty(size * MIB, dtype=torch.uint8, device="cuda") for size in sizes]
    return {"held": sum(t.numel() for t in tensors)}


JOBS = {
    "base": functools.partial(train, seq=512, attention="sdpa"),
    "batch": functools.partial(train, seq=512, attention="sdpa", batch=4),
    "dtype": functools.partial(train, seq=512, attention="sdpa", dtype="bfloat16"),
    "checkpointed": functools.partial(train, seq=512, attention="sdpa", batch=4, checkpoint=True),
    "long eager": functools.partial(train, seq=2048, attention="eager"),
    "long fused": functools.partial(train, seq=2048, attention="sdpa"),
    "extra": extra_tensor,
    "rounded": rounded,
    "lean cache": functools.partial(held, (100, 200)),
    "fat cache": functools.partial(held, (90, 150), (30, 50)),
}

if __name__ == "__main__" and sys.argv[1] == "--inside":
    run_inside(JOBS, sys.argv[2], sys.argv[3:])
