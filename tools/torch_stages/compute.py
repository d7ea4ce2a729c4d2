"""Stages of one device that compute: matmuls, attention, memory-bound kernels, whole layers."""
import contextlib
import datetime
import functools
import itertools

from torch_stages import nvml
from torch_stages.passes import Passes, attend, fused
from torch_stages.plan import LAYERS, parameters_of


def facts(session):
    torch = session.torch
    what = {"device": "cpu core", "date": datetime.date.today().isoformat(), "driver": "none", "multiprocessors": 1}
    if session.gpu:
        card = torch.cuda.get_device_properties(session.device)
        what.update(device=card.name, multiprocessors=card.multi_processor_count, memory_bytes=card.total_memory,
                    compute_capability=f"{card.major}.{card.minor}", cuda=torch.version.cuda,
                    cudnn=torch.backends.cudnn.version(), driver="unknown", gpus=torch.cuda.device_count(),
                    under_load="matmul attention kernel")  # their stages burn in
        try:
            what.update(driver=session.card.driver(), power_limit_w=session.card.power_limit_w())
        except (AttributeError, nvml.Unreadable):
            pass  # the constructor has said why
        if torch.distributed.is_available() and torch.distributed.is_nccl_available():
            version = torch.cuda.nccl.version()
            what["nccl"] = ".".join(map(str, version)) if isinstance(version, tuple) else version
    wide = session.widens or session.dtype == torch.float32
    what.update(torch=torch.__version__, computed_in=str(session.dtype).split(".")[-1],
                weight_gradients="added to fp32 within the matmul" if wide else "added to bf16 within the matmul",
                attention="PyTorch's fused kernel" if fused(torch) else "batched matmuls and softmax")
    session.say(facts={k: str(v) for k, v in what.items() if v not in ("", None)})


def linear_shapes(plan):
    """Tokens, inputs and outputs of linear layers, those of layers first."""
    shapes = []
    for name in plan["layers"]:
        h, f, heads, kv, size, gated, tp, _, _ = LAYERS[name]
        for tokens in plan["tokens"]:
            shapes += [(tokens, h, (heads + 2 * kv) * size // tp), (tokens, heads * size // tp, h),
                       (tokens, h, (2 if gated else 1) * f // tp), (tokens, f // tp, h)]
    shapes += [(a, b, c) for a in plan["sides"] for b in plan["sides"][:3] for c in plan["sides"][-2:]]
    return list(dict.fromkeys(shapes))


def matmul_works(session, tokens, inputs, outputs):
    """fprop, dgrad and wgrad, each over operands in rotation."""
    torch, each = session.torch, session.torch.ones((), dtype=session.dtype).element_size()
    x, w, y = (tokens, inputs), (outputs, inputs), (tokens, outputs)
    moved = each * (tokens * inputs + inputs * outputs + tokens * outputs)

    def fprop():
        a, b, out = session.random(*x), session.random(*w), session.random(*y)
        return lambda: torch.mm(a, b.t(), out=out)

    def dgrad():
        a, b, out = session.random(*y), session.random(*w), session.random(*x)
        return lambda: torch.mm(a, b, out=out)

    def wgrad():
        dy, a = session.random(*y), session.random(*x)
        main = session.gradient_of(session.random(*w))
        return lambda: session.accumulate(main, dy, a)

    for name, make in (("fprop", fprop), ("dgrad", dgrad), ("wgrad", wgrad)):
        yield name, session.rotate(moved, make)


def matmuls(session):
    """Among a layer's passes."""
    session.burn_in()
    for tokens, inputs, outputs in linear_shapes(session.plan):
        for name, work in matmul_works(session, tokens, inputs, outputs):
            session.measure("matmul", name, dict(dtype="bf16", tokens=tokens, **{"in": inputs}, out=outputs), work,
                            flops=2.0 * tokens * inputs * outputs)


def fp8(session):
    torch = session.torch
    capable = session.gpu and torch.cuda.get_device_capability(session.device) >= (8, 9)
    if not capable or not hasattr(torch, "_scaled_mm"):
        reason = f"PyTorch {torch.__version__} has no fp8 matmul" if capable else "the device has no fp8 matrix units"
        return session.not_measured("matmul/fp8_e4m3", reason)
    session.burn_in()
    one = torch.ones((), device=session.device)
    for tokens, inputs, outputs in linear_shapes(session.plan):
        def make():
            a = session.random(tokens, inputs).to(torch.float8_e4m3fn)
            b = session.random(outputs, inputs).to(torch.float8_e4m3fn).t()
            return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

        moved = tokens * inputs + inputs * outputs + 2 * tokens * outputs
        session.measure("matmul", "fprop", dict(dtype="fp8", tokens=tokens, **{"in": inputs}, out=outputs),
                        session.rotate(moved, make), flops=2.0 * tokens * inputs * outputs)


def attention_kernels(torch):
    """By the label of a row, what makes PyTorch take that kernel; without a label it picks."""
    found = {"": contextlib.nullcontext}
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:  # before PyTorch 2.3
        return found
    for method, label in (("flash", "FLASH_ATTENTION"), ("cudnn", "CUDNN_ATTENTION")):
        if hasattr(SDPBackend, label):
            found[method] = functools.partial(sdpa_kernel, [getattr(SDPBackend, label)])
    return found


def attention(session):
    torch = session.torch
    session.burn_in()
    for length, size, (method, chosen) in itertools.product(session.plan["lengths"], (64, 128), attention_kernels(torch).items()):
        heads = 32 if session.gpu else 2
        shape = dict(batch=1, heads=heads, kv_heads=heads, sequence=length, head_dim=size, **({"method": method} if method else {}))
        q, k, v = (session.random(1, heads, length, size).requires_grad_() for _ in range(3))
        square, row = float(heads) * length * length * size, 4.0 * heads * length * size

        def forward():
            with chosen():
                return attend(torch, q, k, v)

        session.measure("attention", "forward", shape, forward, 2 * square, 2 * row)
        try:
            out = forward()
            session.measure("attention", "backward", shape,
                            lambda: torch.autograd.grad(out, (q, k, v), out.detach(), retain_graph=True), 5 * square, 4 * row)
        except RuntimeError as error:
            session.not_measured(f"attention/backward/sequence={length}/head_dim={size}/method={method}", error)


# Bytes that an element must move: each operand once, bf16 as 2.
STREAMS = {"copy": 4, "residual_add": 6, "layer_norm_forward": 4, "layer_norm_backward": 6, "gelu_forward": 4,
           "gelu_backward": 6, "softmax_forward": 4, "gradient_add": 10}


def stream_of(session, name, rows, columns):
    """A launch of the kernel over operands of its own. `gradient_add` adds a bf16 gradient to an fp32 one."""
    torch, f = session.torch, session.torch.nn.functional
    x, y, z = (session.random(rows, columns) for _ in range(3))
    gain = torch.ones(columns, device=session.device, dtype=session.dtype)
    if name == "gradient_add":
        main = torch.zeros(rows, columns, device=session.device)
        return lambda: main.add_(x)
    if name.endswith("_backward"):
        grad = x.requires_grad_()
        out = f.gelu(grad) if name == "gelu_backward" else f.layer_norm(grad, (columns,), gain)
        return lambda: torch.autograd.grad(out, grad, y, retain_graph=True)
    return {"copy": lambda: z.copy_(x), "residual_add": lambda: torch.add(x, y, out=z),
            "layer_norm_forward": lambda: f.layer_norm(x, (columns,), gain), "gelu_forward": lambda: f.gelu(x),
            "softmax_forward": lambda: x.softmax(-1)}[name]


def kernels(session):
    columns = 4096 if session.gpu else 256
    session.burn_in()
    for rows in session.plan["kernels"]:
        for name, each in STREAMS.items():
            moved = each * rows * columns
            session.measure("kernel", name, dict(rows=rows, columns=columns),
                            session.rotate(moved, lambda: stream_of(session, name, rows, columns)), moved=float(moved))


def layers(session):
    """Each pass of a layer among its own three."""
    for name in session.plan["layers"]:
        shape = parameters_of(name, LAYERS[name])
        try:
            passes = Passes(session, LAYERS[name])
            session.burn_in(passes)
        except RuntimeError as error:
            session.not_measured(f"layer/{name}", error)
            continue
        for label, work in zip("FBW", passes.all()):
            session.measure("layer", label, shape, work)
