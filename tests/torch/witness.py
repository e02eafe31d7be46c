"""What scenarios compare: PyTorch's own counters, the snapshot of its allocator, the simulated GPU's totals."""
import ctypes
import gc


class Usage(ctypes.Structure):
    """struct simgpu_usage of simgpu/simgpu.h."""
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "total", "used", "peak", "device", "pool_reserved", "pool_used", "vmm", "array", "graph", "module",
        "context", "library", "managed", "pinned", "registered")]


def usage(device=0):
    """The simulated GPU's totals; None where the driver is a real one."""
    function = getattr(ctypes.CDLL("libcuda.so.1"), "simgpu_get_usage", None)
    if function is None:
        return None
    result = Usage()
    status = function(ctypes.c_int(device), ctypes.byref(result))
    if status:
        raise RuntimeError(f"simgpu_get_usage: {status}")
    return {name: getattr(result, name) for name, _ in Usage._fields_}


def snapshot_sums(device=0):
    """Bytes of live blocks, of blocks that are not free, and of segments, from the allocator's snapshot."""
    import torch
    live = active = reserved = 0
    for segment in torch.cuda.memory._snapshot()["segments"]:
        if segment["device"] != device:
            continue
        reserved += segment["total_size"]
        for block in segment["blocks"]:
            live += block["size"] * (block["state"] == "active_allocated")
            active += block["size"] * (block["state"] != "inactive")
    return {"allocated": live, "active": active, "reserved": reserved}


def rounded(size):
    """The allocator's rounding of a request."""
    return max(512, (size + 511) // 512 * 512)


def tensor_bytes(tensors):
    """Rounded bytes of the distinct storages behind tensors."""
    storages = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        if storage.nbytes():
            storages[storage.data_ptr()] = rounded(storage.nbytes())
    return sum(storages.values())


def live_cuda_bytes():
    """Rounded bytes of every CUDA tensor that the garbage collector can see."""
    import torch
    gc.collect()
    return tensor_bytes(o for o in gc.get_objects() if isinstance(o, torch.Tensor) and o.is_cuda)


def live_blocks(device):
    """(address, size, requested size, stream) of every live block, from the allocator's snapshot."""
    import torch
    blocks = []
    for segment in torch.cuda.memory._snapshot()["segments"]:
        if segment["device"] == device:
            blocks += [(b["address"], b["size"], b["requested_size"], segment["stream"]) for b in segment["blocks"]
                       if b["state"] == "active_allocated"]
    return sorted(blocks)


def segments(device):
    """(address, size, stream) of every segment, and (address, size) of every block that waits for another stream."""
    import torch
    found, waiting = [], []
    for segment in torch.cuda.memory._snapshot()["segments"]:
        if segment["device"] != device:
            continue
        found.append((segment["address"], segment["total_size"], segment["stream"]))
        waiting += [(b["address"], b["size"]) for b in segment["blocks"] if b["state"] not in ("active_allocated", "inactive")]
    return sorted(found), sorted(waiting)


class Checks:
    """Collects comparisons; a scenario fails when one does not hold."""

    def __init__(self):
        self.failed = []
        self.count = 0
        self.numbers = {}
        self.marks = []  # moments that a trace of this process must know alike
        self.mark = getattr(ctypes.CDLL(None), "vramtrack_mark", None)

    def equal(self, what, actual, expected):
        self.count += 1
        self.numbers[what] = actual
        if actual != expected:
            self.failed.append(f"{what}: {actual!r}, expected {expected!r}")

    def true(self, what, condition, detail=""):
        self.count += 1
        if not condition:
            self.failed.append(f"{what} does not hold {detail}".rstrip())

    def raises(self, what, exception, text, function):
        self.count += 1
        try:
            function()
        except exception as error:
            if text not in str(error):
                self.failed.append(f"{what}: message {str(error)!r} lacks {text!r}")
            return str(error)
        self.failed.append(f"{what}: {exception.__name__} was not raised")
        return ""

    def counters_agree(self, where, device=0):
        """Allocated, active and reserved bytes: counters, snapshot and the GPU's own totals."""
        import torch
        stats = torch.cuda.memory_stats(device)
        sums = snapshot_sums(device)
        self.equal(f"{where}: allocated", sums["allocated"], stats["allocated_bytes.all.current"])
        self.equal(f"{where}: active", sums["active"], stats["active_bytes.all.current"])
        self.equal(f"{where}: reserved", sums["reserved"], stats["reserved_bytes.all.current"])
        if self.mark is not None:
            name = f"check {len(self.marks)}: {where}"
            self.mark(name.encode())
            known, waiting = segments(device)
            self.marks.append({"name": name, "device": device, "blocks": live_blocks(device), "segments": known,
                               "waiting": waiting, "gpu": usage(device), **sums})
        gpu = usage(device)
        if gpu is not None:
            self.equal(f"{where}: on the GPU", gpu["device"] + gpu["vmm"], stats["reserved_bytes.all.current"])

    def everything_agrees(self):
        """At the end of a scenario: each device that PyTorch's own allocator used."""
        import torch
        if torch.cuda.is_initialized() and torch.cuda.get_allocator_backend() == "native":
            for device in range(torch.cuda.device_count()):
                if torch.cuda.memory_stats(device)["reserved_bytes.all.peak"]:
                    self.counters_agree(f"the end, device {device}", device)

    def peaks(self):
        """Highest allocated and reserved bytes of each device, over all resets; None without CUDA."""
        import torch
        if not torch.cuda.is_initialized():
            return {}
        found = {}
        for device in range(torch.cuda.device_count()):
            stats = torch.cuda.memory_stats(device)
            found[device] = [max(stats[f"{what}_bytes.all.peak"], self.before_reset.get((device, what), 0))
                             for what in ("allocated", "reserved")]
        return found

    def watch_resets(self):
        """A scenario may reset the peaks; the trace does not."""
        import torch
        self.before_reset = {}
        reset = torch.cuda.reset_peak_memory_stats

        def remember(device=None):
            for index, (allocated, reserved) in self.peaks().items():
                self.before_reset.update({(index, "allocated"): allocated, (index, "reserved"): reserved})
            reset(device)

        torch.cuda.reset_peak_memory_stats = remember
