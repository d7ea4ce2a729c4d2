#!/usr/bin/env python3
"""Measures GPUs with PyTorch alone, as `pipesim calibrate` does with CUDA: one file, nothing to build.

    python3 calibrate_torch.py -o DIR                                # one GPU
    torchrun --nproc-per-node=8 calibrate_torch.py -o DIR            # a node; on several nodes with --nnodes too
    pipesim-fit DIR                                                  # on any machine: DIR/measurements.csv

Every stage runs in a process of its own, which is ended when it takes too long; what it had measured stays, and the
next stage begins. DIR/measurements.csv is written anew after each. PyTorch from 1.13 on; what an old one lacks (fused
attention before 2.0, fp8 before 2.1) is listed as not measured, with the reason. Without a GPU it measures the
processor over gloo in float32, which shows that it runs.
"""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

HEADER = ("group,name,parameters,flops,bytes,median_us,p10_us,p90_us,min_us,repetitions,launches_per_repetition,"
          "sm_clock_mhz,memory_clock_mhz,temperature_c,power_w,throttle_reasons")
# hidden, feed forward, heads, key-value heads, head size, gated; tensor parallel, micro batch, sequence
LAYERS = {"gpt-6.2b": (4096, 16384, 32, 32, 128, False, 1, 3, 1024),
          "llama3-70b": (8192, 28672, 64, 8, 128, True, 8, 1, 8192),
          "tiny": (128, 512, 2, 2, 64, False, 1, 1, 64)}
MODES = {
    "tiny": dict(layers=["tiny"], tokens=[64, 128], sides=[1024], lengths=[64, 128], kernels=[256], burn=0.05,
                 copies=[1 << 16, 1 << 18, 1 << 20], messages=[1 << n for n in range(10, 21, 2)], sample=2e-3, repeat=3, launches=3),
    "quick": dict(layers=["gpt-6.2b", "llama3-70b"], tokens=[2048, 8192], sides=[1024, 2048, 4096, 8192],
                  lengths=[2048, 4096, 8192], kernels=[4096, 65536], burn=3.0,
                  copies=[1 << n for n in range(20, 29, 2)], messages=[1 << n for n in range(16, 29, 2)], sample=5e-3,
                  repeat=9, launches=20),
    "full": dict(layers=["gpt-6.2b", "llama3-70b"], tokens=[1024, 2048, 4096, 8192],
                 sides=[512, 1024, 2048, 3072, 4096, 6144, 8192], lengths=[1024, 2048, 4096, 8192, 16384],
                 kernels=[4096, 16384, 65536], burn=10.0, copies=[1 << n for n in range(16, 29)],
                 messages=[1 << n for n in range(10, 30)], sample=10e-3, repeat=25,
                 launches=20),
}
CYCLES_PER_SECOND = 2e9  # no GPU's clock is faster
# Name, whether all ranks take part, and seconds after which it is ended (tiny: a sixth).
STAGES = [("facts", False, 60), ("kernels", False, 120), ("attention", False, 180), ("copies", False, 120),
          ("layers", False, 240), ("matmuls", False, 600), ("fp8", False, 240), ("interference", False, 120),
          ("copies_together", True, 180), ("collectives", True, 420)]


class Clocks:
    """The state of a GPU as nvidia-smi says it, twice a second beside the measuring; nothing where it is not there."""

    QUERY = "clocks.sm,clocks.mem,temperature.gpu,power.draw"

    def __init__(self, index):
        self.state = ["", "", "", "", ""]
        if shutil.which("nvidia-smi"):
            threading.Thread(target=self.watch, args=(index,), daemon=True).start()

    def watch(self, index):
        line = ["nvidia-smi", "-i", str(index), "--query-gpu=" + self.QUERY, "--format=csv,noheader,nounits", "-lms", "500"]
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
            for row in child.stdout:
                cells = [cell.strip() for cell in row.split(",")]
                if len(cells) == 4 and all(cell.replace(".", "", 1).isdigit() for cell in cells):
                    self.state = cells + ["0"]


class Session:
    """What a stage measures with: the device, the clock, and where results go."""

    def __init__(self, options, torch):
        self.torch, self.plan = torch, MODES[options.mode]
        self.rank = int(os.environ.get("RANK", 0))
        local = int(os.environ.get("LOCAL_RANK", 0))
        self.gpu = torch.cuda.is_available()
        self.device = torch.device(f"cuda:{local}" if self.gpu else "cpu")
        if self.gpu:
            torch.cuda.set_device(self.device)
        else:
            torch.set_num_threads(1)
        self.dtype = torch.bfloat16 if self.gpu else torch.float32
        self.clocks = Clocks(local) if self.gpu else Clocks.__new__(Clocks)
        if not self.gpu:
            self.clocks.state = ["", "", "", "", ""]
        self.out = open(pathlib.Path(options.output) / "parts" / f"{options.stage}.{self.rank}.jsonl", "a")

    def say(self, **what):
        self.out.write(json.dumps(what) + "\n")
        self.out.flush()

    def random(self, *shape):
        return self.torch.randn(*shape, device=self.device, dtype=self.torch.float32).to(self.dtype)

    def synchronize(self):
        if self.gpu:
            self.torch.cuda.synchronize()

    def host_seconds(self, work):
        """How long the host takes to launch it."""
        self.synchronize()
        start = time.perf_counter()
        work()
        took = time.perf_counter() - start
        self.synchronize()
        return took

    def batch(self, work, launches, host=20e-6):
        """Seconds of one launch; on a GPU of the device alone, behind a kernel that waits while the host launches."""
        if not self.gpu:
            start = time.perf_counter()
            for _ in range(launches):
                work()
            return (time.perf_counter() - start) / launches
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.torch.cuda._sleep(int(CYCLES_PER_SECOND * min(0.05, 1.5 * host * (launches + 2))))
        begin.record()
        for _ in range(launches):
            work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3 / launches

    def measure(self, group, name, parameters, work, flops=0, moved=0, together=None):
        """One point; an error is noted and not passed on. `together` holds ranks in step before every batch."""
        key = "/".join([group, name] + [f"{k}={v}" for k, v in parameters.items()])
        try:
            work()
            host = self.host_seconds(work)
            launches = self.plan["launches"]  # of ranks in step: as often on each
            if together is None:
                launches = max(1, min(200, int(self.plan["sample"] / max(self.batch(work, 2, host), 1e-7))))
            seconds = []
            for _ in range(self.plan["repeat"]):
                if together is not None:
                    together()
                seconds.append(self.batch(work, launches, host))
            if self.rank == 0:
                self.say(group=group, name=name, parameters=parameters, flops=flops, bytes=moved, seconds=seconds,
                         launches=launches, state=self.clocks.state)
        except Exception as error:  # whatever a library refuses
            self.not_measured(key, error)

    def not_measured(self, what, reason):
        if self.rank == 0:
            self.say(not_measured=what, reason=" ".join(str(reason).split())[:300])

    def burn_in(self):
        """Clocks and temperature as they are under load that lasts."""
        side = 256 if not self.gpu else 8192
        a, b = self.random(side, side), self.random(side, side)
        until = time.monotonic() + self.plan["burn"]
        while time.monotonic() < until:
            for _ in range(4):
                a @ b
            self.synchronize()


# ---- stages of one device ----

def facts(session):
    torch = session.torch
    what = {"device": "cpu core", "date": datetime.date.today().isoformat(), "driver": "none", "multiprocessors": 1}
    if session.gpu:
        card = torch.cuda.get_device_properties(session.device)
        what.update(device=card.name, multiprocessors=card.multi_processor_count, memory_bytes=card.total_memory,
                    compute_capability=f"{card.major}.{card.minor}", cuda=torch.version.cuda,
                    cudnn=torch.backends.cudnn.version(), driver=nvidia_smi("driver_version") or "unknown",
                    power_limit_w=nvidia_smi("power.limit"), gpus=torch.cuda.device_count())
        nccl = getattr(torch.cuda, "nccl", None)
        what["nccl"] = ".".join(map(str, nccl.version())) if nccl and isinstance(nccl.version(), tuple) else ""
    what.update(torch=torch.__version__, computed_in=str(session.dtype).split(".")[-1],
                attention="PyTorch's fused kernel" if fused(torch) else "batched matmuls and softmax")
    session.say(facts={k: str(v) for k, v in what.items() if v not in ("", None)})


def nvidia_smi(query):
    try:
        line = ["nvidia-smi", "-i", "0", "--query-gpu=" + query, "--format=csv,noheader,nounits"]
        return subprocess.run(line, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def fused(torch):
    return hasattr(torch.nn.functional, "scaled_dot_product_attention")


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
    x, w = session.random(tokens, inputs), session.random(outputs, inputs)
    dy = session.random(tokens, outputs)
    main = session.torch.zeros(outputs, inputs, device=session.device)
    return {"fprop": lambda: x @ w.t(), "dgrad": lambda: dy @ w,
            "wgrad": lambda: main.add_(dy.t() @ x)}  # into an fp32 gradient, as trainers add it up


def matmuls(session):
    """Every shape twice: at once after a pause, and after seconds of load."""
    shapes = linear_shapes(session.plan)
    for group in ("matmul_burst", "matmul"):
        if group == "matmul":
            session.burn_in()
        for tokens, inputs, outputs in shapes if group == "matmul" else shapes[:8]:
            if group == "matmul_burst":
                time.sleep(min(1.0, session.plan["burn"] / 3))
            for name, work in matmul_works(session, tokens, inputs, outputs).items():
                session.measure(group, name, dict(dtype="bf16", tokens=tokens, **{"in": inputs}, out=outputs), work,
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
        a = session.random(tokens, inputs).to(torch.float8_e4m3fn)
        b = session.random(outputs, inputs).to(torch.float8_e4m3fn).t()
        session.measure("matmul", "fprop", dict(dtype="fp8", tokens=tokens, **{"in": inputs}, out=outputs),
                        lambda a=a, b=b: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16),
                        flops=2.0 * tokens * inputs * outputs)


def attend(torch, q, k, v):
    """Causal; q of (batch, heads, sequence, size), k and v of as many or fewer heads."""
    if k.shape[1] != q.shape[1]:
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
    if fused(torch):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    mask = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(mask, float("-inf")).softmax(-1) @ v


def attention(session):
    torch = session.torch
    for length in session.plan["lengths"]:
        for size in (64, 128):
            heads = 32 if session.gpu else 2
            shape = dict(batch=1, heads=heads, kv_heads=heads, sequence=length, head_dim=size)
            q, k, v = (session.random(1, heads, length, size).requires_grad_() for _ in range(3))
            square, row = float(heads) * length * length * size, 4.0 * heads * length * size
            session.measure("attention", "forward", shape, lambda: attend(torch, q, k, v), 2 * square, 2 * row)
            try:
                out = attend(torch, q, k, v)
                session.measure("attention", "backward", shape,
                                lambda: torch.autograd.grad(out, (q, k, v), out.detach(), retain_graph=True),
                                5 * square, 4 * row)
            except RuntimeError as error:
                session.not_measured(f"attention/backward/sequence={length}/head_dim={size}", error)


def kernels(session):
    torch, f = session.torch, session.torch.nn.functional
    columns = 4096 if session.gpu else 256
    for rows in session.plan["kernels"]:
        x, y, z = (session.random(rows, columns) for _ in range(3))
        gain = torch.ones(columns, device=session.device, dtype=session.dtype)
        grad = x.clone().requires_grad_()
        normed, acted = f.layer_norm(grad, (columns,), gain), f.gelu(grad)

        def backward(of):
            return lambda: torch.autograd.grad(of, grad, y, retain_graph=True)

        works = {"copy": (4, lambda: z.copy_(x)), "residual_add": (6, lambda: torch.add(x, y, out=z)),
                 "layer_norm_forward": (4, lambda: f.layer_norm(x, (columns,), gain)),
                 "layer_norm_backward": (6, backward(normed)), "gelu_forward": (4, lambda: f.gelu(x)),
                 "gelu_backward": (6, backward(acted)), "softmax_forward": (4, lambda: x.softmax(-1))}
        for name, (each, work) in works.items():
            session.measure("kernel", name, dict(rows=rows, columns=columns), work, moved=float(each) * rows * columns)


def layers(session):
    """A layer's F, B (gradients of inputs alone) and W (those of weights)."""
    torch = session.torch
    for name in session.plan["layers"]:
        h, f, heads, kv, size, gated, tp, batch, length = LAYERS[name]
        waiting = []

        class Linear(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w, main):
                ctx.save_for_backward(x, w)
                ctx.main = main
                return x @ w.t()

            @staticmethod
            def backward(ctx, dy):
                x, w = ctx.saved_tensors
                waiting.append((x, dy, ctx.main))
                return dy @ w, None, None

        try:
            weights = [session.random(out, inp) for out, inp in
                       [((heads + 2 * kv) * size // tp, h), (h, heads * size // tp),
                        ((2 if gated else 1) * f // tp, h), (h, f // tp)]]
            mains = [torch.zeros(w.shape, device=session.device) for w in weights]
            gain = torch.ones(h, device=session.device, dtype=session.dtype)
            x = session.random(batch * length, h).requires_grad_()
        except RuntimeError as error:
            session.not_measured(f"layer/{name}", error)
            continue

        def forward():
            norm, split = torch.nn.functional.layer_norm, [heads // tp, kv // tp, kv // tp]
            qkv = Linear.apply(norm(x, (h,), gain), weights[0], mains[0]).view(batch, length, sum(split), size)
            q, k, v = qkv.transpose(1, 2).split(split, dim=1)
            mixed = attend(torch, q, k, v).transpose(1, 2).reshape(batch * length, -1)
            middle = x + Linear.apply(mixed, weights[1], mains[1])
            up = Linear.apply(norm(middle, (h,), gain), weights[2], mains[2])
            if gated:
                gate, up = up.chunk(2, dim=-1)
                up = torch.nn.functional.silu(gate) * up
            else:
                up = torch.nn.functional.gelu(up)
            return middle + Linear.apply(up, weights[3], mains[3])

        def backward():
            waiting.clear()
            return torch.autograd.grad(out, x, out.detach(), retain_graph=True)

        def weight_gradients():
            for inputs, dy, main in waiting:
                main.add_(dy.t() @ inputs)

        shape = dict(layer=name, tensor_parallel=tp, micro_batch=batch, sequence=length, hidden=h, feed_forward=f,
                     heads=heads, kv_heads=kv, head_dim=size, gated=int(gated), rms_norm=0, dropout=0)
        session.burn_in()
        session.measure("layer", "F", shape, forward)
        try:
            out = forward()
            session.measure("layer", "B", shape, backward)
            backward()
            session.measure("layer", "W", shape, weight_gradients)
        except RuntimeError as error:
            session.not_measured(f"layer/B and W/{name}", error)


def copy_works(session, size):
    """Copies of that many bytes on streams of their own, one each way."""
    torch = session.torch
    count = size // 2
    half = torch.bfloat16
    there, here = torch.zeros(count, dtype=half, device=session.device), torch.zeros(count, dtype=half)
    back, home = torch.zeros(count, dtype=half, device=session.device), torch.zeros(count, dtype=half)
    if session.gpu:
        here, home = here.pin_memory(), home.pin_memory()
    return {"h2d": lambda: there.copy_(here, non_blocking=True), "d2h": lambda: home.copy_(back, non_blocking=True)}


def beside(session, work, other, times=1):
    """`work`, while `other` runs `times` times on another stream, which begins before it."""
    if not session.gpu:
        return work
    stream = session.torch.cuda.Stream()

    def both():
        with session.torch.cuda.stream(stream):
            for _ in range(times):
                other()
        work()
    return both


def outlast(session, work, other, agree=lambda times: times):
    """How often `other` has to run to last longer than `work` beside it; `agree` makes ranks take one number."""
    for each in (work, other):
        each()
    session.synchronize()
    lasts = []
    for each in (work, other):
        lasts.append(max(session.batch(each, 3), 1e-7))
        session.synchronize()
    return agree(max(1, int(2 * lasts[0] / lasts[1]) + 1))


def disturbed(session, where, disturbances, together=None, agree=lambda times: times):
    """A matmul with nothing beside it, then beside each of what disturbs it, by name."""
    side = 8192
    a, b = session.random(side, side), session.random(side, side)
    multiply = lambda: a @ b
    for during, other in [("nothing", None)] + list(disturbances.items()):
        parameters = dict({"pass": "fprop", "dtype": "bf16", "tokens": side, "in": side, "out": side}, **where, during=during)
        try:
            work = multiply if other is None else beside(session, multiply, other, outlast(session, multiply, other, agree))
        except Exception as error:  # whatever a library refuses
            session.not_measured(f"interference/matmul/during={during}", error)
            continue
        session.burn_in()  # the clocks of a load that lasts, for each
        session.measure("interference", "matmul", parameters, work, flops=2.0 * side ** 3, together=together)
        session.synchronize()


def copies(session, group="copy", together=None):
    for size in session.plan["copies"]:
        works = copy_works(session, size)
        for name, work in works.items():
            parameters = dict(size=size, during="nothing")
            session.measure(group, name, parameters, work, moved=size, together=together)
            if not session.gpu:
                continue
            other = "d2h" if name == "h2d" else "h2d"
            session.measure(group, name, dict(size=size, during=other), beside(session, work, works[other], 2),
                            moved=size, together=together)
    if not session.gpu:
        session.not_measured(f"{group} both ways at once", "there is no GPU to copy to")


def interference(session):
    if not session.gpu:
        return session.not_measured("interference", "there is no GPU to copy to")
    disturbed(session, {}, copy_works(session, 64 << 20))


# ---- stages of all ranks ----

def joined(session):
    """torch.distributed, with all ranks; nothing where there is one."""
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        return None
    import torch.distributed as dist
    dist.init_process_group("nccl" if session.gpu else "gloo", timeout=datetime.timedelta(seconds=600))
    return dist


def copies_together(session):
    """All GPUs of every node copy at once: what a GPU gets of its switch then."""
    dist = joined(session)
    if dist is None:
        return session.not_measured("copy_together", "one rank: nobody shares a switch with it")
    copies(session, "copy_together", dist.barrier)


def operations(session, dist, group, ranks, size, step=1):
    """Messages go `step` ranks on: to the same GPU of the next node where a group spans nodes."""
    torch, rank = session.torch, dist.get_rank()
    count = max(ranks, size // 2 // ranks * ranks)
    whole = torch.ones(count, dtype=torch.bfloat16 if session.gpu else torch.float32, device=session.device)
    other = torch.zeros_like(whole)
    parts, others = list(whole.chunk(ranks)), list(other.chunk(ranks))

    def ring():
        to, of = (rank + step) % ranks, (rank - step) % ranks
        ops = [dist.P2POp(dist.isend, whole, to), dist.P2POp(dist.irecv, other, of)]
        for each in dist.batch_isend_irecv(ops):
            each.wait()

    def exchange():
        if rank < 2 * step:
            peer = (rank + step) % (2 * step)
            ops = [dist.P2POp(dist.isend, whole, peer), dist.P2POp(dist.irecv, other, peer)]
            for each in dist.batch_isend_irecv(ops):
                each.wait()

    return {"send_recv": ring, "exchange": exchange,
            "all_reduce": lambda: dist.all_reduce(whole, group=group),
            "all_gather": lambda: dist.all_gather(others, parts[rank % ranks], group=group),
            "reduce_scatter": lambda: dist.reduce_scatter(parts[0], others, group=group),
            "all_to_all": lambda: dist.all_to_all(others, parts, group=group)}


def collectives(session):
    dist = joined(session)
    if dist is None:
        return session.not_measured("nccl", "one rank: there is nobody to send to")
    world, local = dist.get_world_size(), int(os.environ.get("LOCAL_WORLD_SIZE", dist.get_world_size()))
    counts = sorted(n for n in {min(2 ** n, world) for n in range(1, 12)} if n <= local or n % local == 0)
    for ranks in counts:
        group = dist.new_group(list(range(ranks)))
        if dist.get_rank() >= ranks:
            continue  # the others of a larger group wait in its making
        within = ranks <= local
        for size in session.plan["messages"]:
            for name, work in operations(session, dist, group, ranks, size, 1 if within else local).items():
                parameters = dict(ranks=ranks, size=size) if within else dict(ranks=ranks, nodes=ranks // local, size=size)
                session.measure("nccl" if within else "network", name, parameters, work, moved=size,
                                together=lambda: dist.barrier(group=group))
        if not session.gpu:
            session.not_measured(f"interference/ranks={ranks}", "there is no GPU whose messages compute could run beside")
        elif within:
            works = operations(session, dist, group, ranks, 64 << 20)

            def agree(times):
                said = session.torch.tensor([times], device=session.device)
                dist.broadcast(said, 0, group=group)
                return int(said.item())

            disturbed(session, dict(ranks=ranks), {name: works[name] for name in ("send_recv", "all_reduce", "all_gather")},
                      lambda: dist.barrier(group=group), agree)


# ---- the supervisor ----

def run_stage(options):
    import torch
    session = Session(options, torch)
    globals()[options.stage](session)


def supervise(options, stage, index, limit):
    """Runs a stage in a process of its own. Says why it did not end well, or nothing."""
    environment = dict(os.environ, TORCHELASTIC_USE_AGENT_STORE="False")
    if "MASTER_PORT" in environment:  # a hung stage may keep its own
        environment["MASTER_PORT"] = str(int(environment["MASTER_PORT"]) + 1 + index)
    line = [sys.executable, os.path.abspath(__file__), "-o", options.output, "--mode", options.mode, "--stage", stage]
    child = subprocess.Popen(line, env=environment, start_new_session=True, stderr=subprocess.PIPE, text=True)
    try:
        _, errors = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return f"it had not ended after {limit:.0f} s"
    except BaseException:  # Ctrl-C: nobody is left behind
        os.killpg(child.pid, signal.SIGKILL)
        raise
    last = (errors.strip().splitlines() or [""])[-1]
    return "" if child.returncode == 0 else f"it ended with code {child.returncode}: {last}"


def quantile(values, share):
    at = share * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def row_of(entry):
    us = sorted(1e6 * s for s in entry["seconds"])
    cells = [entry["group"], entry["name"], " ".join(f"{k}={v}" for k, v in entry["parameters"].items()),
             f"{entry['flops']:.10g}", f"{entry['bytes']:.10g}"]
    cells += [f"{max(1e-6, quantile(us, share)):.6g}" for share in (0.5, 0.1, 0.9, 0)]
    return ",".join(cells + [str(len(us)), str(entry["launches"])] + entry["state"])


def write_measurements(options, failures, started):
    """What rank 0's stages have said so far."""
    folder = pathlib.Path(options.output)
    facts_found, rows, missing = {}, [], list(failures)
    for stage, _, _ in STAGES:
        part = folder / "parts" / f"{stage}.0.jsonl"
        for line in part.read_text().splitlines() if part.exists() else []:
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # a line that a killed process did not finish
            if "facts" in entry:
                facts_found.update(entry["facts"])
            elif "not_measured" in entry:
                missing.append((entry["not_measured"], entry["reason"]))
            else:
                rows.append(row_of(entry))
    facts_found.update(tool="calibrate_torch.py", mode=options.mode, duration=f"{time.monotonic() - started:.0f} s")
    lines = ["# pipesim-measurements/1"] + [f"# {name}: {value}" for name, value in facts_found.items()]
    lines += [f"# not_measured: {what}: {' '.join(reason.split()) or 'unknown'}" for what, reason in missing]
    new = folder / "measurements.csv.new"
    new.write_text("\n".join(lines + [HEADER] + rows) + "\n")
    new.replace(folder / "measurements.csv")
    return len(rows), len(missing)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, help="folder of measurements.csv")
    parser.add_argument("--mode", choices=MODES, default="quick")
    parser.add_argument("--only", help="stages, with commas between: " + ", ".join(s[0] for s in STAGES))
    parser.add_argument("--limit-factor", type=float, default=1.0, help="on the seconds that a stage may take")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        return run_stage(options)
    rank, started, failures, points = int(os.environ.get("RANK", 0)), time.monotonic(), [], (0, 0)
    parts = pathlib.Path(options.output) / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    wanted = [name for name, _, _ in STAGES] if not options.only else options.only.split(",")
    before = 0.0  # what rank 0 may take for stages that it runs alone, and others wait
    for index, (stage, all_ranks, limit) in enumerate(STAGES):
        if stage not in wanted:
            continue
        limit *= options.limit_factor * (1 / 6 if options.mode == "tiny" else 1)
        if rank > 0 and not all_ranks:
            before += limit
            continue
        (parts / f"{stage}.{rank}.jsonl").unlink(missing_ok=True)
        reason = supervise(options, stage, index, limit + (before if all_ranks else 0))
        before = 0.0 if all_ranks else before
        if rank == 0:
            if reason:
                failures.append((f"the rest of {stage}", reason))
            points = write_measurements(options, failures, started)
            print(f"after {time.monotonic() - started:.0f} s: {stage}{': ' + reason if reason else ''}; "
                  f"{points[0]} points, {points[1]} not measured", file=sys.stderr, flush=True)
    return 0 if rank > 0 or points[0] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
