"""A training loop with a leak, as people write it: the outputs for a plot are kept, and with them the
graph of every step. docs/reading-leaks.md looks for it."""
import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024)).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.history = []

    def step(self, batch):
        outputs = self.model(batch)
        loss = outputs.square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.history.append(loss)

    def validate(self, batch):
        self.history.append(self.model(batch).mean())


def main():
    trainer = Trainer()
    for _ in range(40):
        trainer.step(torch.randn(64, 1024, device="cuda"))
        trainer.validate(torch.randn(64, 1024, device="cuda"))


main()
