"""Shared code of the package's tests."""
import copy
import os
import pathlib
import subprocess

SOURCE = pathlib.Path(os.environ["PIPESIM_SOURCE_DIR"])
QUICKSTART = SOURCE / "scenarios" / "quickstart.yaml"

SMALL = {
    "schedule": "1f1b",
    "parallel": {"pipeline_model_parallel_size": 4},
    "batch": {"num_microbatches": 8},
    "cost": {"kind": "given", "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms"},
}


def small(**sections):
    return {**copy.deepcopy(SMALL), **sections}


def command(*arguments):
    """Exit code, standard output and standard error of the command."""
    done = subprocess.run([os.environ["PIPESIM_EXECUTABLE"], *map(str, arguments)], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def one_f_one_b(p, m):
    """1F1B, pass by pass."""
    for device in range(p):
        ahead = min(p - 1 - device, m)
        order = [f"{device}F{i}" for i in range(ahead)]
        for i in range(m):
            if i + ahead < m:
                order.append(f"{device}F{i + ahead}")
            order.append(f"{device}BW{i}")
        yield order
