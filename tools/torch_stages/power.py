"""A layer's passes with pauses between them: what a card that its power limits gains while it waits."""
import time

from torch_stages.passes import Passes
from torch_stages.plan import LAYERS
from torch_stages.session import CYCLES_PER_SECOND

IDLE, PAUSES_MS = (0.25, 0.5, 0.1, 0.75), (10, 100, 1)  # those that tell most first
LONGEST_PERIOD_S = 2.5
SETTLING, MEASURING = 1.5, 2.5  # seconds
RESTS_MS = (1000, 100, 10)


class Bursts:
    def __init__(self, session, passes):
        self.session, self.works = session, passes.all()
        self.work()
        self.once = max(1e-6, session.batch(self.work, 3, session.host_seconds(self.work)))

    def work(self):
        for each in self.works:
            each()

    def pause(self, seconds, kind):
        """`spin`: a kernel stands on the device, as a pass that waits for a message does; `rest`: nothing runs."""
        if kind == "rest" or not self.session.gpu:
            self.session.synchronize()
            time.sleep(seconds)
            return
        while seconds > 0:
            self.session.torch.cuda._sleep(int(CYCLES_PER_SECOND * min(0.5, seconds)))
            seconds -= 0.5

    def seconds(self, times, pause, kind, until):
        """Seconds of F, B and W together, burst by burst, until that time; the host stays at most a burst ahead."""
        found, ahead = [], None
        while time.monotonic() < until:
            if pause > 0:
                self.pause(pause, kind)
            if not self.session.gpu:
                start = time.perf_counter()
                for _ in range(times):
                    self.work()
                found.append((time.perf_counter() - start) / times)
                continue
            begin, end = self.session.event(), self.session.event()
            begin.record()
            for _ in range(times):
                self.work()
            end.record()
            if ahead is not None:
                found.append(self.between(*ahead) / times)
            ahead = (begin, end)
        return found + ([self.between(*ahead) / times] if ahead else [])

    @staticmethod
    def between(begin, end):
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3


def points(once):
    """Share of the time that waits, runs of F, B and W in a row, seconds of a pause, its kind."""
    yield 0, 1, 0.0, "none"
    seen = set()
    for pause in PAUSES_MS:
        for idle in IDLE:
            for kind in ("spin", "rest"):
                times = max(1, round(pause * 1e-3 * (1 - idle) / idle / once))
                waits = times * once * idle / (1 - idle)
                if (idle, times, kind) in seen or waits + times * once > LONGEST_PERIOD_S:
                    continue
                seen.add((idle, times, kind))
                yield idle, times, waits, kind


def power(session):
    name = session.plan["layers"][0]
    bursts = Bursts(session, Passes(session, LAYERS[name]))
    quick = not session.gpu

    def say(label, parameters, seconds, launches):
        session.say(group="pauses", name=label, parameters=dict(layer=name, **parameters), flops=0, bytes=0, seconds=seconds,
                    launches=launches, state=session.state())

    for idle, times, waits, kind in list(points(bursts.once))[:3 if quick else None]:
        start = time.monotonic()
        bursts.seconds(times, waits, kind, start + (0 if quick else SETTLING))
        found = bursts.seconds(times, waits, kind, time.monotonic() + (0.05 if quick else MEASURING))
        say("layer", dict(idle=idle, pause_ms=f"{1e3 * waits:.3g}", kind=kind), found, times)
    for rest in RESTS_MS[-1:] if quick else RESTS_MS:  # how fast clocks fall: each run after a rest, in order
        bursts.seconds(1, 0, "none", time.monotonic() + (0.05 if quick else SETTLING))
        bursts.pause(rest * 1e-3, "rest")
        found = bursts.seconds(1, 0, "none", time.monotonic() + (0.05 if quick else 1.0))
        for number, seconds in enumerate(found):
            say("after_rest", dict(rest_ms=rest, run=number), [seconds], 1)
