"""With this folder on PYTHONPATH gloo is as strict as NCCL: the first messages on a group wait for all of its ranks.

NCCL makes a communicator at the first call on a group, in which every rank of the group has to take part. Gloo has no
such moment, so that a call which only some ranks make goes through on a processor and hangs on GPUs.
"""
import sys

if "--stage" in getattr(sys, "orig_argv", []):
    import torch.distributed as dist

    loose, joined = dist.batch_isend_irecv, []

    def strict(messages):
        group = messages[0].group
        if not any(group is other for other in joined):
            joined.append(group)
            dist.barrier(group=group)
        return loose(messages)

    dist.batch_isend_irecv = strict
