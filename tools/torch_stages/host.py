"""The host's time: of a single launch, and of a layer's passes eager, compiled and as a CUDA graph."""
from torch_stages.llama import llama
from torch_stages.plan import parameters_of

LAYERS_OF_A_STACK = 2


def shapes(session):
    """Short passes, which the host's time shows in, in the form of plan.LAYERS."""
    if not session.gpu:
        return [(128, 512, 2, 2, 64, True, 1, 1, 64)]
    return [(hidden, 7 * hidden // 2, hidden // 128, hidden // 512, 128, True, 1, 1, length)
            for length in (2048, 512) for hidden in (4096, 1024, 2048)]


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


def host(session):
    if not (session.gpu or session.dry):
        return session.not_measured("host", "there is no GPU: the host's time is that of the work itself")
    x = session.random(8, 8)
    session.measure_host("launch", "host_launch", {}, lambda: x.add_(1))
    for shape in shapes(session):
        for mode in ("eager", "cuda_graphs", "compiled"):
            parameters = dict(mode=mode, layers=LAYERS_OF_A_STACK, **parameters_of("llama", shape, rms_norm=1))
            try:
                if mode == "cuda_graphs":
                    graph(session, shape, parameters)
                    continue
                stack = Stack(session, shape, mode)
                for name, work in (("F", stack.forward), ("B", stack.backward)):
                    session.measure_host("host", name, parameters, work, most=4)
            except Exception as error:  # whatever a library refuses
                session.not_measured(f"host/mode={mode}/hidden={shape[0]}/sequence={shape[8]}", error)
