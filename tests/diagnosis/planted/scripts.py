"""Programs that run out of memory for one planted reason each. The name of a function is the reason's
number; its docstring is the verdict that `vramtrack oom` must give. Run as: scripts.py NAME."""

import ctypes
import sys

import torch

GiB = 1 << 30


def gib(number):
    return torch.empty(int(number * GiB), dtype=torch.uint8, device="cuda")


def full_card():
    """capacity"""
    held = [gib(2) for _ in range(38)]
    held.append(gib(6))


def too_deep():
    """capacity"""
    layers = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192) for _ in range(48)]).cuda()
    x = torch.empty(65536, 8192, device="cuda", requires_grad=True)
    layers(x).sum().backward()


def beyond_the_card():
    """capacity"""
    first = gib(1)
    gib(200)
    del first


def half_empty_segments():
    """fragmentation"""
    segments = [gib(4) for _ in range(19)]
    del segments  # cached, and cut into quarters of which one in four stays
    quarters = [gib(1) for _ in range(76)]
    kept = quarters[1::4]
    del quarters
    gib(8)
    del kept


def every_second():
    """fragmentation"""
    segments = [gib(2) for _ in range(38)]
    del segments
    halves = [gib(1) for _ in range(76)]
    kept = halves[::2]
    del halves
    gib(4)
    del kept


def list_of_losses():
    """leak"""
    model = torch.nn.Linear(1024, 1024).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for _ in range(200):
        out = model(torch.empty(1 << 20, 1024, device="cuda"))
        loss = out.sum()
        history.append(out)  # the tensor, and with it the graph
        loss.backward(retain_graph=True)
        optimizer.step()
        optimizer.zero_grad()


def cache_per_request():
    """leak"""
    model = torch.nn.Linear(4096, 4096).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = {}
    for request in range(400):
        model(torch.empty(4, 4096, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        kept[request] = [gib(0.25) for _ in range(2)]


def memory_fraction():
    """limit"""
    torch.cuda.set_per_process_memory_fraction(0.25)
    held = [gib(2) for _ in range(30)]
    del held


def logits_in_float32():
    """transient peak"""
    weights = gib(20)
    logits = torch.empty(4 * 4096, 128256, dtype=torch.bfloat16, device="cuda")
    copies = [logits.float() for _ in range(5)]
    logits.repeat(1, 4).float()
    del weights, copies


def attention_scores():
    """transient peak"""
    q = torch.empty(1, 32, 32768, 128, dtype=torch.bfloat16, device="cuda")
    weights = gib(30)
    scores = q @ q.transpose(-1, -2)
    del weights, scores


def another_library():
    """outside"""
    torch.empty(1, device="cuda")
    runtime = ctypes.CDLL(None)
    address = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(60 * GiB)) == 0
    held = [gib(2) for _ in range(20)]
    del held


def pinned_memory():
    """host memory"""
    torch.empty(1, device="cuda")
    torch.empty(1 << 50, dtype=torch.uint8, pin_memory=True)


def served_after_all():
    """healthy"""
    first = gib(50)
    del first
    gib(70)


def small_job():
    """healthy"""
    gib(1).sum()


ALL = {name: value for name, value in list(globals().items())
       if callable(value) and getattr(value, "__doc__", None) and value.__module__ == __name__
       and name not in ("gib",)}

if __name__ == "__main__":
    ALL[sys.argv[1]]()
