#!/usr/bin/env python3
"""Overhead of a call of pipesim.simulate beyond the simulation, for a scenario that has been read.

    PYTHONPATH=build/release/python bench/python_overhead.py [SCENARIO]

Every call is timed twice, here and inside the module where the library's own call begins and ends
(Comparison.seconds), and the difference is taken call by call; replace is timed beside them. Prints percentiles in
microseconds.
"""
import pathlib
import statistics
import sys
import time

import pipesim

CALLS = 2000


def main() -> int:
    default = pathlib.Path(__file__).resolve().parent.parent / "scenarios" / "quickstart.yaml"
    scenario = pipesim.read(sys.argv[1] if len(sys.argv) > 1 else default)
    inside, beyond, changing = [], [], []
    for _ in range(CALLS):
        begin = time.perf_counter()
        comparison = pipesim.simulate(scenario)
        seconds = time.perf_counter() - begin
        beyond.append(1e6 * (seconds - comparison.seconds))
        inside.append(1e6 * comparison.seconds)
        del comparison  # to free a result takes as long from C++
        begin = time.perf_counter()
        scenario.replace(perturb__seed=2)
        changing.append(1e6 * (time.perf_counter() - begin))
    percentiles = statistics.quantiles(beyond, n=100)
    print(f"{CALLS} calls of {', '.join(scenario.schedules)}")
    print(f"simulation: median {statistics.median(inside):.1f} us")
    print(f"beyond it:  median {percentiles[49]:.1f} us, 90% below {percentiles[89]:.1f} us, 99% below {percentiles[98]:.1f} us")
    print(f"replace:    median {statistics.median(changing):.1f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
