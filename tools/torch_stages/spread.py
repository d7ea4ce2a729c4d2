"""A layer's passes on all GPUs at once, each timed by itself: how far GPUs and runs of one pass lie apart."""
import time

from torch_stages.passes import Passes
from torch_stages.plan import LAYERS, parameters_of
from torch_stages.ranks import joined


def each_run(session, works, runs):
    """Seconds of every run of each of the works, which follow each other without a pause."""
    marks = []

    def mark():
        marks.append(session.event() if session.gpu else time.perf_counter())
        if session.gpu:
            marks[-1].record()

    mark()
    for _ in range(runs):
        for work in works:
            work()
            mark()
    session.synchronize()
    took = [a.elapsed_time(b) * 1e-3 if session.gpu else b - a for a, b in zip(marks, marks[1:])]
    return [took[number::len(works)] for number in range(len(works))]


def spread(session):
    dist = joined(session)
    if dist is None:
        return session.not_measured("spread", "one rank: there is no other GPU at the same time")
    if not (session.gpu or session.dry):
        return session.not_measured("spread", "there is no GPU: ranks share the cores of a machine")
    name = session.plan["layers"][0]
    passes = Passes(session, LAYERS[name])
    session.burn_in(passes)
    dist.barrier()
    own = each_run(session, passes.all(), session.plan["repeat"] * session.plan["launches"])
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, own)
    if session.rank > 0:
        return
    for number, label in enumerate("FBW"):
        seconds = [second for rank in everyone for second in rank[number]]
        session.say(group="spread", name=label, parameters=dict(parameters_of(name, LAYERS[name]), ranks=len(everyone)),
                    flops=0, bytes=0, seconds=seconds, launches=1, state=session.state())
