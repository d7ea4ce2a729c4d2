"""Matmuls of a mixture's experts: in one grouped kernel, one by one, and as one dense matmul of as many rows."""

# hidden, feed forward of an expert, experts, chosen per token; experts on one GPU
MODELS = {"deepseek-v3": (7168, 2048, 256, 8, 8), "qwen3-235b": (4096, 1536, 128, 8, 16),
          "gpt-oss-120b": (2880, 2880, 128, 4, 16), "mixtral-8x7b": (4096, 14336, 8, 2, 8), "tiny": (64, 32, 8, 2, 4)}
ALIGNED = 16  # rows of an expert are padded to a multiple of it, as the kernels ask
FULLEST = (1.0, 1.2, 2.0)  # rows of the fullest expert, to the mean


def rows_by_expert(rows, experts, fullest):
    """The first has `fullest` times its share; the others share the rest."""
    mean = rows / experts
    first = int(fullest * mean) // ALIGNED * ALIGNED
    each = (rows - first) // (experts - 1) // ALIGNED * ALIGNED
    return [first] + [each] * (experts - 1)


def grouped_kernel(torch):
    """PyTorch's grouped matmul, of (rows, in), (experts, in, out) and the rows' ends; nothing where it has none."""
    public = getattr(torch.nn.functional, "grouped_mm", None)
    return public or getattr(torch, "_grouped_mm", None)


def works(session, rows, inner, outer):
    """By way: a launch of the experts' matmuls, and how many rows it has."""
    torch, total = session.torch, sum(rows)
    x, weights = session.random(total, inner), session.random(len(rows), inner, outer)
    parts, kernel = list(x.split(rows)), grouped_kernel(torch)
    ends = torch.tensor(rows, device=session.device).cumsum(0).to(torch.int32)

    def loop():
        for part, weight in zip(parts, weights.unbind(0)):
            part @ weight

    found = {"loop": loop, "dense": lambda: x @ weights[0]}
    if kernel is not None and session.gpu:
        found["grouped"] = lambda: kernel(x, weights, offs=ends)
    return found


def permuted(session, name, tokens, hidden, top_k):
    """Rows gathered by expert, and added back to their tokens."""
    torch = session.torch
    x, order = session.random(tokens, hidden), torch.randperm(tokens * top_k, device=session.device) // top_k
    rows = x.index_select(0, order)
    total = torch.zeros_like(x)
    moved = 2.0 * 2 * rows.numel()
    parameters = dict(model=name, tokens=tokens, top_k=top_k, hidden=hidden)
    session.measure("grouped", "permute", parameters, lambda: x.index_select(0, order), moved=moved)
    session.measure("grouped", "unpermute", parameters, lambda: total.index_add_(0, order, rows), moved=moved)


def grouped(session):
    session.burn_in()
    if not session.gpu or grouped_kernel(session.torch) is None:
        reason = "there is no GPU" if not session.gpu else f"PyTorch {session.torch.__version__} has no grouped matmul"
        session.not_measured("grouped/way=grouped", reason)
    tokens = 4096 if session.gpu else 64
    for name in [n for n in MODELS if n != "tiny"] if session.gpu else ["tiny"]:
        hidden, feed_forward, _, top_k, local = MODELS[name]
        permuted(session, name, tokens, hidden, top_k)
        for fullest in FULLEST:
            rows = rows_by_expert(tokens * top_k, local, fullest)
            for part, inner, outer in (("first", hidden, 2 * feed_forward), ("second", feed_forward, hidden)):
                try:
                    found = works(session, rows, inner, outer)
                except RuntimeError as error:
                    session.not_measured(f"grouped/{part}/model={name}", error)
                    continue
                for way, work in found.items():
                    parameters = dict(model=name, experts=local, rows=sum(rows), fullest=fullest, way=way)
                    session.measure("grouped", part, parameters, work, flops=2.0 * sum(rows) * inner * outer)
