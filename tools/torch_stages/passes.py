"""A transformer layer in plain PyTorch, and its passes F, B (gradients of inputs alone) and W (those of weights)."""


def fused(torch):
    return hasattr(torch.nn.functional, "scaled_dot_product_attention")


def attend(torch, q, k, v):
    """Causal; q of (batch, heads, sequence, size), k and v of as many or fewer heads."""
    if k.shape[1] != q.shape[1]:
        if fused(torch):
            try:
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            except TypeError:  # before PyTorch 2.5
                pass
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
    if fused(torch):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    mask = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(mask, float("-inf")).softmax(-1) @ v


def weight_shapes(shape):
    """Outputs and inputs of a layer's four matmuls on one GPU of its tensor-parallel group."""
    hidden, inner, heads, kv, size, gated, tp = shape[:7]
    return [((heads + 2 * kv) * size // tp, hidden), (hidden, heads * size // tp),
            ((2 if gated else 1) * inner // tp, hidden), (hidden, inner // tp)]


def layer(torch, shape, x, norm, linear):
    """A layer of x (tokens, hidden) or (micro batch, sequence, hidden); norm(i, x) is the i-th norm, linear(i, x) the i-th matmul."""
    _, _, heads, kv, size, gated, tp, batch, length = shape
    split = [heads // tp, kv // tp, kv // tp]
    qkv = linear(0, norm(0, x)).view(batch, length, sum(split), size)
    q, k, v = qkv.transpose(1, 2).split(split, dim=1)
    mixed = attend(torch, q, k, v).transpose(1, 2).reshape(*x.shape[:-1], -1)
    middle = x + linear(1, mixed)
    up = linear(2, norm(1, middle))
    if gated:
        gate, up = up.chunk(2, dim=-1)
        up = torch.nn.functional.silu(gate) * up
    else:
        up = torch.nn.functional.gelu(up)
    return middle + linear(3, up)


class Passes:
    """F, B and W of one layer, each by itself, as zero-bubble schedules run them."""

    def __init__(self, session, shape):
        torch, self.shape, self.session, self.waiting = session.torch, shape, session, []
        self.weights = [session.random(*size) for size in weight_shapes(shape)]
        self.mains = [session.gradient_of(weight) for weight in self.weights]
        self.gain = torch.ones(shape[0], device=session.device, dtype=session.dtype)
        self.x = session.random(shape[7] * shape[8], shape[0]).requires_grad_()
        waiting = self.waiting

        class Linear(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, weight, main):
                ctx.save_for_backward(x, weight)
                ctx.main = main
                return x @ weight.t()

            @staticmethod
            def backward(ctx, dy):
                x, weight = ctx.saved_tensors
                waiting.append((ctx.main, dy, x))
                return dy @ weight, None, None

        self.linear = lambda i, x: Linear.apply(x, self.weights[i], self.mains[i])
        self.forward()
        self.backward()

    def forward(self):
        norm = self.session.torch.nn.functional.layer_norm
        self.out = layer(self.session.torch, self.shape, self.x, lambda _, x: norm(x, x.shape[-1:], self.gain), self.linear)

    def backward(self):
        self.waiting.clear()
        self.session.torch.autograd.grad(self.out, self.x, self.out.detach(), retain_graph=True)

    def weight_gradients(self):
        for main, dy, x in self.waiting:
            self.session.accumulate(main, dy, x)

    def all(self):
        return (self.forward, self.backward, self.weight_gradients)
