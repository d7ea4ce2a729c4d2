"""Fused attention by the kernel that PyTorch is told to take, where the curve of `attention` is of the one that it picks."""

# heads, key-value heads, head size
HEADS = {"llama3-8b": (32, 8, 128), "gpt-oss": (64, 8, 64), "tiny": (4, 2, 16)}
METHODS = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "math": "MATH"}
LONGEST_UNFUSED = 4096


def attention_kernels(session):
    torch = session.torch
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:
        return session.not_measured("attention by kernel", f"PyTorch {torch.__version__} cannot choose it; 2.3 can")
    session.burn_in()
    for length in session.plan["lengths"]:
        for name in ("llama3-8b", "gpt-oss") if session.gpu else ("tiny",):
            heads, kv, size = HEADS[name]
            q = session.random(1, heads, length, size).requires_grad_()
            k, v = (session.random(1, heads, length, size).requires_grad_() for _ in range(2))
            square, row = float(heads) * length * length * size, 4.0 * heads * length * size
            for method, label in METHODS.items():
                shape = dict(batch=1, heads=heads, kv_heads=heads, sequence=length, head_dim=size, method=method)
                if not hasattr(SDPBackend, label) or (method == "math" and length > LONGEST_UNFUSED):
                    continue

                def forward():
                    with sdpa_kernel([getattr(SDPBackend, label)]):
                        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

                session.measure("attention", "forward", shape, forward, 2 * square, 2 * row)
                try:
                    out = forward()
                    session.measure("attention", "backward", shape,
                                    lambda: torch.autograd.grad(out, (q, k, v), out.detach(), retain_graph=True),
                                    5 * square, 4 * row)
                except RuntimeError as error:
                    session.not_measured(f"attention/backward/sequence={length}/method={method}", error)
