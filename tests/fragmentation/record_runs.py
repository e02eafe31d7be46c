#!/usr/bin/env python3
"""Runs allocation patterns in real PyTorch and stores its own snapshots: tests/data/snapshots/simulated.

  record_runs.py OUT [PATTERN,...] [SETTING,...]

Each pattern runs under each setting in a forked child, because the allocator reads its settings once. Preload the
simulated GPU (see tests/torch) where there is no other. The allocator is PyTorch's, whatever the device: its
addresses and segment events are what allocator_replay_test compares the simulator with.
"""
import os
import pickle
import random
import sys

import torch

SETTINGS = {
    "def": "",
    "exp": "expandable_segments:True",
    "split": "max_split_size_mb:64",
    "round": "roundup_power2_divisions:4",
    "round8": "roundup_power2_divisions:[1:2,16:4,>:8]",
    "expsplit": "expandable_segments:True,max_split_size_mb:128",
}


def empty(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def churn(seed, streams=1, count=400, largest=26.0):
    """Allocates and frees at random, on several streams, with the cache emptied now and then."""
    rng = random.Random(seed)
    queues = [torch.cuda.Stream() for _ in range(streams - 1)] + [torch.cuda.current_stream()]
    live = []
    for _ in range(count):
        if live and rng.random() < 0.48:
            live.pop(rng.randrange(len(live)))
        else:
            small = rng.random() < 0.5
            size = int(2 ** (rng.uniform(8, 20) if small else rng.uniform(20, largest)))
            with torch.cuda.stream(rng.choice(queues)):
                live.append(empty(size))
        if rng.random() < 0.01:
            torch.cuda.empty_cache()
    return live


def train(layers=4, width=256, steps=3, batch=32):
    blocks = [torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.ReLU(),
                                  torch.nn.Linear(4 * width, width)) for _ in range(layers)]
    model = torch.nn.Sequential(*blocks).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(steps):
        model(torch.randn(batch * (step + 1), width, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def grow():
    """A tensor that grows by 1 MiB in each round: the pattern that plain segments bear worst."""
    tensor = empty(10 << 20)
    for i in range(30):
        new = empty((10 + i) << 20)
        tensor = new
    return tensor


def record():
    """Blocks that another stream uses, so that their frees are pending for a while."""
    stream = torch.cuda.Stream()
    live = []
    for i in range(50):
        tensor = empty((i % 7 + 1) << 20)
        tensor.record_stream(stream)
        live.append(empty(3 << 20))
        del tensor
        if i % 5 == 0:
            live.clear()
    return live


def pool():
    """A private pool beside the default one."""
    private = torch.cuda.MemPool()
    live = []
    with torch.cuda.use_mem_pool(private):
        for i in range(20):
            live.append(empty((i % 5 + 1) << 20))
    for i in range(20):
        live.append(empty((i % 3 + 1) << 20))
    del live[::2]
    for i in range(10):
        live.append(empty((i % 3 + 1) << 20))
    return live, private


PATTERNS = {
    "churn1": lambda: churn(1),
    "churn2": lambda: churn(2),
    "churn3": lambda: churn(3, 2),
    "churn4": lambda: churn(4, 3),
    "big": lambda: churn(5, 1, 600, 28),
    "big2": lambda: churn(6, 2, 600, 28),
    "train": train,
    "train2": lambda: train(8, 512, 4, 64),
    "grow": grow,
    "record": record,
    "pool": pool,
}


def without_paths(snapshot):
    """Frames keep the names of their files only."""
    holders = [block for segment in snapshot["segments"] for block in [segment, *segment["blocks"]]]
    holders += [entry for trace in snapshot["device_traces"] for entry in trace]
    for holder in holders:
        for frame in holder.get("frames", []):
            frame["filename"] = os.path.basename(frame["filename"])
    return snapshot


def run(pattern, setting, path):
    os.environ["PYTORCH_ALLOC_CONF"] = os.environ["PYTORCH_CUDA_ALLOC_CONF"] = SETTINGS[setting]
    torch.cuda.memory._record_memory_history(max_entries=1_000_000, stacks="python")
    kept = PATTERNS[pattern]()
    snapshot = without_paths(torch.cuda.memory._snapshot())
    del kept
    with open(path, "wb") as file:
        pickle.dump(snapshot, file, protocol=4)


def main():
    out = sys.argv[1]
    patterns = sys.argv[2].split(",") if len(sys.argv) > 2 else list(PATTERNS)
    settings = sys.argv[3].split(",") if len(sys.argv) > 3 else list(SETTINGS)
    failed = 0
    for pattern in patterns:
        for setting in settings:
            child = os.fork()
            if child == 0:
                run(pattern, setting, os.path.join(out, f"{pattern}.{setting}.pickle"))
                os._exit(0)
            failed |= os.waitpid(child, 0)[1]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
