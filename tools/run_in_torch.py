#!/usr/bin/env python3
"""Runs a schedule that `pipesim export` wrote in PyTorch's own pipeline runtime (PyTorch 2.5 or later).

    torchrun --nproc_per_node=RANKS tools/run_in_torch.py SCHEDULE.csv [--width N] [--rows N] [--repeat N]
    tools/run_in_torch.py SCHEDULE.csv --check      # reads the file only, without PyTorch

Every stage is a residual MLP of `width`; gradients of all stages are compared with those of the whole model in
one process. Over NCCL where every rank has a GPU, else over gloo. Rank 0 prints the time of an iteration. Exit
codes: 0 the same gradients, 1 not, or the runtime refuses the schedule, 2 bad input.
"""
import argparse
import csv
import inspect
import os
import re
import sys
import time

ACTION = re.compile(r"(\d+)(F|I|W|B)(\d+)")


def read_schedule(path):
    """The rank of every stage, and the number of microbatches."""
    rank_of, microbatches = {}, 0
    with open(path, newline="") as file:
        for rank, row in enumerate(csv.reader(file)):
            for column, cell in enumerate(row):
                actions = ACTION.findall(cell)
                if cell.strip() and not actions:
                    raise BadInput(f"{path}:{rank + 1}: cell {column + 1} '{cell}' is no action such as 2F0")
                for stage, _, microbatch in actions:
                    if rank_of.setdefault(int(stage), rank) != rank:
                        raise BadInput(f"{path}:{rank + 1}: stage {stage} stands on two ranks")
                    microbatches = max(microbatches, int(microbatch) + 1)
    if sorted(rank_of) != list(range(len(rank_of))):
        raise BadInput(f"{path}: stages are not numbered from 0 without a gap")
    return rank_of, microbatches


class BadInput(Exception):
    """Bad input."""


def make_stage(torch, index, width):
    torch.manual_seed(index)

    class Residual(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up = torch.nn.Linear(width, 4 * width)
            self.down = torch.nn.Linear(4 * width, width)

        def forward(self, x):
            return x + self.down(torch.nn.functional.gelu(self.up(x)))

    return Residual()


def runtime_of(torch, path, stages, rank_of, microbatches, loss):
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

    accepted = inspect.signature(_PipelineScheduleRuntime.__mro__[1].__init__).parameters
    more = {}
    if "stage_index_to_group_rank" in accepted:
        more["stage_index_to_group_rank"] = rank_of
    if "scale_grads" in accepted:
        more["scale_grads"] = False
    schedule = _PipelineScheduleRuntime(stages, microbatches, loss_fn=loss, **more)
    schedule.stage_index_to_group_rank = rank_of
    for stage in stages:  # later versions take it from the file
        stage.stage_index_to_group_rank = rank_of
    schedule._load_csv(path)
    return schedule


def worst_difference(torch, modules, whole):
    """Of this rank's gradients, relative to the largest of the whole model's."""
    largest = max(p.grad.abs().max().item() for p in whole.parameters())
    worst = 0.0
    for index, module in modules.items():
        for mine, other in zip(module.parameters(), whole[index].parameters()):
            worst = max(worst, (mine.grad.cpu() - other.grad).abs().max().item())
    return worst / largest


def run(options, rank_of, microbatches):
    import torch
    import torch.distributed as dist

    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    if version < (2, 5):
        raise BadInput(f"PyTorch {torch.__version__} has no such pipeline runtime: 2.5 or later is needed")
    from torch.distributed.pipelining import PipelineStage

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if ranks != max(rank_of.values()) + 1:
        raise BadInput(f"{ranks} ranks were started for the {max(rank_of.values()) + 1} rows of {options.file}")
    local = int(os.environ.get("LOCAL_RANK", rank))
    gpus = torch.cuda.device_count() > local
    device = torch.device(f"cuda:{local}" if gpus else "cpu")
    if gpus:
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)
    dist.init_process_group("nccl" if gpus else "gloo")

    def loss(output, target):
        return (output - target).square().sum()

    generator = torch.Generator().manual_seed(1234)
    x = torch.randn(microbatches * options.rows, options.width, generator=generator)
    target = torch.randn(x.shape, generator=generator)
    whole = torch.nn.Sequential(*[make_stage(torch, i, options.width) for i in range(len(rank_of))])
    loss(whole(x), target).backward()

    modules = {i: make_stage(torch, i, options.width).to(device) for i in sorted(rank_of) if rank_of[i] == rank}
    example = (x[:options.rows].to(device),)
    stages = [PipelineStage(module, i, len(rank_of), device, input_args=example) for i, module in modules.items()]
    schedule = runtime_of(torch, options.file, stages, rank_of, microbatches, loss)
    seconds = []
    for _ in range(options.repeat):
        for module in modules.values():
            module.zero_grad()
        dist.barrier()
        start = time.perf_counter()
        arguments = [x.to(device)] if 0 in modules else []
        named = {"target": target.to(device)} if len(rank_of) - 1 in modules else {}
        schedule.step(*arguments, **named)
        if gpus:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    worst = torch.tensor(worst_difference(torch, modules, whole), device=device)
    dist.all_reduce(worst, op=dist.ReduceOp.MAX)
    if rank == 0:
        print(f"{options.file}: {ranks} ranks, {len(rank_of)} stages, {microbatches} microbatches, PyTorch "
              f"{torch.__version__}: {1e3 * sorted(seconds)[len(seconds) // 2]:.1f} ms an iteration; gradients "
              f"differ by {worst.item():.1e} of the largest")
    dist.destroy_process_group()
    return 0 if worst.item() < 1e-4 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--rows", type=int, default=64, help="of a microbatch")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    try:
        rank_of, microbatches = read_schedule(options.file)
        if options.check:
            print(f"{options.file}: {max(rank_of.values()) + 1} ranks, {len(rank_of)} stages, {microbatches} microbatches")
            return 0
        if "RANK" not in os.environ:
            raise BadInput(f"start it with torchrun --nproc_per_node={max(rank_of.values()) + 1}")
        return run(options, rank_of, microbatches)
    except (BadInput, OSError) as error:
        print(f"run_in_torch: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
