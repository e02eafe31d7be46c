"""waste_job.py KINDS...: training jobs that hold memory without use, each in a process of its own. KINDS is `none` or
some of unused+early+late+idle; what is not named does the same with the memory there only while it is used. Prints
`REACHED KINDS PID BYTES`: the most that PyTorch counted as allocated."""
import os
import sys

import torch

MIB = 1 << 20
FIRST_USE, LAST_USE, COMES_BACK, STEPS = 8, 2, 10, 12


def take_unused():
    return torch.empty(24 * MIB, dtype=torch.uint8, device="cuda")


def take_early():
    return torch.empty(12 * MIB, device="cuda")


def take_late():
    return torch.ones(6 * MIB, device="cuda")


def take_idle():
    return torch.ones(10 * MIB, device="cuda")


def job(planted):
    model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    batch = torch.ones(4096, 1024, device="cuda")
    unused = take_unused() if "unused" in planted else None
    early = take_early() if "early" in planted else None
    late = take_late()
    idle = take_idle()
    for step in range(STEPS):
        loss = model(batch).square().mean()
        if step <= LAST_USE:
            late.mul_(2)
        if step == LAST_USE and "late" not in planted:
            late = None
        if step == FIRST_USE and early is None:
            early = take_early()
        if step >= FIRST_USE:
            early.fill_(step)
        if step == COMES_BACK and idle is None:
            idle = take_idle()
        if step == 0 or step >= COMES_BACK:
            idle.add_(1)
        if step == 0 and "idle" not in planted:
            idle = None
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    del unused, early, late, idle


for names in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        job([] if names == "none" else names.split("+"))
        print("REACHED", names, os.getpid(), torch.cuda.max_memory_allocated(), flush=True)
        sys.exit(0)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(1)
