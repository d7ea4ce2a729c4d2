"""The tools of a stage: the device, the clock, and the file of results."""
import itertools
import json
import math
import os
import pathlib
import time

from torch_stages import nvml
from torch_stages.passes import Passes
from torch_stages.plan import LAYERS, MODES

CYCLES_PER_SECOND = 2e9  # no GPU's clock is faster
LOAD_S = 2e-3  # of a layer's passes, at least, ahead of every batch
CACHE_IF_UNKNOWN = 128 << 20  # no GPU's L2 is larger; PyTorch before 2.1 does not say
MOST_SETS = 64  # of operands in rotation
COVERING_TRIES = 4


class NotCovered(Exception):
    """Work beside a batch ended before the batch did."""


class Session:
    def __init__(self, options, torch):
        self.torch, self.plan = torch, MODES[options.mode]
        self.rank = int(os.environ.get("RANK", 0))
        local = int(os.environ.get("LOCAL_RANK", 0))
        self.gpu, self.dry = torch.cuda.is_available(), options.mode == "tiny"
        self.device = torch.device(f"cuda:{local}" if self.gpu else "cpu")
        self.folder, self.stage = pathlib.Path(options.output), options.stage
        self.out = open(self.folder / "parts" / f"{options.stage}.{self.rank}.jsonl", "a")
        self.card = None
        if self.gpu:
            torch.cuda.set_device(self.device)
            try:
                self.card = nvml.Card(local)
            except nvml.Unreadable as error:
                self.not_measured(f"clocks and power of {options.stage}", error)
        else:
            torch.set_num_threads(1)
        self.dtype = torch.bfloat16 if self.gpu else torch.float32
        card = torch.cuda.get_device_properties(self.device) if self.gpu else None
        self.cache = getattr(card, "L2_cache_size", CACHE_IF_UNKNOWN) if self.gpu else 1 << 16
        self.widens = self.can_widen()
        self.load, self.load_s = None, 0.0  # enqueues some ahead of a batch; its seconds on the device

    # ---- results ----

    def say(self, **what):
        self.out.write(json.dumps(what) + "\n")
        self.out.flush()

    def not_measured(self, what, reason):
        if self.rank == 0:
            self.say(not_measured=what, reason=" ".join(str(reason).split())[:300])

    def state(self):
        try:
            return self.card.state() if self.card else [""] * 5
        except nvml.Unreadable:
            return [""] * 5

    # ---- operands ----

    def random(self, *shape):
        return self.torch.randn(*shape, device=self.device, dtype=self.torch.float32).to(self.dtype)

    def rotate(self, moved, make):
        """A launch over operands of its own in turn, so many that they exceed the L2 cache four times over.

        `make` returns one launch, whose operands have `moved` bytes."""
        sets = max(1, min(MOST_SETS, math.ceil(4 * self.cache / max(1, moved))))
        turn = itertools.cycle([make() for _ in range(sets)])
        return lambda: next(turn)()

    def can_widen(self):
        """True if a bf16 matmul adds to an fp32 matrix (PyTorch 2.8 and later, on a GPU)."""
        if not self.gpu:
            return False
        try:
            one = self.torch.ones(64, 64, device=self.device, dtype=self.dtype)
            main = self.torch.ones(64, 64, device=self.device)
            self.torch.addmm(main, one, one, out_dtype=self.torch.float32, out=main)
            return bool((main == 65).all())
        except (TypeError, RuntimeError):
            return False

    def gradient_of(self, weight):
        """The matrix that `accumulate` adds to: fp32 where a matmul can, else the weight's type."""
        wide = self.torch.float32 if self.widens else self.dtype
        return self.torch.zeros(weight.shape, device=self.device, dtype=wide)

    def accumulate(self, main, dy, x):
        """A weight's gradient, added up within the matmul as frameworks have it."""
        if self.widens:
            self.torch.addmm(main, dy.t(), x, out_dtype=self.torch.float32, out=main)
        else:
            main.addmm_(dy.t(), x)

    # ---- time ----

    def synchronize(self):
        if self.gpu:
            self.torch.cuda.synchronize()

    def event(self):
        return self.torch.cuda.Event(enable_timing=True)

    def host_seconds(self, work):
        """How long the host takes to launch it."""
        self.synchronize()
        start = time.perf_counter()
        work()
        took = time.perf_counter() - start
        self.synchronize()
        return took

    def rest(self):
        """Ahead of batches the device waits from now on, as a card at rest does."""
        self.load, self.load_s = None, 0.0

    def burn_in(self, passes=None):
        """A layer's passes for seconds, and from now on some of them ahead of every batch: clocks as training has them."""
        passes = passes or Passes(self, LAYERS[self.plan["layers"][0]])
        turn = itertools.cycle(passes.all())
        work = lambda: next(turn)()
        self.rest()
        three = len(passes.all())
        self.load_s = max(1e-6, self.batch(work, three, self.host_seconds(work)))
        self.load = work
        until = time.monotonic() + self.plan["burn"]
        while time.monotonic() < until:
            for _ in range(three):
                work()
            self.synchronize()

    def lead(self, seconds):
        """The device has work for at least so long: the host gets ahead meanwhile."""
        if self.load is None:
            self.torch.cuda._sleep(int(CYCLES_PER_SECOND * min(0.05, seconds)))
            return
        for _ in range(math.ceil(max(seconds, LOAD_S) / self.load_s)):
            self.load()

    def batch(self, work, launches, host, aligned=False, read=None):
        """Seconds of one launch; on a GPU of the device alone. `aligned`: a launch before makes ranks begin together."""
        if not self.gpu:
            start = time.perf_counter()
            for _ in range(launches):
                work()
            return (time.perf_counter() - start) / launches
        begin, end = self.event(), self.event()
        self.lead(1.5 * host * (launches + 2))
        if aligned:
            work()
        begin.record()
        for _ in range(launches):
            work()
        end.record()
        if read is not None:
            read()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3 / launches

    def samples(self, work, host, launches, together, read):
        for number in range(self.plan["repeat"]):
            if together is not None:
                together()
            middle = number == self.plan["repeat"] // 2
            yield self.batch(work, launches, host, together is not None, read if middle else None)

    def measure_host(self, group, name, parameters, work, most=200):
        """Seconds of the host for a call, while the device has other work and does not hold it up."""
        try:
            work()
            once = max(1e-7, self.host_seconds(work))
            launches = max(1, min(most, int(self.plan["sample"] / once)))
            seconds = []
            for _ in range(self.plan["repeat"]):
                self.synchronize()
                if self.gpu:
                    self.torch.cuda._sleep(int(CYCLES_PER_SECOND * min(0.5, 2 * once * launches)))
                start = time.perf_counter()
                for _ in range(launches):
                    work()
                seconds.append((time.perf_counter() - start) / launches)
            self.synchronize()
            self.say(group=group, name=name, parameters=parameters, flops=0, bytes=0, seconds=seconds, launches=launches,
                     state=[""] * 5)
        except Exception as error:  # whatever a library refuses
            self.not_measured("/".join([group, name] + [f"{k}={v}" for k, v in parameters.items()]), error)

    def measure(self, group, name, parameters, work, flops=0, moved=0, together=None, beside=None, agree=None):
        """One point; an error is noted and not passed on.

        `together` holds ranks in step before every batch; `beside` runs on a stream of its own from before a batch until
        after it, and `agree` makes ranks take the largest of their numbers."""
        key = "/".join([group, name] + [f"{k}={v}" for k, v in parameters.items()])
        try:
            work()
            host = self.host_seconds(work)
            launches = self.plan["launches"]  # of ranks in step: as often on each
            if together is None:
                launches = max(1, min(200, int(self.plan["sample"] / max(self.batch(work, 2, host), 1e-7))))
            state = [[""] * 5]
            read = lambda: state.append(self.state())
            if beside is None:
                seconds = list(self.samples(work, host, launches, together, read))
            else:
                seconds = Beside(self, work, host, beside, agree or (lambda number: number)).samples(launches, together, read)
            if self.rank == 0:
                self.say(group=group, name=name, parameters=parameters, flops=flops, bytes=moved, seconds=seconds,
                         launches=launches, state=state[-1])
        except Exception as error:  # whatever a library refuses
            self.not_measured(key, error)


class Beside:
    """Batches of `work` that `other` covers: it runs from before the first launch until after the last, proven by events."""

    def __init__(self, session, work, host, other, agree):
        self.session, self.work, self.host, self.other, self.agree = session, work, host, other, agree
        self.stream = session.torch.cuda.Stream()
        with session.torch.cuda.stream(self.stream):
            other()
        self.host_other = session.host_seconds(other)
        self.alone = max(1e-7, session.batch(work, 2, host))
        self.other_s = max(1e-7, session.batch(other, 2, self.host_other))

    def samples(self, launches, together, read):
        session = self.session
        lasts = 1.5 * self.host * (launches + 2) + LOAD_S + session.load_s + 2 * launches * self.alone
        times = self.agree(int(lasts / self.other_s) + 2)
        for _ in range(COVERING_TRIES):
            seconds, covered = [], True
            for number in range(session.plan["repeat"]):
                if together is not None:
                    together()
                took, ended_after = self.batch(launches, times, read if number == session.plan["repeat"] // 2 else None)
                seconds.append(took)
                covered = covered and ended_after
            if self.agree(0 if covered else 1) == 0:
                return seconds
            times *= 2
        raise NotCovered("what should run beside it ended before it")

    def batch(self, launches, times, read):
        session = self.session
        started, begin, end, last = (session.event() for _ in range(4))
        session.lead(1.5 * self.host_other * (times + 2))
        started.record()
        self.stream.wait_event(started)
        with session.torch.cuda.stream(self.stream):
            for _ in range(times):
                self.other()
            last.record()
        session.lead(1.5 * self.host * (launches + 2))
        begin.record()
        for _ in range(launches):
            self.work()
        end.record()
        if read is not None:
            read()
        session.synchronize()
        return begin.elapsed_time(end) * 1e-3 / launches, end.elapsed_time(last) > 0
