"""The runs behind docs/claims.md: what scripts/claims traces. Sizes come from the variable CLAIMS_SIZE."""

import functools
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "growth"))
from llama_jobs import prefill, train  # noqa: E402
from traced_jobs import run_inside  # noqa: E402

MIB = 1024 ** 2
SIZE = json.loads(os.environ.get("CLAIMS_SIZE", "null"))


def load():
    """Weights in float32 first, then in half precision, as a naive loader has them."""
    import torch
    import transformers
    from llama_jobs import config
    with torch.device("cuda"):
        model = transformers.LlamaForCausalLM(config("sdpa", 512, SIZE))
    model.to(torch.bfloat16)
    torch.cuda.empty_cache()
    return {"peak": torch.cuda.max_memory_allocated(), "settled": torch.cuda.memory_allocated(),
            "reserved": torch.cuda.memory_reserved()}


def host_profiler():
    """What a line-by-line profiler of host memory sees of 256 MiB on the device."""
    import tracemalloc
    import torch
    torch.empty(1, device="cuda")
    tracemalloc.start()
    kept = torch.empty(256 * MIB, dtype=torch.uint8, device="cuda")
    seen = tracemalloc.get_traced_memory()[1]
    return {"device": kept.numel(), "seen": seen, "active": torch.cuda.memory_stats()["active_bytes.all.peak"],
            "allocated": torch.cuda.max_memory_allocated()}


def full_cache():
    """Fills a limited allocation with cache in pieces that do not fit the next request, and asks anyway."""
    import torch
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(1024 * MIB / total)
    pieces = [torch.empty(100 * MIB, dtype=torch.uint8, device="cuda") for _ in range(9)]
    pieces.clear()
    cached = torch.cuda.memory_reserved()
    kept = torch.empty(800 * MIB, dtype=torch.uint8, device="cuda")
    return {"cached_before": cached, "got": kept.numel(), "retries": torch.cuda.memory_stats()["num_alloc_retries"]}


def jobs():
    trained = functools.partial(train, size=SIZE)
    made = {"load": load, "host profiler": host_profiler, "full cache": full_cache,
            "lora": functools.partial(trained, attention="sdpa", lora=8)}
    for seq in (512, 1024, 2048, 4096):
        made[f"eager {seq}"] = functools.partial(trained, seq=seq)
        made[f"fused {seq}"] = functools.partial(trained, seq=seq, attention="sdpa")
        made[f"checkpointed {seq}"] = functools.partial(trained, seq=seq, attention="sdpa", checkpoint=True)
        made[f"prefill {seq}"] = functools.partial(prefill, seq, size=SIZE)
    made["eager checkpointed 1024"] = functools.partial(trained, seq=1024, checkpoint=True)
    made["eager checkpointed 4096"] = functools.partial(trained, seq=4096, checkpoint=True)
    made["prefill eager"] = functools.partial(prefill, 4096, size=SIZE, attention="eager")
    made["prefill in chunks"] = functools.partial(prefill, 4096, size=SIZE, chunk=1024)
    for number in (1, 2, 4, 8):
        made[f"accumulate {number}"] = functools.partial(trained, batch=4, accumulate=number, attention="sdpa")
        made[f"batch {number}"] = functools.partial(trained, batch=number, attention="sdpa")
    for layers in (2, 4, 6):
        size = dict(SIZE, num_hidden_layers=layers)
        made[f"layers {layers}"] = functools.partial(train, size=size, attention="sdpa")
    return made


if __name__ == "__main__" and sys.argv[1] == "--inside":
    run_inside(jobs(), sys.argv[2], sys.argv[3:])
