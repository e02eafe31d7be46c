"""A marker for pytest: a test fails when it leaks GPU memory or takes more than its budget.

    @pytest.mark.gpu_memory(budget="2 GiB", leak="1 MiB")
    def test_step(): ...

`budget`: the most that may be allocated at any moment of the test. `leak`: by how much more may be
allocated after the test than before, once Python's garbage is collected. Load it with
`-p vramtrack.pytest_plugin`. Under `vramtrack run` the numbers are the tracer's, elsewhere PyTorch's own
counters; a failure says which. What libraries take from the driver directly is in neither.
"""
import gc
import sys

import pytest
import vramtrack

UNITS = {"B": 1, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def bytes_of(size):
    """"1.5 GiB" and the like, or a number of bytes."""
    if isinstance(size, (int, float)) and not isinstance(size, bool):
        return int(size)
    text = str(size).strip()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = text[len(number):].upper() or "B"
    try:
        return int(float(number) * UNITS[unit])
    except (KeyError, ValueError):
        raise pytest.UsageError("gpu_memory: %r is no size; write it like \"1.5 GiB\"" % (size,)) from None


def readable(size):
    return "%.2f GiB" % (size / 2**30) if size >= 2**30 else "%.2f MiB" % (size / 2**20)


class Traced:
    name = "the tracer's account"

    def __init__(self, functions):
        self.functions = functions

    def allocated(self):
        return sum(now for now, _ in self.functions["memory"]())

    def peak(self):
        return sum(most for _, most in self.functions["memory"]())

    def reset(self):
        self.functions["reset_peak"]()


class Counters:
    name = "PyTorch's counters (not traced)"

    def devices(self):
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized():
            return None, ()
        return torch.cuda, range(torch.cuda.device_count())

    def allocated(self):
        cuda, devices = self.devices()
        return sum(cuda.memory_allocated(device) for device in devices)

    def peak(self):
        cuda, devices = self.devices()
        return sum(cuda.max_memory_allocated(device) for device in devices)

    def reset(self):
        cuda, devices = self.devices()
        for device in devices:
            cuda.reset_peak_memory_stats(device)


def account():
    functions = getattr(vramtrack, "_functions", None) or {}
    return Traced(functions) if "memory" in functions else Counters()


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu_memory(budget=None, leak=None): fail when more than `budget` of GPU memory "
                            "is allocated during the test, or more than `leak` stays allocated after it")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    marker = item.get_closest_marker("gpu_memory")
    if marker is None:
        return (yield)
    unknown = set(marker.kwargs) - {"budget", "leak"}
    if marker.args or unknown:
        raise pytest.UsageError("gpu_memory takes budget= and leak=, not %s" % sorted(unknown or map(str, marker.args)))
    limits = {name: bytes_of(value) for name, value in marker.kwargs.items() if value is not None}
    memory = account()
    gc.collect()
    before = memory.allocated()
    memory.reset()
    result = yield
    peak = memory.peak()
    gc.collect()
    kept = memory.allocated() - before
    item.user_properties += [("gpu_memory_peak_bytes", peak), ("gpu_memory_kept_bytes", kept)]
    wrong = []
    if "budget" in limits and peak > limits["budget"]:
        wrong.append("%s were allocated at once, the budget is %s" % (readable(peak), readable(limits["budget"])))
    if "leak" in limits and kept > limits["leak"]:
        wrong.append("%s stayed allocated, %s may" % (readable(kept), readable(limits["leak"])))
    if wrong:
        pytest.fail("gpu_memory: %s, by %s" % ("; ".join(wrong), memory.name), pytrace=False)
    return result
