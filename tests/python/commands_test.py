"""search, sweep, plan and validate: what the commands say, as they go on, and Ctrl-C."""
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import pipesim
from support import QUICKSTART, command, one_f_one_b, small

GRID = {"grid": {"batch.num_microbatches": [4, 8, 16], "cost.forward": ["1 ms", "2 ms"]}}


def interrupted(code, pause=1.0):
    """The last line of a program that is sent SIGINT once it has printed `ready`."""
    program = subprocess.Popen([sys.executable, "-c", f"import pipesim\ntry:\n  print('ready', flush=True)\n  {code}\n"
                                "  print('done')\nexcept KeyboardInterrupt:\n  print('interrupted')"],
                               stdout=subprocess.PIPE, text=True)
    program.stdout.readline()
    time.sleep(pause)
    program.send_signal(signal.SIGINT)
    return program.communicate(timeout=60)[0].strip().split("\n")[-1]


class Simulations(unittest.TestCase):
    def test_end_within_a_second_of_control_c(self):
        code = (f"pipesim.simulate({str(QUICKSTART)!r}, schedule=['1f1b', 'zb-h1'], batch__num_microbatches=1000000, "
                "numbers_only=True)")
        begin = time.perf_counter()
        self.assertEqual(interrupted(code, 0.5), "interrupted")
        self.assertLess(time.perf_counter() - begin, 6)


class Searches(unittest.TestCase):
    def test_find_what_the_command_finds(self):
        found = pipesim.search(QUICKSTART, memory_limit=0.75, refine=False)
        lines = command("search", QUICKSTART, "--memory-limit", "0.75", "--no-refinement", "--csv", "-")[1].splitlines()
        for key, value in zip(lines[0].split(","), lines[1].split(",")):
            mine = found[key]
            self.assertEqual(mine if isinstance(mine, str) else float(value), value if isinstance(mine, str) else mine)

    def test_hand_on_the_order_they_found(self):
        found = pipesim.search(small(), memory_limit=0.75, effort=1e5)
        again = pipesim.simulate(small(schedule=found.as_schedule()))[0]
        self.assertEqual(again.makespan_seconds, found.makespan_from_rest_seconds)

    def test_tell_how_far_a_frontier_is(self):
        told = []
        rows = pipesim.search(small(), points=4, refine=False, progress=lambda *now: told.append(now))
        self.assertEqual(told[-1], (4, 4))
        times = [row.makespan_from_rest_seconds for row in rows]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertEqual(len(rows.to_pandas()), len(rows))

    def test_refuse_with_words_of_the_command(self):
        with self.assertRaisesRegex(pipesim.InputError, "unknown schedule 'zbh1'; did you mean 'zb-h1'"):
            pipesim.search(small(), schedules=["zbh1"])
        with self.assertRaisesRegex(pipesim.InputError, "a limit in bytes needs a memory section"):
            pipesim.search(small(), memory_limit="40 GiB")
        with self.assertRaisesRegex(pipesim.InfeasibleError, "no schedule fits"):
            pipesim.search(small(), memory_limit=0.01)

    def test_end_on_control_c(self):
        self.assertEqual(interrupted(f"pipesim.search({str(QUICKSTART)!r}, effort=1e12)"), "interrupted")


class Sweeps(unittest.TestCase):
    def test_give_every_point_with_the_numbers_of_simulate(self):
        told = []
        sweep = pipesim.sweep(small(sweep=GRID), processes=2, progress=told.append)
        points = {point["point"]: point for point in sweep}
        self.assertEqual(sorted(points), list(range(6)))
        self.assertEqual([each["evaluated"] for each in told][-1], 6)
        self.assertEqual(list(sweep), [])
        for point in points.values():
            changes = {key: point[key] for key in sweep.keys}
            self.assertEqual(point["iteration_seconds"], pipesim.simulate(small(), changes)[0].iteration_seconds)

    def test_make_the_document_of_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "sweep.yaml")
            with open(path, "w", encoding="utf-8") as out:
                out.write(QUICKSTART.read_text() + "sweep: {grid: {batch.num_microbatches: [8, 16]}}\n")
            document = command("sweep", path, "-o", os.path.join(folder, "out"), "--json", "-")[1]
            self.assertEqual(pipesim.sweep(path, processes=1).json, document)
            self.assertEqual(len(pipesim.sweep(path, processes=1).to_pandas()), 10)

    def test_go_on_from_their_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            first = list(pipesim.sweep(small(sweep=GRID), folder=folder, processes=1))
            again = pipesim.sweep(small(sweep=GRID), folder=folder, processes=1)
            self.assertEqual(again.progress["before"], 6)
            self.assertEqual(sorted(map(str, again)), sorted(map(str, first)))

    def test_know_the_build_that_filled_their_folder(self):
        notes = subprocess.run(["readelf", "-n", pipesim._pipesim.__file__], capture_output=True, text=True, check=True).stdout
        build = re.search(r"Build ID: (\w{16})", notes).group(1)
        with tempfile.TemporaryDirectory() as folder:
            list(pipesim.sweep(small(sweep=GRID), folder=folder, processes=1))
            store = sqlite3.connect(os.path.join(folder, "results.sqlite"))
            self.assertIn(f"(build {build}", "".join(store.iterdump()))
            store.close()

    def test_name_why_a_point_is_refused(self):
        grid = {"grid": {"parallel.pipeline_model_parallel_size": [4, 5]}}
        cost = {**small()["cost"], "forward": ["1 ms"] * 4}
        points = sorted(pipesim.sweep(small(cost=cost, sweep=grid)), key=lambda point: point["point"])
        self.assertIsNone(points[0]["reason"])
        self.assertIn("one per device (5)", points[1]["reason"])
        self.assertIsNone(points[1]["iteration_seconds"])

    def test_refuse_what_has_nothing_to_sweep(self):
        with self.assertRaisesRegex(pipesim.InputError, "swept over a grid"):
            pipesim.sweep(small(schedule=one_f_one_b), folder="out")
        with self.assertRaisesRegex(pipesim.InputError, "'sweep' is missing"):
            pipesim.sweep(pipesim.read(QUICKSTART))

    def test_end_on_control_c_and_keep_what_is_done(self):
        with tempfile.TemporaryDirectory() as folder:
            grid = {"grid": {"batch.num_microbatches": list(range(1000, 3000))}}
            scenario = small(sweep=grid)
            code = f"list(pipesim.sweep({scenario!r}, folder={folder!r}, processes=1))"
            self.assertEqual(interrupted(code), "interrupted")
            again = pipesim.sweep(scenario, folder=folder, processes=1)
            self.assertGreater(again.progress["before"], 0)
            self.assertLess(again.progress["before"], 2000)


class Plans(unittest.TestCase):
    ASKED = ("llama3-8b", "dgx-h100", 8, 64, 8192)

    def test_are_those_of_the_command_byte_for_byte(self):
        told = []
        plan = pipesim.plan(*self.ASKED, {"cost.overlap_grad_reduce": True}, schedules=["1f1b", "zb-h1"], contention=0,
                            best=2, no_offload=True, progress=lambda *now: told.append(now))
        document = command("plan", "--model", "llama3-8b", "--cluster", "dgx-h100", "--gpus", 8, "--global-batch-size",
                           64, "--seq-length", 8192, "--schedules", "1f1b,zb-h1", "--contention", 0, "--best", 2,
                           "--no-offload", "--json", "-", "cost.overlap_grad_reduce=true")[1]
        self.assertEqual(plan.json, document)
        self.assertEqual(plan[0]["cluster"], "dgx-h100")
        self.assertEqual((told[-1][0], told[-1][3]), ("dgx-h100", plan[0]["iteration_seconds"]))
        self.assertIn("<td>dgx-h100</td>", plan._repr_html_())

    def test_start_from_a_scenario(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.yaml")
            with open(path, "w", encoding="utf-8") as out:
                out.write("model: llama3-8b\ncluster: dgx-h100\nschedule: 1f1b\n"
                          "parallel: {tensor_model_parallel_size: 2, pipeline_model_parallel_size: 4}\n"
                          "batch: {global_batch_size: 64, micro_batch_size: 1, seq_length: 8192}\n")
            plan = pipesim.plan(path, schedules=["1f1b"], contention=0, best=1)
            asked = pipesim.plan(*self.ASKED, schedules=["1f1b"], contention=0, best=1, baseline=path)
        self.assertEqual(plan[0]["iteration_seconds"], asked[0]["iteration_seconds"])
        baseline = json.loads(plan.json)["plans"][0]["baseline"]
        self.assertEqual(baseline["pipeline_model_parallel_size"], 4)

    def test_tell_their_layouts_apart_by_cluster(self):
        plan = pipesim.plan(*self.ASKED, precision=["bf16", "fp8"], schedules=["1f1b"], contention=0, best=1)
        self.assertEqual([each["cluster"] for each in plan], ["dgx-h100 bf16", "dgx-h100 fp8"])

    def test_hand_on_layouts_that_simulate_to_the_planned_time(self):
        plan = pipesim.plan(*self.ASKED, schedules=["1f1b"], contention=0, best=1)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "best.yaml")
            with open(path, "w", encoding="utf-8") as out:
                out.write(plan[0]["scenario"])
            self.assertEqual(pipesim.simulate(path)[0].iteration_seconds, plan[0]["iteration_seconds"])

    def test_refuse_with_the_words_of_the_command(self):
        for wrong, words in (({"tensr": 3}, "did you mean '--tensor'"), ({"tensor": [1, 1]}, "'1' is there twice"),
                             ({"schedules": "zbh9"}, "unknown schedule 'zbh9'"), ({"best": "x"}, "--best"),
                             ({"help": True}, "no help page"), ({"csv": "out.csv"}, "'--csv' is of the command alone"),
                             ({"wide": True}, "'--wide'"), ({"why": [1, 2]}, "'--why'")):
            with self.assertRaisesRegex(pipesim.InputError, words) as raised:
                pipesim.plan(*self.ASKED, **wrong)
            self.assertEqual(raised.exception.file, "command line")

    def test_refuse_where_the_option_stands_and_not_another_of_its_value(self):
        with self.assertRaisesRegex(pipesim.InputError, "'--csv' is of the command alone") as raised:
            pipesim.plan(*self.ASKED, csv="8", best="8")
        self.assertEqual(raised.exception.text[raised.exception.column - 1:], "8 --best 8")

    def test_say_what_would_fit(self):
        with self.assertRaisesRegex(pipesim.InfeasibleError, "fit"):
            pipesim.plan("llama3-70b", "dgx-h100", 1, 8, 8192, contention=0)

    def test_end_on_control_c(self):
        code = "pipesim.plan('llama3-70b', 'dgx-h100', 1024, 1024, 8192, contention=0, exhaustive=True)"
        self.assertEqual(interrupted(code), "interrupted")


class Validations(unittest.TestCase):
    def test_have_the_cells_of_the_command(self):
        self.assertIn("korthikanti", pipesim.validations())
        cells = pipesim.validate("korthikanti")
        self.assertEqual(list(cells), json.loads(command("validate", "korthikanti", "--json", "-")[1]))
        self.assertIn("published", cells.to_pandas().columns)

    def test_refuse_an_unknown_name_with_the_nearest(self):
        with self.assertRaisesRegex(pipesim.InputError, "unknown validation 'megatrn'; did you mean 'megatron'"):
            pipesim.validate("megatrn")


if __name__ == "__main__":
    unittest.main()
