"""Stages of all ranks: messages and collectives within a node and between nodes."""
import datetime
import os
import re


def joined(session):
    """torch.distributed, with all ranks; nothing where there is one."""
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        return None
    import torch.distributed as dist
    dist.init_process_group("nccl" if session.gpu else "gloo", timeout=datetime.timedelta(seconds=3600))
    return dist


def in_step(dist, group, operations):
    for each in dist.batch_isend_irecv([dist.P2POp(*operation, group=group) for operation in operations]):
        each.wait()


def operations(session, dist, group, ranks, size, step=1):
    """Operations of the first `ranks` ranks, which are `group`. Messages go `step` ranks on: to the same GPU of the next
    node where the group spans nodes. `size` is of a whole buffer, as nccl-tests counts it, and of a message."""
    torch, rank = session.torch, dist.get_rank()
    each = torch.ones((), dtype=session.dtype).element_size()
    whole = torch.ones(max(1, size // each // ranks) * ranks, dtype=session.dtype, device=session.device)
    other, part = torch.zeros_like(whole), torch.zeros_like(whole[:whole.numel() // ranks])
    to, source, peer = (rank + step) % ranks, (rank - step) % ranks, (rank + step) % (2 * step)

    def exchange():
        if rank < 2 * step:
            in_step(dist, group, [(dist.isend, whole, peer), (dist.irecv, other, peer)])

    def all_gather():
        if session.gpu:
            dist.all_gather_into_tensor(other, part, group=group)
        else:  # gloo has it for lists alone
            dist.all_gather(list(other.chunk(ranks)), part, group=group)

    return {"send_recv": lambda: in_step(dist, group, [(dist.isend, whole, to), (dist.irecv, other, source)]),
            "exchange": exchange, "all_reduce": lambda: dist.all_reduce(whole, group=group), "all_gather": all_gather,
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole, group=group),
            "all_to_all": lambda: dist.all_to_all_single(other, whole, group=group)}


def group_sizes(world, local):
    """Sizes of groups: whole nodes between nodes. All GPUs come first, then a node, since time may run out."""
    sizes = {min(2 ** n, world) for n in range(1, 12)} | {min(local, world)}
    kept = {n for n in sizes if n > 1 and (n <= local or n % local == 0)}
    first = [n for n in (world, min(local, world)) if n in kept]
    return list(dict.fromkeys(first + sorted(kept)))


def reduces_in_switch(session):
    """True if NCCL's log gives the latest communicator of this process NVLS channels."""
    log = os.environ.get("NCCL_DEBUG_FILE", "").replace("%h", os.uname().nodename).replace("%p", str(os.getpid()))
    try:
        with open(log) as file:
            channels = re.findall(r"(\d+) nvls channels", file.read())
    except OSError:
        return False
    return bool(channels) and int(channels[-1]) > 0


def collectives(session):
    from torch_stages.copies import disturbed, largest
    dist = joined(session)
    if dist is None:
        return session.not_measured("nccl", "one rank: there is nobody to send to")
    world, local = dist.get_world_size(), int(os.environ.get("LOCAL_WORLD_SIZE", dist.get_world_size()))
    if session.gpu:
        session.burn_in()
    for ranks in group_sizes(world, local):
        group = dist.new_group(list(range(ranks)))
        if dist.get_rank() >= ranks:
            continue  # the others of a larger group wait in its making
        within = ranks <= local
        where = dict(ranks=ranks) if within else dict(ranks=ranks, nodes=ranks // local)
        dist.barrier(group=group)
        switch = {"in_switch": 1} if within and session.gpu and reduces_in_switch(session) else {}
        for size in session.plan["messages"]:
            for name, work in operations(session, dist, group, ranks, size, 1 if within else local).items():
                parameters = dict(where, size=size, **(switch if name == "all_reduce" else {}))
                session.measure("nccl" if within else "network", name, parameters, work, moved=size,
                                together=lambda: dist.barrier(group=group))
        if not session.gpu:
            session.not_measured(f"interference/ranks={ranks}", "there is no GPU whose messages compute could run beside")
        elif within:
            works = operations(session, dist, group, ranks, 64 << 20)
            disturbed(session, where, {name: works[name] for name in ("send_recv", "all_reduce", "all_gather")},
                      lambda: dist.barrier(group=group), largest(session, dist, group))
