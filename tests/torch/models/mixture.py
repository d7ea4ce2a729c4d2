"""A GPT of one file: learned positions, biases, tied embeddings; every second block has experts."""
import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(hidden, 3 * hidden)
        self.c_proj = nn.Linear(hidden, hidden)

    def forward(self, x):
        b, s, hidden = x.shape
        q, k, v = (part.view(b, s, self.heads, -1).transpose(1, 2) for part in self.c_attn(x).split(hidden, -1))
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(out.transpose(1, 2).reshape(b, s, hidden))


class Mlp(nn.Module):
    def __init__(self, hidden, ffn):
        super().__init__()
        self.c_fc = nn.Linear(hidden, ffn)
        self.c_proj = nn.Linear(ffn, hidden)

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x)))


class Experts(nn.Module):
    def __init__(self, number, hidden, ffn):
        super().__init__()
        self.gate = nn.Parameter(torch.empty(number, hidden, ffn))
        self.up = nn.Parameter(torch.empty(number, hidden, ffn))
        self.down = nn.Parameter(torch.empty(number, ffn, hidden))

    def forward(self, x):
        return torch.bmm(functional.silu(torch.bmm(x, self.gate)) * torch.bmm(x, self.up), self.down)


class Mixture(nn.Module):
    """Every expert takes as many rows as the others."""

    def __init__(self, number, per_token, hidden, ffn):
        super().__init__()
        self.number, self.per_token = number, per_token
        self.gate = nn.Linear(hidden, number, bias=False)
        self.experts = Experts(number, hidden, ffn)

    def forward(self, x):
        b, s, hidden = x.shape
        x = x.reshape(b * s, hidden)
        weights, chosen = self.gate(x).softmax(-1).topk(self.per_token)
        order = chosen.flatten().argsort()
        rows = x[order // self.per_token]
        out = self.experts(rows.view(self.number, -1, hidden)).view(-1, hidden)
        back = torch.zeros_like(out).index_copy(0, order, out)
        return (back.view(b * s, self.per_token, hidden) * weights[..., None]).sum(1).view(b, s, hidden)


class Block(nn.Module):
    def __init__(self, hidden, heads, mlp):
        super().__init__()
        self.ln_1 = nn.LayerNorm(hidden)
        self.attn = Attention(hidden, heads)
        self.ln_2 = nn.LayerNorm(hidden)
        self.mlp = mlp

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, layers, hidden, heads, experts, per_token, vocab, positions):
        super().__init__()
        self.wte = nn.Embedding(vocab, hidden)
        self.wpe = nn.Embedding(positions, hidden)
        self.h = nn.ModuleList(
            Block(hidden, heads,
                  Mixture(experts, per_token, hidden, 2 * hidden) if i % 2 else Mlp(hidden, 4 * hidden))
            for i in range(layers))
        self.ln_f = nn.LayerNorm(hidden)
        self.lm_head = nn.Linear(hidden, vocab, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def gpt(layers=4, hidden=1024, heads=16, experts=8, per_token=2, vocab=50304, positions=4096):
    return Gpt(layers, hidden, heads, experts, per_token, vocab, positions)
