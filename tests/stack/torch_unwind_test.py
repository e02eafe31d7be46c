#!/usr/bin/env python3
"""Walks of a PyTorch training loop on the CPU: ours against libunwind's, stack by stack.

usage: torch_unwind_test.py <preload library>
VRAMTRACK_PYTHON names a Python that has PyTorch.
"""
import os
import re
import subprocess
import sys

LOOP = """
import ctypes, torch
model = torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True) for _ in range(3)])
optimizer = torch.optim.AdamW(model.parameters())
compare = ctypes.CDLL(None).compare_walks
compare(1)
for step in range(8):
    optimizer.zero_grad()
    model(torch.randn(8, 32, 64)).square().mean().backward()
    optimizer.step()
compare(0)
"""

library, python = os.path.abspath(sys.argv[1]), os.environ.get("VRAMTRACK_PYTHON", "")
if not python or subprocess.run([python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode:
    print("skipped: no PyTorch")
    sys.exit(77)
run = subprocess.run([python, "-c", LOOP], env=dict(os.environ, LD_PRELOAD=library),
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
print(run.stdout, run.stderr[-2000:])
counts = dict(re.findall(r"(\w+) (\d+)", run.stdout))
walks, left, differ = (int(counts.get(k, 0)) for k in ("walks", "left", "differ"))
# Frames of hand-written assembly without unwind information are left to libunwind; few are.
sys.exit(0 if run.returncode == 0 and walks > 1000 and differ == 0 and left * 20 < walks else 1)
