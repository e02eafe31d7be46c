"""Tests that fail when they take too much GPU memory, or keep it. Run by docs/reading-leaks.md."""
import pytest
import torch


def training_step(model, batch):
    loss = model(batch).square().mean()
    loss.backward()
    model.zero_grad(set_to_none=True)
    return loss


@pytest.fixture
def model():
    return torch.nn.Linear(1024, 1024, device="cuda")


@pytest.mark.gpu_memory(budget="64 MiB", leak="1 MiB")
def test_a_step_gives_back_what_it_took(model):
    for _ in range(3):
        training_step(model, torch.randn(256, 1024, device="cuda"))
