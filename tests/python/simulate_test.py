"""simulate: the numbers of `pipesim run --json`, bit for bit, and a timeline that is not copied."""
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref

import numpy
import pipesim
from support import QUICKSTART, SOURCE, command, one_f_one_b, small


class Documents(unittest.TestCase):
    def test_are_those_of_the_command_byte_for_byte(self):
        for name in ("quickstart", "llama3-70b-h100"):
            path = SOURCE / "scenarios" / f"{name}.yaml"
            code, document, error = command("run", path, "--json", "-")
            self.assertEqual((code, error), (0, ""))
            with self.subTest(name):
                comparison = pipesim.simulate(str(path))
                self.assertEqual(comparison.json, document)
                self.assertEqual(comparison.to_dict(), json.loads(document))

    def test_have_the_same_keys_and_doubles_as_attributes(self):
        comparison = pipesim.simulate(QUICKSTART, schedule=["1f1b", "zb-h1"])
        written = json.loads(command("run", QUICKSTART, "schedule=[1f1b, zb-h1]", "--json", "-")[1])
        for result, expected in zip(comparison, written["results"]):
            self.assertEqual(dict(result), expected)
            self.assertEqual(result.iteration_seconds.hex(), expected["iteration_seconds"].hex())
        self.assertEqual(comparison["zb-h1"].label, "zb-h1")
        with self.assertRaises(KeyError):
            comparison["zb-h2"]
        with self.assertRaises(AttributeError):
            comparison[0].iteration_second

    def test_name_the_refused_beside_those_that_can_be_met(self):
        scenario = small(schedule=["1f1b", {"name": "zb", "memory_limit": 0.01}])
        comparison = pipesim.simulate(scenario)
        self.assertEqual([result.label for result in comparison], ["1f1b"])
        self.assertEqual(comparison.refused[0][0], "zb")
        self.assertIn("memory_limit", comparison.refused[0][1])


class Scenarios(unittest.TestCase):
    def test_of_a_dict_are_those_of_a_file(self):
        as_dict = {
            "schedule": ["gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-h2"],
            "parallel": {"pipeline_model_parallel_size": 8},
            "batch": {"num_microbatches": numpy.int64(24), "micro_batch_size": 6},
            "cost": {"kind": "given", "per": "device", "forward": "18.522 ms", "backward_input": "18.086 ms",
                     "backward_weight": "9.337 ms", "transfer": "0.601 ms"},
            "memory": {"kind": "given", "per": "device", "activation": "3.454 GiB", "weight_stash": "1.266 GiB"},
        }
        self.assertEqual(pipesim.simulate(as_dict).to_dict()["results"],
                         pipesim.simulate(QUICKSTART).to_dict()["results"])

    def test_take_changes_by_dotted_keys_and_by_keywords(self):
        expected = json.loads(command("run", QUICKSTART, "schedule=zb-h1", "batch.num_microbatches=8", "--json",
                                      "-")[1])["results"]
        for comparison in (pipesim.simulate(QUICKSTART, {"batch.num_microbatches": 8, "schedule": "zb-h1"}),
                           pipesim.simulate(QUICKSTART, batch__num_microbatches=8, schedule="zb-h1"),
                           pipesim.simulate(QUICKSTART, {"schedule": "zb-h1"}, batch__num_microbatches=8)):
            self.assertEqual(comparison.to_dict()["results"], expected)

    def test_that_are_read_once_give_the_same_again(self):
        read = pipesim.scenario(QUICKSTART)
        self.assertEqual((read.devices, read.microbatches, len(read.schedules)), (8, 24, 5))
        self.assertEqual(pipesim.simulate(read).json, pipesim.simulate(read).json)
        self.assertEqual(pipesim.simulate(read, schedule="1f1b").json, pipesim.simulate(QUICKSTART, schedule="1f1b").json)

    def test_take_lists_text_with_marks_and_paths(self):
        unequal = small(cost={"kind": "given", "forward": [f"{i} ms" for i in (1, 2, 1, 1)], "backward_input": "1 ms",
                              "backward_weight": numpy.array(["1 ms"] * 4)})
        self.assertGreater(pipesim.simulate(unequal)[0].iteration_seconds,
                           pipesim.simulate(small())[0].iteration_seconds)
        with self.assertRaisesRegex(pipesim.InputError, r"'a: \[b, \"c\" #d' is not known"):
            pipesim.simulate(small(schedule='a: [b, "c" #d'))


class Timelines(unittest.TestCase):
    def setUp(self):
        self.result = pipesim.simulate(QUICKSTART, schedule="zb-h1")[0]

    def test_have_a_number_for_every_task_and_name_what_it_is(self):
        timeline = self.result.timeline
        for name in timeline.COLUMNS:
            self.assertEqual(getattr(timeline, name).shape, (self.result.tasks,), name)
        compute = timeline.kind == pipesim.TASK_KINDS.index("compute")
        self.assertEqual(numpy.count_nonzero(compute), 3 * 8 * 24)
        for task in (0, 1, len(timeline) // 2):
            text = timeline.name(task).split(" ")[0]
            kind = pipesim.PASS_KINDS[timeline.pass_kind[task]]
            self.assertTrue(text.endswith(f"{kind}{timeline.microbatch[task]}"), text)
            if compute[task]:
                self.assertEqual(text, f"{timeline.stage[task]}{kind}{timeline.microbatch[task]}")

    def test_come_to_the_reported_numbers(self):
        timeline, devices = self.result.timeline, self.result["devices"]
        compute = timeline.kind == pipesim.TASK_KINDS.index("compute")
        first = timeline.iteration == 0
        for device in devices:
            own = compute & first & (timeline.device == device["device"])
            seconds = numpy.sum((timeline.end - timeline.start)[own])
            self.assertAlmostEqual(seconds, device["busy_seconds"], delta=1e-9)

    def test_are_not_copied_and_outlive_their_result(self):
        start = self.result.timeline.start
        again = self.result.timeline.start
        self.assertEqual(start.__array_interface__["data"], again.__array_interface__["data"])
        self.assertFalse(start.flags.owndata)
        self.assertFalse(start.flags.writeable)
        expected = start.copy()
        del self.result, again
        for _ in range(20):
            pipesim.simulate(QUICKSTART)
        self.assertTrue(numpy.array_equal(start, expected))

    def test_go_with_the_last_reference(self):
        gc.disable()
        self.addCleanup(gc.enable)
        comparison = pipesim.simulate(QUICKSTART)
        gone = weakref.ref(comparison)
        used = [(result.iteration_seconds, result.timeline.device, result.svg) for result in comparison]
        result = comparison[0]
        del comparison, used
        self.assertIsNotNone(gone())
        del result
        self.assertIsNone(gone())

    def test_stay_readable_without_numpy(self):
        code = ("import sys; sys.modules['numpy'] = None\n"
                "import pipesim\n"
                f"column = pipesim.simulate({str(QUICKSTART)!r}, schedule='1f1b')[0].timeline.end\n"
                "print(type(column).__name__, column.format, len(column) > 0)")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "memoryview d True\n")

    def test_become_frames(self):
        frame = self.result.timeline.to_pandas()
        self.assertEqual(list(frame.columns), list(self.result.timeline.COLUMNS))
        self.assertEqual(frame[frame.kind == "compute"].pass_kind.value_counts()["W"], 8 * 24)
        self.assertEqual(len(self.result.to_pandas()), 8)
        frames = pipesim.simulate(QUICKSTART).to_pandas()
        self.assertEqual(list(frames.schedule), pipesim.scenario(QUICKSTART).schedules)


class Drawings(unittest.TestCase):
    def test_are_those_of_show(self):
        result = pipesim.simulate(QUICKSTART, schedule="zb-h1")[0]
        drawn = command("show", QUICKSTART, "schedule=zb-h1", "--format", "svg")[1]
        self.assertEqual(result._repr_svg_(), drawn)

    def test_stand_below_a_table_in_which_text_is_no_markup(self):
        @pipesim.schedule(name="<b>own</b>")
        def own(p, m):
            return one_f_one_b(p, m)

        page = pipesim.simulate(small(schedule=[own, "gpipe"]))._repr_html_()
        self.assertEqual(page.count("<svg"), 2)
        self.assertIn("<td>&lt;b&gt;own&lt;/b&gt;</td>", page)
        self.assertNotIn("<b>", page)


class Threads(unittest.TestCase):
    def test_run_while_a_simulation_does(self):
        read = pipesim.scenario(QUICKSTART, batch__num_microbatches=20000, schedule="zb-h1")
        counted = []
        done = threading.Event()

        def count():
            while not done.is_set():
                counted.append(time.perf_counter())
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        begin = time.perf_counter()
        pipesim.simulate(read)
        end = time.perf_counter()
        done.set()
        thread.join()
        self.assertGreater(sum(begin < at < end for at in counted), 3)

    def test_give_the_same_from_several_at_once(self):
        read = pipesim.scenario(QUICKSTART)
        documents = []
        threads = [threading.Thread(target=lambda: documents.append(pipesim.simulate(read).json)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(documents, [pipesim.simulate(read).json] * 4)


class Types(unittest.TestCase):
    def test_are_those_of_the_bindings_and_of_the_metrics(self):
        from pipesim import _pipesim

        done = subprocess.run([sys.executable, SOURCE / "tools" / "make_python_types", _pipesim.__file__, "--check"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_hold_in_the_package(self):
        mypy = shutil.which("mypy")
        if mypy is None:
            self.skipTest("mypy is not installed")
        done = subprocess.run([mypy, "--strict", "--python-executable", sys.executable, "python/pipesim"],
                              cwd=SOURCE, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_hold_in_the_notebooks(self):
        mypy = shutil.which("mypy")
        if mypy is None:
            self.skipTest("mypy is not installed")
        with tempfile.TemporaryDirectory() as folder:
            programs = []
            for notebook in sorted((SOURCE / "docs" / "notebooks").glob("*.ipynb")):
                run = [sys.executable, SOURCE / "tests" / "python" / "run_notebook.py", "--code", notebook]
                code = subprocess.run(run, capture_output=True, text=True, check=True).stdout
                programs.append(os.path.join(folder, notebook.stem.replace("-", "_") + ".py"))
                with open(programs[-1], "w", encoding="utf-8") as out:
                    out.write(code)
            done = subprocess.run([mypy, "--strict", "--python-executable", sys.executable, *programs], cwd=SOURCE,
                                  env={**os.environ, "MYPYPATH": "python"}, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_come_with_the_package_and_everything_public_is_described(self):
        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(pipesim.__file__), "py.typed")))
        for name in pipesim.__all__:
            value = getattr(pipesim, name)
            if callable(value):
                self.assertTrue(value.__doc__, name)


if __name__ == "__main__":
    unittest.main()
