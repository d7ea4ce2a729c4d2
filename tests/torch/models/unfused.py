"""Attention by hand, whose groups of keys are repeated; a matrix and positions outside of the blocks."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, hidden, heads, groups, window):
        super().__init__()
        self.size, self.repeats, self.window = hidden // heads, heads // groups, window
        self.q_proj = nn.Linear(hidden, hidden, bias=False)
        self.k_proj = nn.Linear(hidden, groups * self.size, bias=False)
        self.v_proj = nn.Linear(hidden, groups * self.size, bias=False)
        self.o_proj = nn.Linear(hidden, hidden, bias=False)

    def repeated(self, x):
        b, groups, s, size = x.shape
        return x[:, :, None].expand(b, groups, self.repeats, s, size).reshape(b, groups * self.repeats, s, size)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = (m(x).view(b, s, -1, self.size).transpose(1, 2) for m in (self.q_proj, self.k_proj, self.v_proj))
        k, v = (self.repeated(each[:, :, -self.window:]) for each in (k, v))
        out = (q @ k.transpose(-1, -2)).softmax(-1) @ v
        return x + self.o_proj(out.transpose(1, 2).reshape(b, s, -1))


class Model(nn.Module):
    def __init__(self, hidden, heads, groups, window, positions):
        super().__init__()
        self.tokens = nn.Embedding(1000, hidden)
        self.positions = nn.Parameter(torch.zeros(1, positions, hidden))
        self.blocks = nn.ModuleList(Block(hidden, heads, groups, window) for _ in range(2))
        self.between = nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, 1000, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions[:, :ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(self.between(x)))


def build(hidden=768, heads=12, groups=4, window=65536, positions=8192):
    return Model(hidden, heads, groups, window, positions)
