"""Llama layers as a PyTorch module: what a trainer without kernels of its own runs. Shapes are those of plan.LAYERS."""
from torch_stages.passes import layer, weight_shapes


def llama(torch, shape, layers, seed=0):
    """So many layers, of (micro batch, sequence, hidden) to the same. The same seed gives the same weights."""
    nn, hidden = torch.nn, shape[0]
    torch.manual_seed(seed)

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(hidden))

        def forward(self, x):
            if hasattr(nn.functional, "rms_norm"):
                return nn.functional.rms_norm(x, (hidden,), self.weight, 1e-5)
            wide = x.float()
            return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * self.weight

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList([Norm(), Norm()])
            self.linears = nn.ModuleList([nn.Linear(inp, out, bias=False) for out, inp in weight_shapes(shape)])

        def forward(self, x):
            # No view of anything, which PyTorch's pipeline runtime could not detach where B and W are apart.
            return layer(torch, shape[:7] + tuple(x.shape[:2]), x, lambda i, y: self.norms[i](y),
                         lambda i, y: self.linears[i](y))

    return nn.Sequential(*[Layer() for _ in range(layers)])
