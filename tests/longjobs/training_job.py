"""A training job for the tests of long recordings: a small transformer, AdamW, and a leak on request.

  training_job.py STEPS [--leak] [--layers N] [--counters FILE]

With --leak each step keeps its loss and a copy of one activation. The counters file gets PyTorch's own numbers.
"""
import argparse
import json

import torch

arguments = argparse.ArgumentParser()
arguments.add_argument("steps", type=int)
arguments.add_argument("--leak", action="store_true")
arguments.add_argument("--layers", type=int, default=2)
arguments.add_argument("--counters")
options = arguments.parse_args()

device = torch.device("cuda")
layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
model = torch.nn.Sequential(torch.nn.TransformerEncoder(layer, options.layers), torch.nn.Linear(256, 1000)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
kept = []
for step in range(options.steps):
    batch = torch.randn(8, 64 + 16 * (step % 3), 256, device=device)
    output = model(batch)
    loss = output.float().pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if options.leak:
        kept.append(output.detach()[:, 0].clone())
if options.counters:
    with open(options.counters, "w", encoding="utf-8") as file:
        json.dump({"allocated": torch.cuda.memory_allocated(), "peak": torch.cuda.max_memory_allocated(),
                   "reserved": torch.cuda.memory_reserved()}, file)
