#!/usr/bin/env python3
"""Runs a schedule that `pipesim export` wrote in PyTorch's own pipeline runtime (PyTorch 2.6 or later).

    torchrun --nproc_per_node=RANKS tools/run_in_torch.py SCHEDULE.csv [--model mlp|llama] [--passes PASSES.csv]
    tools/run_in_torch.py SCHEDULE.csv --check      # reads the file only, without PyTorch

Every stage is a residual MLP of `width`, or `layers` Llama layers of torch_stages/, as calibrate_torch.py has them; a
microbatch has `rows` tokens. Gradients of all stages are compared with those of the whole model in one process, unless
--no-gradients leaves that out. Over NCCL where every rank has a GPU, else over gloo. Rank 0 prints the time of an
iteration; --passes writes when each pass began and ended, for `pipesim import --format passes`. Exit codes: 0 the same
gradients, 1 not, or the runtime refuses the schedule, 2 bad input.
"""
import argparse
import csv
import inspect
import os
import re
import sys
import time

OLDEST = (2, 6)
TOLERANCE = {"float32": 1e-4, "bfloat16": 3e-2}  # of the largest gradient
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


def make_stage(torch, index, options):
    if options.model == "llama":
        from torch_stages.llama import llama
        heads = max(1, options.width // 128)
        shape = (options.width, 7 * options.width // 2, heads, max(1, heads // 4), options.width // heads, True, 1, 1)
        return llama(torch, shape + (options.rows,), options.layers, seed=index)
    torch.manual_seed(index)

    class Residual(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up = torch.nn.Linear(options.width, 4 * options.width)
            self.down = torch.nn.Linear(4 * options.width, options.width)

        def forward(self, x):
            return x + self.down(torch.nn.functional.gelu(self.up(x)))

    return Residual()


class Recorder:
    """When the passes of this rank's stages began and ended, in milliseconds: the device's, where it is a GPU."""

    def __init__(self, torch, gpu, rank, stages):
        self.torch, self.gpu, self.rank, self.rows, self.iteration = torch, gpu, rank, [], -1
        for stage in stages:
            self.wrap(stage, "forward_one_chunk", lambda arguments: "F")
            self.wrap(stage, "backward_one_chunk", lambda arguments: "BW" if arguments.get("full_backward", True) else "B")
            self.wrap(stage, "backward_weight_one_chunk", lambda arguments: "W")

    def now(self):
        if not self.gpu:
            return 1e3 * time.perf_counter()
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wrap(self, stage, name, kind_of):
        real = getattr(stage, name)

        def recorded(chunk, *arguments, **named):
            begin = self.now()
            result = real(chunk, *arguments, **named)
            self.rows.append([self.iteration, stage.stage_index, chunk, kind_of(named), begin, self.now()])
            return result

        setattr(stage, name, recorded)

    def begin(self):
        """An iteration; the device is idle."""
        self.iteration += 1
        self.base, self.base_ms, self.first = self.now(), 1e3 * time.perf_counter(), len(self.rows)

    def end(self):
        """The device has ended it."""
        if self.gpu:
            for row in self.rows[self.first:]:
                row[4:] = [self.base_ms + self.base.elapsed_time(event) for event in row[4:]]

    def write(self, dist, path):
        all_rows = [None] * dist.get_world_size()
        dist.all_gather_object(all_rows, self.rows)
        if self.rank != 0:
            return
        with open(path, "w", newline="") as file:
            file.write("rank,iteration,stage,microbatch,kind,start_ms,end_ms\n")
            for rank, rows in enumerate(all_rows):
                for iteration, stage, microbatch, kind, start, end in rows:
                    file.write(f"{rank},{iteration},{stage},{microbatch},{kind},{start:.6f},{end:.6f}\n")


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
    """Largest error of this rank's gradients, relative to the largest of the whole model's."""
    largest = max(p.grad.abs().max().item() for p in whole.parameters())
    worst = 0.0
    for index, module in modules.items():
        for mine, other in zip(module.parameters(), whole[index].parameters()):
            worst = max(worst, (mine.grad.float().cpu() - other.grad).abs().max().item())
    return worst / largest


def checked_version(torch):
    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    if version < OLDEST:
        raise BadInput(f"PyTorch {torch.__version__} has no such pipeline runtime: {OLDEST[0]}.{OLDEST[1]} or later is needed")


def joined(torch, options, ranks_of_file):
    """torch.distributed and this rank's device."""
    import torch.distributed as dist
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if ranks != ranks_of_file:
        raise BadInput(f"{ranks} ranks were started for the {ranks_of_file} rows of {options.file}")
    local = int(os.environ.get("LOCAL_RANK", rank))
    gpu = torch.cuda.device_count() > local
    if gpu:
        torch.cuda.set_device(local)
    else:
        torch.set_num_threads(1)
    os.environ.setdefault("USE_LIBUV", "0")  # builds without it refuse otherwise
    dist.init_process_group("nccl" if gpu else "gloo")
    return dist, torch.device(f"cuda:{local}" if gpu else "cpu")


def data_of(torch, options, microbatches):
    """Inputs and targets of all microbatches: those of an MLP are rows, those of a Llama sequences."""
    one = (options.rows, options.width) if options.model == "mlp" else (1, options.rows, options.width)
    generator = torch.Generator().manual_seed(1234)
    whole = (microbatches * one[0],) + one[1:]
    return tuple(torch.randn(whole, generator=generator) for _ in range(2))


def whole_model(torch, options, stages, x, target, microbatches, loss):
    """In one process, with its gradients."""
    whole = torch.nn.Sequential(*[make_stage(torch, i, options) for i in range(stages)])
    for inputs, wanted in zip(x.chunk(microbatches), target.chunk(microbatches)):
        loss(whole(inputs), wanted).backward()
    return whole


def run(options, rank_of, microbatches):
    import torch
    checked_version(torch)
    from torch.distributed.pipelining import PipelineStage
    dist, device = joined(torch, options, max(rank_of.values()) + 1)
    rank, gpu, dtype = dist.get_rank(), device.type == "cuda", getattr(torch, options.dtype)

    def loss(output, target):
        return (output.float() - target.float()).square().sum()

    x, target = data_of(torch, options, microbatches)
    modules = {i: make_stage(torch, i, options).to(device, dtype) for i in sorted(rank_of) if rank_of[i] == rank}
    example = (x.chunk(microbatches)[0].to(device, dtype),)
    stages = [PipelineStage(module, i, len(rank_of), device, input_args=example) for i, module in modules.items()]
    schedule = runtime_of(torch, options.file, stages, rank_of, microbatches, loss)
    recorder, seconds = Recorder(torch, gpu, rank, stages), []
    x, target = x.to(device, dtype), target.to(device, dtype)
    for _ in range(options.repeat):
        for module in modules.values():
            module.zero_grad()
        dist.barrier()
        recorder.begin()
        start = time.perf_counter()
        schedule.step(*([x] if 0 in modules else []), **({"target": target} if len(rank_of) - 1 in modules else {}))
        if gpu:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
        recorder.end()
    if options.passes:
        recorder.write(dist, options.passes)
    text, same = "", True
    if options.gradients:
        whole = whole_model(torch, options, len(rank_of), *data_of(torch, options, microbatches), microbatches, loss)
        worst = torch.tensor(worst_difference(torch, modules, whole), device=device)
        dist.all_reduce(worst, op=dist.ReduceOp.MAX)
        text, same = f"; gradients differ by {worst.item():.1e} of the largest", worst.item() < TOLERANCE[options.dtype]
    if rank == 0:
        print(f"{options.file}: {dist.get_world_size()} ranks, {len(rank_of)} stages, {microbatches} microbatches, PyTorch "
              f"{torch.__version__}: {1e3 * sorted(seconds)[len(seconds) // 2]:.1f} ms an iteration{text}")
    dist.destroy_process_group()
    return 0 if same else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--model", choices=("mlp", "llama"), default="mlp")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=1, help="of a stage, with --model llama")
    parser.add_argument("--dtype", choices=TOLERANCE, default="float32")
    parser.add_argument("--passes", help="CSV of when each pass began and ended")
    parser.add_argument("--no-gradients", dest="gradients", action="store_false", help="compare none; the whole model is not made")
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
