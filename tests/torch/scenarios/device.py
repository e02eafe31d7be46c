"""The device itself, streams, and PyTorch's memory functions."""
import time

from scenarios import scenario
from witness import rounded, snapshot_sums, usage

MIB = 1 << 20


@scenario()
def properties(checks):
    """A device is there, and is the card that was asked for."""
    import torch
    checks.equal("available", torch.cuda.is_available(), True)
    checks.equal("devices", torch.cuda.device_count(), 1)
    found = torch.cuda.get_device_properties(0)
    checks.equal("capability", torch.cuda.get_device_capability(0), (9, 0))
    checks.true("name", "H100" in found.name, found.name)
    checks.equal("multiprocessors", found.multi_processor_count, 132)
    free, total = torch.cuda.mem_get_info()
    checks.equal("total", total, found.total_memory)
    checks.equal("total of the GPU", total, usage()["total"])
    checks.equal("free", free, total - usage()["used"])


@scenario(device="2x a100-40g")
def two_devices(checks):
    """Memory is counted on the device it is on."""
    import torch
    checks.equal("devices", torch.cuda.device_count(), 2)
    checks.equal("capability", torch.cuda.get_device_capability(1), (8, 0))
    first = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda:0")
    second = torch.empty(50 * MIB, dtype=torch.uint8, device="cuda:1")
    checks.equal("first", torch.cuda.memory_allocated(0), rounded(first.nbytes))
    checks.equal("second", torch.cuda.memory_allocated(1), rounded(second.nbytes))
    checks.counters_agree("device 0", 0)
    checks.counters_agree("device 1", 1)
    copied = first.to("cuda:1")
    checks.equal("after a copy", torch.cuda.memory_allocated(1), rounded(second.nbytes) + rounded(copied.nbytes))


@scenario()
def values_survive(checks):
    """Small contents that the host wrote come back."""
    import torch
    values = list(range(-50, 50))
    tensor = torch.tensor(values, device="cuda")
    checks.equal("from a list", tensor.tolist(), values)
    checks.equal("one item", torch.tensor(2.5, device="cuda").item(), 2.5)
    checks.equal("a copy on the device", tensor.clone().tolist(), values)
    checks.equal("filled", torch.full((7,), 3.0, device="cuda").tolist(), [3.0] * 7)
    checks.equal("zeros", torch.zeros(5, dtype=torch.int32, device="cuda").tolist(), [0] * 5)
    checks.equal("compared", (tensor[:4] == -49).tolist(), [False, True, False, False])
    checks.equal("any", bool((tensor == 49).any()), True)
    checks.equal("largest", tensor.max().item(), 49)
    checks.equal("converted", tensor[:3].to(torch.bfloat16).tolist(), [-50.0, -49.0, -48.0])
    checks.equal("strided", (tensor.reshape(10, 10)[:, 3] > 0).tolist(), [False] * 5 + [True] * 5)
    checks.equal("rows", tensor.reshape(10, 10).sum(1).tolist(), [sum(values[i:i + 10]) for i in range(0, 100, 10)])
    checks.equal("masked", tensor[:3].masked_fill(tensor[:3] == -49, 7).tolist(), [-50, 7, -48])


@scenario()
def streams_and_events(checks):
    """Streams, events with increasing time, and a block that waits for another stream."""
    import torch
    side = torch.cuda.Stream()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    block = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
    with torch.cuda.stream(side):
        other = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
    end.record()
    torch.cuda.synchronize()
    checks.true("time passes", start.elapsed_time(end) > 0)
    streams = {segment["stream"] for segment in torch.cuda.memory._snapshot()["segments"]}
    checks.equal("streams of segments", streams, {0, side.cuda_stream})
    block.record_stream(side)
    size = rounded(block.nbytes)
    before = torch.cuda.memory_allocated()
    del block
    checks.counters_agree("waiting")
    checks.equal("freed at once", torch.cuda.memory_allocated(), before - size)
    torch.cuda.synchronize()
    torch.empty(1, device="cuda")
    checks.counters_agree("after the wait")
    del other


@scenario()
def memory_functions(checks):
    """Statistics, history, snapshot, empty_cache, peak reset."""
    import torch
    torch.cuda.memory._record_memory_history(max_entries=1000)
    keep = [torch.empty(n, dtype=torch.uint8, device="cuda") for n in (1, 512, 513, MIB, MIB + 1, 11 * MIB)]
    expected = sum(rounded(t.nbytes) for t in keep)
    checks.equal("allocated", torch.cuda.memory_allocated(), expected)
    # the small ones share 2 MiB; the large ones share a segment of 20 MiB
    checks.equal("segments", torch.cuda.memory_reserved(), 2 * MIB + 20 * MIB)
    checks.counters_agree("with tensors")
    big = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    del big
    checks.equal("peak", torch.cuda.max_memory_allocated(), expected + 64 * MIB)
    torch.cuda.empty_cache()
    checks.equal("after empty_cache", torch.cuda.memory_reserved(), 22 * MIB)
    torch.cuda.reset_peak_memory_stats()
    checks.equal("peak after reset", torch.cuda.max_memory_allocated(), expected)
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    actions = [entry["action"] for entry in trace]
    checks.equal("allocations in the history", actions.count("alloc"), 7)
    checks.equal("frees in the history", actions.count("free_completed"), 1)
    frames = next(e["frames"] for e in trace if e["action"] == "alloc")
    checks.true("frames name this file", any(f["filename"].endswith("device.py") for f in frames))
    torch.cuda.memory._record_memory_history(enabled=None)
    checks.equal("requested", torch.cuda.memory_stats()["requested_bytes.all.current"], sum(t.nbytes for t in keep))
    del keep
    checks.equal("all freed", snapshot_sums()["allocated"], 0)
    torch.cuda.empty_cache()
    checks.counters_agree("empty")
    checks.equal("nothing reserved", usage()["device"], 0)


@scenario(device="8GiB")
def memory_fraction(checks):
    """The fraction is PyTorch's own limit, below the device's size."""
    import torch
    torch.cuda.set_per_process_memory_fraction(0.25)
    total = torch.cuda.get_device_properties(0).total_memory
    keep = torch.empty(total // 8, dtype=torch.uint8, device="cuda")
    checks.raises("beyond the fraction", torch.OutOfMemoryError, "allowed",
                  lambda: torch.empty(total // 4, dtype=torch.uint8, device="cuda"))
    checks.counters_agree("after the error")
    del keep


@scenario()
def pinned_memory(checks):
    """Pinned memory is real host memory and is counted; a DataLoader pins batches."""
    import torch
    pinned = torch.arange(1024, dtype=torch.int64).pin_memory()
    checks.equal("is pinned", pinned.is_pinned(), True)
    checks.equal("contents", pinned.sum().item(), 1023 * 512)
    checks.true("counted", usage()["pinned"] + usage()["registered"] >= pinned.nbytes)
    moved = pinned.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    checks.equal("moved", moved[:8].tolist(), list(range(8)))
    data = torch.utils.data.TensorDataset(torch.arange(64).float().reshape(32, 2), torch.arange(32))
    loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, pin_memory=True)
    batches = [(x.to("cuda", non_blocking=True), y) for x, y in loader]
    checks.equal("batches", len(batches), 4)
    checks.equal("a batch", batches[0][0].tolist()[1], [2.0, 3.0])


@scenario(device="8GiB")
def out_of_memory(checks):
    """The device's size is enforced; the error is PyTorch's own."""
    import torch
    total = torch.cuda.get_device_properties(0).total_memory
    keep = torch.empty(total // 2, dtype=torch.uint8, device="cuda")
    text = checks.raises("too much", torch.OutOfMemoryError, "CUDA out of memory. Tried to allocate",
                         lambda: torch.empty(total // 2, dtype=torch.uint8, device="cuda"))
    checks.true("capacity in the text", "total capacity of 8.00 GiB" in text, text)
    checks.equal("counted", torch.cuda.memory_stats()["num_ooms"], 1)
    checks.counters_agree("after the error")
    del keep
    again = torch.empty(total // 2, dtype=torch.uint8, device="cuda")
    checks.equal("and goes on", torch.cuda.memory_allocated(), rounded(again.nbytes))


@scenario(variables={"PYTORCH_ALLOC_CONF": "expandable_segments:True", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
def expandable_segments(checks):
    """Physical memory is mapped into one growing range."""
    import torch
    keep = [torch.empty(n * MIB, dtype=torch.uint8, device="cuda") for n in (1, 7, 33)]
    checks.equal("allocated", torch.cuda.memory_allocated(), 41 * MIB)
    checks.equal("expandable", {s["is_expandable"] for s in torch.cuda.memory._snapshot()["segments"]}, {True})
    checks.counters_agree("mapped")
    checks.equal("nothing but mapped memory", usage()["device"], 0)
    del keep
    torch.cuda.empty_cache()
    checks.equal("unmapped", usage()["vmm"], 0)
    checks.counters_agree("empty")


@scenario(native=False, variables={"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync",
                                   "PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})
def stream_ordered_backend(checks):
    """cudaMallocAsync takes memory from the driver's pool."""
    import torch
    checks.equal("backend", torch.cuda.get_allocator_backend(), "cudaMallocAsync")
    keep = torch.empty(10 * MIB, dtype=torch.uint8, device="cuda")
    checks.equal("allocated", torch.cuda.memory_allocated(), 10 * MIB)
    checks.equal("in the pool", usage()["pool_used"], 10 * MIB)
    checks.equal("reserved", torch.cuda.memory_reserved(), usage()["pool_reserved"])
    del keep
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    checks.equal("given back", usage()["pool_reserved"], 0)


@scenario(variables={"PYTORCH_ALLOC_CONF": "max_split_size_mb:64,roundup_power2_divisions:4,garbage_collection_threshold:0.8",
                     "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64,roundup_power2_divisions:4,garbage_collection_threshold:0.8"})
def allocator_settings(checks):
    """Rounding to quarters of powers of two, and large blocks that are not split."""
    import torch
    keep = torch.empty(5 * MIB + 1, dtype=torch.uint8, device="cuda")
    checks.equal("rounded to a quarter", torch.cuda.memory_allocated(), 6 * MIB)
    big = torch.empty(200 * MIB, dtype=torch.uint8, device="cuda")
    del big
    part = torch.empty(20 * MIB, dtype=torch.uint8, device="cuda")
    checks.counters_agree("with settings")
    checks.equal("not split", torch.cuda.memory_reserved(), 20 * MIB + 224 * MIB + 20 * MIB)
    del keep, part


@scenario()
def first_use_is_quick(checks):
    """Start-up does not grow with the number of kernels in the wheel."""
    import torch
    started = time.process_time()
    torch.empty(1, device="cuda")
    checks.true("seconds of processor time", time.process_time() - started < 20)
