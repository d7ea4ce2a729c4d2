#!/usr/bin/env python3
"""Measures GPUs with PyTorch alone, as `pipesim calibrate` does with CUDA: this file and torch_stages/ beside it.

    python3 calibrate_torch.py -o DIR                                # one GPU
    torchrun --nproc_per_node=8 calibrate_torch.py -o DIR            # a node; on several nodes with --nnodes too
    pipesim-fit DIR                                                  # on any machine: DIR/measurements.csv

Every stage runs in a process of its own, which is ended when it takes too long; what it had measured stays, and the
next stage begins. DIR/measurements.csv is written anew after each. PyTorch from 1.13 on; what an old one lacks (fused
attention before 2.0, fp8 before 2.1, bf16 matmuls that add to fp32 before 2.8) is listed as not measured, or stands in
its head. Without a GPU it measures the processor over gloo in float32, which shows that it runs (--dry: in half a minute).
"""
import argparse
import ctypes
import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from torch_stages.plan import HEADER, MODES, STAGES


def run_stage(options):
    import torch
    from torch_stages.session import Session
    file = next(stage.file for stage in STAGES if stage.name == options.stage)
    getattr(importlib.import_module("torch_stages." + file), options.stage)(Session(options, torch))


def environment_of(options, stage, index):
    environment = dict(os.environ, TORCHELASTIC_USE_AGENT_STORE="False")
    environment.setdefault("USE_LIBUV", "0")  # builds without it refuse otherwise
    if "MASTER_PORT" in environment:  # a hung stage may keep its own
        environment["MASTER_PORT"] = str(int(environment["MASTER_PORT"]) + 1 + index)
    if stage == "collectives" and "NCCL_DEBUG" not in environment:  # says which communicators reduce in the switch
        log = pathlib.Path(options.output).absolute() / "parts" / "nccl.%h.%p.log"
        environment.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT", NCCL_DEBUG_FILE=str(log))
    return environment


def die_with_parent():
    """The kernel kills this process with the one that started it, whatever ends that."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def supervise(options, stage, index, limit):
    """Runs a stage in a process of its own. Says why it did not end well, or nothing."""
    line = [sys.executable, os.path.abspath(__file__), "-o", options.output, "--mode", options.mode, "--stage", stage]
    child = subprocess.Popen(line, env=environment_of(options, stage, index), start_new_session=True,
                             preexec_fn=die_with_parent, stderr=subprocess.PIPE, text=True)
    try:
        _, errors = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return f"it had not ended after {limit:.0f} s"
    except BaseException:  # Ctrl-C: nobody is left behind
        os.killpg(child.pid, signal.SIGKILL)
        raise
    last = (errors.strip().splitlines() or [""])[-1]
    return "" if child.returncode == 0 else f"it ended with code {child.returncode}: {last}"


def quantile(values, share):
    at = share * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def row_of(entry):
    us = sorted(1e6 * s for s in entry["seconds"])
    cells = [entry["group"], entry["name"], " ".join(f"{k}={v}" for k, v in entry["parameters"].items()),
             f"{entry['flops']:.10g}", f"{entry['bytes']:.10g}"]
    cells += [f"{max(1e-6, quantile(us, share)):.6g}" for share in (0.5, 0.1, 0.9, 0)]
    return ",".join(cells + [str(len(us)), str(entry["launches"])] + entry["state"])


def write_measurements(options, failures, started):
    """Writes the results of rank 0's stages so far."""
    folder = pathlib.Path(options.output)
    facts_found, rows, missing = {}, [], list(failures)
    for stage in STAGES:
        part = folder / "parts" / f"{stage.name}.0.jsonl"
        for line in part.read_text().splitlines() if part.exists() else []:
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # a line that a killed process did not finish
            if "facts" in entry:
                facts_found.update(entry["facts"])
            elif "not_measured" in entry:
                missing.append((entry["not_measured"], entry["reason"]))
            else:
                rows.append(row_of(entry))
    facts_found.update(tool="calibrate_torch.py", mode=options.mode, duration=f"{time.monotonic() - started:.0f} s")
    lines = ["# pipesim-measurements/1"] + [f"# {name}: {value}" for name, value in facts_found.items()]
    lines += [f"# not_measured: {what}: {' '.join(reason.split()) or 'unknown'}" for what, reason in missing]
    new = folder / "measurements.csv.new"
    new.write_text("\n".join(lines + [HEADER] + rows) + "\n")
    new.replace(folder / "measurements.csv")
    return len(rows), len(missing)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, help="folder of measurements.csv")
    parser.add_argument("--mode", choices=MODES, default="quick")
    parser.add_argument("--dry", action="store_const", const="tiny", dest="mode", help="--mode tiny: every line, in half a minute")
    names = [stage.name for stage in STAGES]
    parser.add_argument("--only", help="stages, with commas between: " + ", ".join(names))
    parser.add_argument("--limit-factor", type=float, default=1.0, help="on the seconds that a stage may take")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.wanted = options.only.split(",") if options.only else [stage.name for stage in STAGES if stage.usual]
    for stage in options.wanted:
        if stage not in names:
            parser.error(f"--only: there is no stage '{stage}' ({', '.join(names)})")
    return options


def main():
    options = parse()
    if options.stage:
        return run_stage(options)
    rank, started, failures, points = int(os.environ.get("RANK", 0)), time.monotonic(), [], (0, 0)
    parts = pathlib.Path(options.output) / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    before = 0.0  # what rank 0 may take for stages that it runs alone, and others wait
    for index, (stage, _, all_ranks, limit, _) in enumerate(STAGES):
        if stage not in options.wanted:
            continue
        limit *= options.limit_factor * (1 / 6 if options.mode == "tiny" else 1)
        if rank > 0 and not all_ranks:
            before += limit
            continue
        (parts / f"{stage}.{rank}.jsonl").unlink(missing_ok=True)
        reason = supervise(options, stage, index, limit + (before if all_ranks else 0))
        before = 0.0 if all_ranks else before
        if rank == 0:
            if reason:
                failures.append((f"the rest of {stage}", reason))
            points = write_measurements(options, failures, started)
            print(f"after {time.monotonic() - started:.0f} s: {stage}{': ' + reason if reason else ''}; "
                  f"{points[0]} points, {points[1]} not measured", file=sys.stderr, flush=True)
    return 0 if rank > 0 or points[0] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
