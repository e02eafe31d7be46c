"""A little training under torch.profiler; prints which GPU events the profiler got, and what it linked to them."""
import collections
import json

import torch
from torch.profiler import ProfilerActivity, profile

model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8)).cuda()
optimizer = torch.optim.Adam(model.parameters())


def step():
    inputs = torch.randn(16, 64).cuda()
    loss = model(inputs).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


step()
results = []
for _ in range(5):  # each session begins where the one before ended
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        step()
    on_gpu = collections.Counter(e.name() for e in profiler.profiler.kineto_results.events()
                                 if "CPU" not in str(e.device_type()))
    by_operator = collections.Counter(e.key for e in profiler.key_averages() if e.device_time_total > 0)
    results.append([sorted(on_gpu.items()), sorted(by_operator.items())])
step()
print("PROFILED " + json.dumps(results))
