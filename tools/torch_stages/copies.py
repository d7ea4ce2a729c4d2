"""Copies to the host's memory and back, alone, with all GPUs of a node at once, and what compute loses beside them."""
from torch_stages.ranks import joined


def copy_works(session, size):
    """Copies of that many bytes, one each way."""
    torch = session.torch
    count, half = size // 2, torch.bfloat16
    there, here = torch.zeros(count, dtype=half, device=session.device), torch.zeros(count, dtype=half)
    back, home = torch.zeros(count, dtype=half, device=session.device), torch.zeros(count, dtype=half)
    if session.gpu:
        here, home = here.pin_memory(), home.pin_memory()
    return {"h2d": lambda: there.copy_(here, non_blocking=True), "d2h": lambda: home.copy_(back, non_blocking=True)}


def copy_points(session, group, together=None, agree=None):
    if session.gpu:
        session.burn_in()
    else:
        session.not_measured(f"{group} both ways at once", "there is no GPU to copy to")
    for size in session.plan["copies"]:
        works = copy_works(session, size)
        for name, work in works.items():
            session.measure(group, name, dict(size=size, during="nothing"), work, moved=size, together=together)
            if session.gpu:
                other = "d2h" if name == "h2d" else "h2d"
                session.measure(group, name, dict(size=size, during=other), work, moved=size, together=together,
                                beside=works[other], agree=agree)


def copies(session):
    copy_points(session, "copy")


def copies_together(session):
    """All GPUs of every node copy at once: what a GPU gets of its switch then."""
    dist = joined(session)
    if dist is None:
        return session.not_measured("copy_together", "one rank: nobody shares a switch with it")
    copy_points(session, "copy_together", dist.barrier, largest(session, dist, None))


def largest(session, dist, group):
    """Makes the group's ranks take the largest of their numbers."""
    def agree(number):
        said = session.torch.tensor([number], device=session.device)
        dist.all_reduce(said, op=dist.ReduceOp.MAX, group=group)
        return int(said.item())
    return agree


def disturbed(session, where, disturbances, together=None, agree=None):
    """A matmul with nothing beside it, then beside each of what disturbs it, by name."""
    side = 8192
    session.burn_in()
    a, b = session.random(side, side), session.random(side, side)
    for during, other in [("nothing", None)] + list(disturbances.items()):
        parameters = dict({"pass": "fprop", "dtype": "bf16", "tokens": side, "in": side, "out": side}, **where, during=during)
        session.measure("interference", "matmul", parameters, lambda: a @ b, flops=2.0 * side ** 3, together=together,
                        beside=other, agree=agree)
        session.synchronize()


def interference(session):
    if not session.gpu:
        return session.not_measured("interference", "there is no GPU to copy to")
    disturbed(session, {}, copy_works(session, 64 << 20))
