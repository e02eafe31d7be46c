"""Training beside an evaluator that asked for the GPU once, and then waits for the end."""
import os
import time

import torch


def evaluate(gate):
    batch = torch.ones(40, 2**20, dtype=torch.uint8, device="cuda")
    os.read(gate, 1)  # until the other end is closed
    return batch


def train(seconds):
    model = torch.nn.Linear(64, 64).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        model(torch.randn(8, 64, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.05)


gate, opens = os.pipe()
child = os.fork()
if child == 0:
    os.close(opens)
    evaluate(gate)
else:
    train(3)
    os.close(opens)
    os.waitpid(child, 0)
