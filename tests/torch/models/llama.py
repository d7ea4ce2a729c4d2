"""A Llama of one file, with the fused norm and activation that training libraries have."""
import torch
from torch import nn
from torch.nn import functional


class FusedNorm(torch.autograd.Function):
    """RMSNorm that keeps its input."""

    @staticmethod
    def forward(context, x, weight):
        context.save_for_backward(x, weight)
        return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5).to(x.dtype) * weight

    @staticmethod
    def backward(context, gradient):
        x, weight = context.saved_tensors
        return gradient * weight, (gradient * x).sum((0, 1))


class FusedGate(torch.autograd.Function):
    """silu(gate) * up that keeps both."""

    @staticmethod
    def forward(context, gate, up):
        context.save_for_backward(gate, up)
        return functional.silu(gate) * up

    @staticmethod
    def backward(context, gradient):
        gate, up = context.saved_tensors
        return gradient * up, gradient * functional.silu(gate)


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return FusedNorm.apply(x, self.weight)


def turned(x, cosines, sines):
    first, second = x.chunk(2, -1)
    return x * cosines + torch.cat((-second, first), -1) * sines


class Attention(nn.Module):
    def __init__(self, hidden, heads, groups):
        super().__init__()
        self.size = hidden // heads
        self.q_proj = nn.Linear(hidden, hidden, bias=False)
        self.k_proj = nn.Linear(hidden, groups * self.size, bias=False)
        self.v_proj = nn.Linear(hidden, groups * self.size, bias=False)
        self.o_proj = nn.Linear(hidden, hidden, bias=False)

    def forward(self, x, cosines, sines):
        b, s, _ = x.shape
        q, k, v = (m(x).view(b, s, -1, self.size).transpose(1, 2) for m in (self.q_proj, self.k_proj, self.v_proj))
        q, k = turned(q, cosines, sines), turned(k, cosines, sines)
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(out.transpose(1, 2).reshape(b, s, -1))


class Mlp(nn.Module):
    def __init__(self, hidden, ffn):
        super().__init__()
        self.gate_proj = nn.Linear(hidden, ffn, bias=False)
        self.up_proj = nn.Linear(hidden, ffn, bias=False)
        self.down_proj = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(FusedGate.apply(self.gate_proj(x), self.up_proj(x)))


class Block(nn.Module):
    def __init__(self, hidden, ffn, heads, groups):
        super().__init__()
        self.input_norm = Norm(hidden)
        self.attention = Attention(hidden, heads, groups)
        self.mlp_norm = Norm(hidden)
        self.mlp = Mlp(hidden, ffn)

    def forward(self, x, positions):
        x = x + self.attention(self.input_norm(x), *positions)
        return x + self.mlp(self.mlp_norm(x))


class Llama(nn.Module):
    def __init__(self, layers, hidden, ffn, heads, groups, vocab):
        super().__init__()
        self.size = hidden // heads
        self.embedding = nn.Embedding(vocab, hidden)
        self.layers = nn.ModuleList(Block(hidden, ffn, heads, groups) for _ in range(layers))
        self.norm = Norm(hidden)
        self.head = nn.Linear(hidden, vocab, bias=False)

    def forward(self, ids):
        x = self.embedding(ids)
        angles = torch.arange(ids.shape[1])[:, None] * torch.arange(self.size)[None, :]
        positions = (angles.cos().to(x.dtype), angles.sin().to(x.dtype))
        for layer in self.layers:
            x = layer(x, positions)
        return self.head(self.norm(x))


def llama(layers=32, hidden=4096, ffn=14336, heads=32, groups=8, vocab=128256):
    return Llama(layers, hidden, ffn, heads, groups, vocab)
