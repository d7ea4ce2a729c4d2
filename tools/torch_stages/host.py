"""The host's time: of single launches, and of a layer's passes eager, compiled and as a CUDA graph, beside the device's."""
import time

from torch_stages.llama import llama

LAYERS_OF_A_STACK = 2


def shapes(session):
    """hidden, feed forward, heads, key-value heads, head size, gated; tensor parallel, micro batch, sequence."""
    if not session.gpu:
        return [(128, 512, 2, 2, 64, True, 1, 1, 64)]
    return [(hidden, 7 * hidden // 2, hidden // 128, hidden // 512, 128, True, 1, 1, length)
            for length in (2048, 512) for hidden in (4096, 1024, 2048)]


def launches(session):
    x = session.random(8, 8)
    session.measure_host("host", "launch", {}, lambda: x.add_(1))

    def waited():
        x.add_(1)
        session.synchronize()

    session.measure_host("host", "launch_and_wait", {}, waited)
    session.measure("launch", "kernel_to_kernel", {}, lambda: x.add_(1))


def operations_of(session, work):
    """ATen operations of one call; none where PyTorch cannot tell."""
    try:
        from torch.utils._python_dispatch import TorchDispatchMode
    except ImportError:
        return {}
    count = [0]

    class Counter(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            count[0] += 1
            return function(*args, **(kwargs or {}))

    with Counter():
        work()
    return dict(operations=count[0] // LAYERS_OF_A_STACK)


class Stack:
    """Some layers, so that what only the first costs counts little; all times are of the whole stack."""

    def __init__(self, session, shape, mode):
        torch = session.torch
        self.session, self.mode = session, mode
        self.model = llama(torch, shape, LAYERS_OF_A_STACK).to(session.device, session.dtype)
        self.eager = self.model
        if mode == "compiled":
            if not hasattr(torch, "compile"):
                raise RuntimeError(f"PyTorch {torch.__version__} has no torch.compile")
            self.model = torch.compile(self.model, dynamic=False)
        self.x = session.random(*shape[7:9], shape[0]).requires_grad_()
        self.dy = session.random(*shape[7:9], shape[0])
        self.forward()
        self.backward()

    def forward(self):
        self.out = self.model(self.x)

    def backward(self):
        self.session.torch.autograd.grad(self.out, [self.x] + list(self.eager.parameters()), self.dy, retain_graph=True)

    def both(self):
        self.forward()
        self.session.torch.autograd.grad(self.out, [self.x] + list(self.eager.parameters()), self.dy)


def wall(session, parameters, work):
    """Seconds of a loop: the longer of the host's and the device's time, if they overlap."""
    seconds = []
    for _ in range(session.plan["repeat"]):
        session.synchronize()
        start, times = time.perf_counter(), max(1, session.plan["launches"] // 4)
        for _ in range(times):
            work()
        session.synchronize()
        seconds.append((time.perf_counter() - start) / times)
    session.say(group="host", name="loop", parameters=parameters, flops=0, bytes=0, seconds=seconds, launches=times,
                state=[""] * 5)


def graph(session, shape, parameters):
    torch = session.torch
    if not session.gpu:
        raise RuntimeError("there is no GPU that could run a CUDA graph")
    stack = Stack(session, shape, "eager")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            stack.both()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        stack.both()
    session.measure_host("host", "FB", parameters, captured.replay, most=4)
    session.measure("launch", "FB", parameters, captured.replay)
    wall(session, parameters, captured.replay)


def host(session):
    launches(session)
    for shape in shapes(session):
        for mode in ("eager", "graph", "compiled"):
            parameters = dict(mode=mode, layers=LAYERS_OF_A_STACK, hidden=shape[0], micro_batch=shape[7], sequence=shape[8])
            try:
                if mode == "graph":
                    graph(session, shape, parameters)
                    continue
                stack = Stack(session, shape, mode)
                counted = operations_of(session, stack.forward) if mode == "eager" else {}
                for name, work in (("F", stack.forward), ("B", stack.backward)):
                    session.measure_host("host", name, dict(parameters, **(counted if name == "F" else {})), work, most=4)
                    session.measure("launch", name, parameters, work)
                wall(session, parameters, stack.both)
            except Exception as error:  # whatever a library refuses
                session.not_measured(f"host/mode={mode}/hidden={shape[0]}/sequence={shape[8]}", error)
