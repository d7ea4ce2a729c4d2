"""Values that no caller should pass, functions that misbehave, interrupts, threads and folders that vanish: an error says so,
and nothing crashes, hangs or fills the memory."""
import datetime
import itertools
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy
import pipesim
from support import QUICKSTART, SOURCE, one_f_one_b, small

LLAMA = SOURCE / "scenarios" / "llama3-70b-h100.yaml"
MOST_MEMORY = 6 << 30
MOST_SECONDS = 20  # of one call, on a busy machine
LONGEST_MESSAGE = 4000
LARGE = 2**31


class Unwritable:
    def __repr__(self):
        raise RuntimeError("no repr")


def circle(make):
    made = make()
    made["a"] = made
    return made


def odd_values():
    holds_itself = []
    holds_itself.append(holds_itself)
    return [
        None, True, 0, -1, LARGE, 2**63, 2**64, 10**400, -10**400, 0.5, float("nan"), float("inf"), -float("inf"), 1e308, 1e-320,
        1j, "", "\0", "a\0b", "\ud800", "x" * 10**5, b"abc", bytearray(b"x"), memoryview(b"x"), [], (), {}, set(), [[]], range(3),
        range(10**9), (x for x in "ab"), object(), Unwritable(), int, len, datetime.timedelta(1), datetime.date(2020, 1, 1),
        numpy.float32(1), numpy.int64(-5), numpy.nan, numpy.array(5), numpy.array([]), numpy.zeros((2, 2)), numpy.array([1j]),
        numpy.array([object()], dtype=object), numpy.datetime64("2020"), numpy.broadcast_to(numpy.float64(1), (10**10,)),
        holds_itself, circle(dict), NotImplemented, ..., {1: 2}, {None: 1}, {"a": {"b": {}}}, {(1, 2): 3}, {"\0": 1}, slice(1),
        pathlib.Path("/"), "/dev/null", "1e999 s", "*a", "&a [*a]", "{", "? ", "a: b", "#", "~", ".nan", "0x10", "yes"]


def grid(values, **options):
    return list(pipesim.sweep(small(), grid=values, processes=1, **options))


def own(values, **options):
    scenario = small(schedule=lambda p, m: one_f_one_b(p, m))
    return list(pipesim.sweep(scenario, grid=values, **{"processes": 1, **options}))


def calls(scenario, trained):
    """By name, what takes a value."""
    block = {"pass": "F", "stage": "s", "at": "s"}
    layers = dict(best=1, contention=0, tensor=8)
    return {
        "a scenario": pipesim.read, "changes": lambda v: pipesim.read(small(), v), "a key": lambda v: pipesim.read(small(), {v: 1}),
        "a key of a dict": lambda v: pipesim.read({**small(), v: 1}), "replace": scenario.replace, "set": scenario.set,
        "schedule": lambda v: pipesim.simulate(small(schedule=v)), "schedules": lambda v: pipesim.simulate(small(schedule=["1f1b", v])),
        "seconds of a pass": lambda v: pipesim.simulate(small(), cost__forward=v),
        "microbatches": lambda v: pipesim.read(small(), batch__num_microbatches=v),
        "devices": lambda v: pipesim.read(small(), parallel__pipeline_model_parallel_size=v),
        "bytes": lambda v: pipesim.read(small(), memory={"kind": "given", "activation": v}),
        "model": lambda v: pipesim.read(LLAMA, model=v), "cluster": lambda v: pipesim.read(LLAMA, cluster=v),
        "a limit": lambda v: scenario.search(memory_limit=v, effort=10),
        "effort": lambda v: scenario.improve(effort=v) if v is not LARGE else None,  # which is allowed
        "families": lambda v: scenario.search(schedules=v, effort=10), "seed": lambda v: scenario.search(seed=v, effort=10),
        "chunks": lambda v: scenario.search(max_chunks=v, effort=10), "passes": lambda v: scenario.search(max_passes=v, effort=10),
        "points": lambda v: scenario.search(points=v, effort=10),
        "progress": lambda v: scenario.search(points=2, progress=v, effort=10),
        "offload": lambda v: scenario.search(offload=v, effort=10), "format": scenario.export,
        "factors": scenario.sensitivity, "a factor": lambda v: scenario.sensitivity([v]),
        "tokens": lambda v: trained.goodput(v, runs=2), "runs": lambda v: trained.goodput("1B", runs=v),
        "price": lambda v: trained.goodput("1B", runs=2, price_per_gpu_hour=v),
        "steps": lambda v: trained.goodput("1B", runs=2, max_steps=v), "another order": scenario.compare,
        "reported": pipesim.report, "measured": pipesim.anchor, "seconds of a step": lambda v: pipesim.anchor([(scenario, v)]),
        "a list": pipesim.list, "a validation": pipesim.validate, "imported": pipesim.import_,
        "a function's lists": lambda v: pipesim.simulate(small(schedule=lambda p, m: v)),
        "a device's passes": lambda v: pipesim.simulate(small(schedule=lambda p, m: [v] * p)),
        "a pass": lambda v: pipesim.simulate(small(schedule=lambda p, m: [[v]] * p)),
        "a stage": lambda v: pipesim.simulate(small(schedule=lambda p, m: [[(v, "F", 0)]] * p)),
        "chunks of a function": lambda v: pipesim.simulate(small(schedule=pipesim.schedule(one_f_one_b, chunks=v))),
        "a name": lambda v: pipesim.simulate(small(schedule=pipesim.schedule([["0F0"]], name=v))),
        "a block": lambda v: pipesim.simulate(small(schedule=pipesim.schedule(block=v, placement="linear", period=3))),
        "a line": lambda v: pipesim.simulate(small(schedule=pipesim.schedule(block=[{**block, "at": v}], placement="linear",
                                                                             period=3))),
        "a result": lambda v: scenario.simulate()[v], "a task": lambda v: scenario.simulate()[0].timeline.name(v),
        "a grid": grid, "its values": lambda v: grid({"batch.num_microbatches": v}), "a swept key": lambda v: grid({v: [1]}),
        "a value": lambda v: grid({"batch.num_microbatches": [v]}), "an own grid": own,
        "own values": lambda v: own({"batch.num_microbatches": v}), "an own value": lambda v: own({"batch.num_microbatches": [v]}),
        "processes": lambda v: own({"batch.num_microbatches": [4]}, processes=v),
        "a planned model": lambda v: pipesim.plan(v, "dgx-h100", 8, 8, 2048, **layers),
        "a planned cluster": lambda v: pipesim.plan("llama3-8b", v, 8, 8, 2048, **layers),
        "GPUs": lambda v: pipesim.plan("llama3-8b", "dgx-h100", v, 8, 2048, **layers),
    }


# Python itself raises these for a wrong type, index or file, and for a callback that cannot be called.
EXPECTED = (pipesim.Error, TypeError, ValueError, LookupError, OSError)


class Values(unittest.TestCase):
    def setUp(self):
        limits = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, limits[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_AS, limits)

    def attempt(self, call, value):
        """The fault in how the value is taken or refused, or nothing."""
        begin = time.monotonic()
        wrong = ""
        try:
            call(value)
        except MemoryError:
            wrong = "filled the memory"
        except EXPECTED as error:
            said = str(error)
            wrong = f"said {said[:200]}" if "internal" in said else ""
            if isinstance(error, pipesim.Error) and len(said) > LONGEST_MESSAGE:
                wrong = f"said {len(said)} characters: {said[:80]}"
        except Exception as error:  # whatever else it is
            wrong = "" if "no repr" in str(error) else f"raised {type(error).__name__}: {error}"
        took = time.monotonic() - begin
        return wrong or (f"took {took:.1f} s" if took > MOST_SECONDS else "")

    def test_of_any_kind_are_taken_or_refused(self):
        tried, wrong = 0, []
        for name, call in calls(pipesim.read(small()), pipesim.read(LLAMA, schedule="1f1b")).items():
            for value in odd_values():
                tried += 1
                found = self.attempt(call, value)
                if found:
                    wrong.append(f"{name}, {type(value).__name__} {'' if isinstance(value, Unwritable) else repr(value)[:40]}: {found}")
        print(f"{tried} calls")
        self.assertEqual(wrong, [])

    def test_out_of_a_range_are_refused_with_it(self):
        trained = pipesim.read(LLAMA, schedule="1f1b")
        with self.assertRaisesRegex(pipesim.InputError, "^runs: expected a whole number from 1 to 100000, not 0$"):
            trained.goodput("1B", runs=0)
        with self.assertRaisesRegex(pipesim.InputError, "^price_per_gpu_hour: expected a number from 0 to 1000000000, not nan$"):
            trained.goodput("1B", price_per_gpu_hour=float("nan"))
        with self.assertRaisesRegex(pipesim.InputError, "^measured: expected at least one pair"):
            pipesim.anchor([])
        with self.assertRaisesRegex(pipesim.InputError, "^<dict>: .*: nested more than 50 deep$"):
            pipesim.read(circle(small))
        with self.assertRaisesRegex(pipesim.InfeasibleError, "a sweep of 1e.12 points; at most 2000000"):
            own({"batch.num_microbatches": range(10**6), "batch.micro_batch_size": range(10**6)})


class Functions(unittest.TestCase):
    def test_that_raise_are_heard_in_a_run_and_a_sweep(self):
        for thrown in (ZeroDivisionError, StopIteration, RecursionError, KeyboardInterrupt, SystemExit, AttributeError):
            def schedule(p, m):
                if m == 16:
                    raise thrown("mine")
                return one_f_one_b(p, m)
            with self.subTest(thrown.__name__):
                with self.assertRaisesRegex(thrown, "mine"):
                    pipesim.simulate(small(schedule=schedule), batch__num_microbatches=16)
                with self.assertRaisesRegex(RuntimeError if thrown is StopIteration else thrown, "mine|StopIteration"):
                    list(pipesim.sweep(small(schedule=schedule), grid={"batch.num_microbatches": [4, 16, 8]}, processes=2))

    def test_that_never_end_are_refused(self):
        with self.assertRaisesRegex(pipesim.InputError, "^<endless>: yields over 1048576 of"):
            pipesim.simulate(small(schedule=pipesim.schedule(lambda p, m: itertools.repeat([]), name="endless")))
        with self.assertRaisesRegex(pipesim.InputError, "^<endless>: yields over 128 of"):
            pipesim.simulate(small(schedule=pipesim.schedule(lambda p, m: [itertools.repeat("0F0")], name="endless")))

    def test_that_simulate_change_or_read_anew_do_no_harm(self):
        scenario = pipesim.read(small())

        def schedule(p, m):
            scenario.simulate()
            scenario.replace(batch__num_microbatches=m + 1)
            return one_f_one_b(p, m)
        self.assertEqual(pipesim.simulate(small(schedule=schedule))[0].iteration_seconds,
                         scenario.simulate()[0].iteration_seconds)

    def test_of_progress_that_raise_end_the_work(self):
        def progress(*_):
            raise ZeroDivisionError("mine")
        for work in (lambda: pipesim.search(QUICKSTART, points=4, progress=progress),
                     lambda: pipesim.plan("llama3-8b", "dgx-h100", 64, 64, 8192, contention=0, progress=progress),
                     lambda: list(pipesim.sweep(small(), grid={"batch.num_microbatches": [4, 8]}, processes=1, progress=progress))):
            with self.assertRaisesRegex(ZeroDivisionError, "mine"):
                work()


class Threads(unittest.TestCase):
    def test_share_scenarios_results_and_a_sweep(self):
        scenario = pipesim.read(QUICKSTART, schedule=["1f1b", "zb-h1"])
        comparison, expected = scenario.simulate(), scenario.simulate().json
        sweep = pipesim.sweep(small(), grid={"batch.num_microbatches": list(range(4, 44))}, processes=2)
        points, wrong = [], []

        def work(number):
            try:
                for each in range(5):
                    scenario.replace(batch__num_microbatches=8 + number + each).simulate()
                    if comparison.json != expected or len(comparison[0].timeline.start) == 0:
                        wrong.append("another document")
                points.extend(sweep)
            except Exception as error:
                wrong.append(repr(error))
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(wrong, [])
        self.assertEqual(sorted(point.point for point in points), list(range(40)))


class Interrupts(unittest.TestCase):
    LONG = {"a search": "pipesim.search(path, points=20, effort=1e9)",
            "improve": "pipesim.improve(path, {'batch.num_microbatches': 64, 'schedule': 'zb-v'}, memory_limit=0.6, effort=1e12)",
            "a proof": "pipesim.prove(path, {'parallel.pipeline_model_parallel_size': 6, 'batch.num_microbatches': 8, "
                       "'schedule': 'v-half'}, seconds=600)",
            "a sweep": "list(pipesim.sweep(path, schedule='zb-h2', grid={'batch.num_microbatches': list(range(500, 4000))}))",
            "an own sweep": "list(pipesim.sweep({**pipesim_small, 'schedule': slow}, grid={'batch.num_microbatches': list(range(99))}))",
            "an own sweep that is waited for": "waited = pipesim.sweep({**pipesim_small, 'schedule': slow_points}, "
                                               "grid={'batch.num_microbatches': list(range(9, 99 * os.cpu_count()))}); waited.rows()",
            "a plan": "pipesim.plan('llama3-70b', 'dgx-h100', 4096, 4096, 8192)",
            "a validation": "[pipesim.validate('runs') for _ in range(99)]",
            "a function": "pipesim.simulate({**pipesim_small, 'schedule': slow})"}

    def test_end_long_work_and_leave_no_process(self):
        start = ("import os, sys, time, pipesim, support\npath = str(support.QUICKSTART)\npipesim_small = support.small()\n"
                 "def slow(p, m):\n  time.sleep(30)\n  return list(support.one_f_one_b(p, m))\n"
                 "def slow_points(p, m):\n  time.sleep(0 if m == pipesim_small['batch']['num_microbatches'] else 2)\n"
                 "  return support.one_f_one_b(p, m)\n"
                 "try:\n  print('begun', flush=True)\n  {}\nexcept KeyboardInterrupt:\n  print('interrupted', flush=True)\n")
        for name, work in self.LONG.items():
            with self.subTest(name):
                child = subprocess.Popen([sys.executable, "-c", start.format(work)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                         text=True, start_new_session=True)
                self.addCleanup(lambda child=child: child.poll() is None and os.killpg(child.pid, signal.SIGKILL))
                self.assertEqual(child.stdout.readline(), "begun\n")
                time.sleep(1)
                self.assertIsNone(child.poll(), child.stderr.read() if child.poll() is not None else "")
                os.kill(child.pid, signal.SIGINT)
                said, error = child.communicate(timeout=60)
                self.assertEqual(said, "interrupted\n", error)
                self.assertEqual(subprocess.run(["pgrep", "-g", str(child.pid)], capture_output=True, check=False).stdout, b"")


class Folders(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="pipesim-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(os.chdir, os.getcwd())

    def test_that_vanish_beneath_a_sweep_end_it_with_their_name(self):
        place = os.path.join(self.folder, "kept")
        sweep = pipesim.sweep(QUICKSTART, schedule="zb-h2", grid={"batch.num_microbatches": list(range(500, 4000))}, folder=place)
        next(sweep)
        shutil.rmtree(place)
        with self.assertRaisesRegex((pipesim.Error, OSError, RuntimeError), re.escape(place)):
            list(sweep)

    def test_that_are_no_folders_are_refused(self):
        for place in ("/dev/null", "/proc/nowhere", "x" * 300):
            with self.subTest(place[:20]), self.assertRaises((pipesim.Error, OSError)):
                list(pipesim.sweep(small(), grid={"batch.num_microbatches": [4]}, folder=place, processes=1))

    def test_of_work_that_vanish_leave_what_was_read(self):
        scenario = pipesim.read(QUICKSTART)
        expected = scenario.simulate().json
        os.chdir(self.folder)
        os.rmdir(self.folder)
        self.assertEqual(scenario.simulate().json, expected)
        with self.assertRaises((pipesim.Error, OSError)):
            pipesim.read("quickstart.yaml")
        self.assertEqual(len(list(pipesim.sweep(small(), grid={"batch.num_microbatches": [4, 8]}, processes=1))), 2)


if __name__ == "__main__":
    unittest.main()
