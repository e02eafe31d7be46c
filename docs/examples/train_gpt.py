"""Trains a small GPT on random tokens: the program that the demo traces.

Plain PyTorch, nothing of vramtrack in it. Sizes are options, so that the same script serves for
experiments: how memory grows with --seq, what --checkpoint and --accumulate change.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    """Causal self-attention. `eager` writes the scores out, as textbooks do; `fused` does not."""

    def __init__(self, hidden, heads, kind):
        super().__init__()
        self.heads, self.kind = heads, kind
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x):
        batch, seq, hidden = x.shape
        q, k, v = (
            t.view(batch, seq, self.heads, hidden // self.heads).transpose(1, 2)
            for t in self.qkv(x).chunk(3, dim=-1)
        )
        if self.kind == "fused":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) * (hidden // self.heads) ** -0.5
            mask = torch.ones(seq, seq, dtype=torch.bool, device=x.device).triu(1)
            weights = scores.masked_fill(mask, float("-inf")).softmax(dim=-1)
            y = weights @ v
        return self.out(y.transpose(1, 2).reshape(batch, seq, hidden))


class Block(nn.Module):
    def __init__(self, hidden, heads, kind):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.attention = Attention(hidden, heads, kind)
        self.mlp = nn.Sequential(
            nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.use_checkpoint = args.checkpoint
        self.tokens = nn.Embedding(args.vocab, args.hidden)
        self.positions = nn.Embedding(args.seq, args.hidden)
        self.blocks = nn.ModuleList(
            Block(args.hidden, args.heads, args.attention) for _ in range(args.layers)
        )
        self.norm = nn.LayerNorm(args.hidden)
        self.head = nn.Linear(args.hidden, args.vocab, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.use_checkpoint else block(x)
        return self.head(self.norm(x))


def train_step(model, optimizer, args, device):
    """One optimizer step over `accumulate` micro-batches; gradients add up between them."""
    for _ in range(args.accumulate):
        ids = torch.randint(args.vocab, (args.batch, args.seq + 1), device=device)
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        (loss / args.accumulate).backward()
    optimizer.step()
    optimizer.zero_grad()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("layers", 4), ("hidden", 512), ("heads", 8), ("vocab", 32000),
                          ("seq", 512), ("batch", 4), ("accumulate", 1), ("steps", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--attention", choices=("eager", "fused"), default="eager")
    parser.add_argument("--checkpoint", action="store_true", help="recompute activations")
    args = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = GPT(args).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for _ in range(args.steps):
        train_step(model, optimizer, args, device)
    print(f"trained {args.steps} steps on {device}")
    if device == "cuda":
        print(f"torch.cuda.max_memory_allocated() = {torch.cuda.max_memory_allocated()}")
        print(f"torch.cuda.max_memory_reserved()  = {torch.cuda.max_memory_reserved()}")


if __name__ == "__main__":
    main()
