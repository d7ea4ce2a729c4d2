"""Tables: one name for a metric everywhere, numbers as numbers, and values with attributes."""
import csv
import datetime
import io
import json
import multiprocessing
import pathlib
import pickle
import tempfile
import unittest

import numpy
import pipesim
from support import QUICKSTART, SOURCE, command, one_f_one_b, small

LLAMA = SOURCE / "scenarios" / "llama3-70b-h100.yaml"
GRID = {"cost.forward": ["13.3 ms", "20 ms"], "batch.num_microbatches": [4, 8]}


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def in_pool(microbatches):
    return pipesim.read(small(), batch__num_microbatches=microbatches).simulate()


class Names(unittest.TestCase):
    def check(self, row):
        """A key that ends in a unit is a metric, unless only this table has it."""
        for key in row:
            if key.endswith(("_seconds", "_bytes", "_per_gpu")):
                self.assertIn(key, pipesim.METRICS)

    def test_of_a_run_are_those_of_its_csv(self):
        for path in (QUICKSTART, LLAMA):
            expected = rows_of(command("run", path, "--csv", "-")[1])
            frame = pipesim.simulate(path).to_pandas()
            self.assertEqual(list(frame.schedule), [row["schedule"] for row in expected])
            for name in [name for name in expected[0] if name in pipesim.METRICS]:
                if name in ("fits", "gpus"):
                    continue
                for value, text in zip(frame[name], expected):
                    self.assertEqual("" if value != value else value, float(text[name]) if text[name] else "", name)

    def test_are_metrics_in_run_sweep_search_and_plan(self):
        self.check(pipesim.simulate(LLAMA, schedule="1f1b")[0])
        self.check(next(pipesim.sweep(small(), grid=GRID)))
        self.check(pipesim.search(small(), refine=False))
        self.check({key: value for key, value in pipesim.plan(
            "llama3-8b", "dgx-h100", 8, 64, 8192, schedules=["1f1b"], contention=0, best=1)[0].items()
            if not key.startswith("difference")})


class Frames(unittest.TestCase):
    def check(self, frame):
        self.assertEqual([name for name, kind in frame.dtypes.items() if kind == object], [])
        for name in set(frame.columns) & set(pipesim.METRICS):
            if pipesim.METRICS[name]["unit"] != "fit":
                self.assertIn(str(frame[name].dtype), ("float64", "int64", "Int64", "boolean"), name)

    def test_have_numbers_where_nothing_applies_too(self):
        self.check(pipesim.simulate(small()).to_pandas())
        self.check(pipesim.search(small(), points=2, refine=False).to_pandas())
        self.check(pipesim.plan("llama3-8b", "dgx-h100", 8, 64, 8192, schedules=["1f1b"], contention=0,
                                best=2).to_pandas())

    def test_carry_the_band(self):
        comparison = pipesim.simulate(LLAMA)
        frame = comparison.to_pandas()
        for result, low, high in zip(comparison, frame.iteration_low_seconds, frame.iteration_high_seconds):
            self.assertEqual([low, high], result["band"]["iteration_seconds"])
            self.assertEqual((result.iteration_low_seconds, result.iteration_high_seconds), (low, high))

    def test_of_a_sweep_come_after_a_loop_with_quantities_in_seconds(self):
        sweep = pipesim.sweep(small(), grid=GRID)
        points = {point.point: point for point in sweep}
        frame = sweep.to_pandas()
        self.check(frame)
        self.assertTrue(numpy.allclose(frame["cost.forward"], [0.0133, 0.0133, 0.02, 0.02], rtol=1e-12))
        self.assertEqual(list(frame["batch.num_microbatches"]), [4, 8, 4, 8])
        self.assertEqual(list(frame.iteration_seconds), [points[i].iteration_seconds for i in range(4)])
        self.assertEqual(len(sweep.to_pandas()), 4)

    def test_of_a_sweep_have_the_points_that_are_refused(self):
        cost = {**small()["cost"], "forward": ["1 ms"] * 4}
        frame = pipesim.sweep(small(cost=cost), grid={"parallel.pipeline_model_parallel_size": [4, 5]}).to_pandas()
        self.assertEqual(list(frame.reason.isna()), [True, False])
        self.assertEqual(list(frame.iteration_seconds.isna()), [False, True])
        self.check(frame)


class Values(unittest.TestCase):
    def test_have_attributes_that_complete(self):
        comparison = pipesim.simulate(small())
        for value in (comparison[0], pipesim.search(small(), refine=False), next(pipesim.sweep(small(), grid=GRID))):
            self.assertIn("bubble_rate", dir(value))
            self.assertEqual(value.bubble_rate, value["bubble_rate"])
            self.assertIn("share", type(value).bubble_rate.__doc__)
            self.assertTrue(repr(value).startswith("<pipesim."))
        self.assertEqual(comparison[0].devices[3].busy_seconds, comparison[0]["devices"][3]["busy_seconds"])
        with self.assertRaisesRegex(AttributeError, "did you mean 'iteration_seconds'"):
            comparison[0].iteration_second

    def test_are_pickled_and_simulate_the_same_again(self):
        own = pipesim.simulate(small(schedule=[one_f_one_b, lambda p, m: list(one_f_one_b(p, m))]))
        for value in (pipesim.simulate(QUICKSTART), own):
            again = pickle.loads(pickle.dumps(value))
            self.assertEqual([dict(each) for each in again], [dict(each) for each in value])
            self.assertTrue(numpy.array_equal(again[0].timeline.end, value[0].timeline.end))
        found = pipesim.search(small(), refine=False)
        self.assertEqual(pickle.loads(pickle.dumps(found)), found)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            returned = pool.map(in_pool, [4, 8])
        self.assertEqual([each[0].iteration_seconds for each in returned],
                         [in_pool(m)[0].iteration_seconds for m in (4, 8)])

    def test_of_numbers_alone_refuse_what_was_not_simulated(self):
        comparison = pipesim.read(QUICKSTART).simulate(numbers_only=True)
        self.assertEqual(comparison[1].iteration_seconds, pipesim.simulate(QUICKSTART)[1].iteration_seconds)
        for asked in (lambda: comparison[0].timeline, lambda: comparison.json, lambda: comparison[0].svg):
            with self.assertRaisesRegex(pipesim.Error, "numbers_only"):
                asked()
        self.assertEqual(dict(comparison[0])["schedule"], "gpipe")

    def test_say_which_tasks_wait_for_which(self):
        timeline = pipesim.simulate(small())[0].timeline
        earlier, later = timeline.edges.T
        self.assertTrue((timeline.end[earlier] <= timeline.start[later] + 1e-12).all())
        path = timeline.critical_path
        self.assertEqual(timeline.end[path[-1]], timeline.end.max())
        pairs = set(map(tuple, timeline.edges.tolist()))
        self.assertTrue(all(pair in pairs for pair in zip(path, path[1:])))


class Scenarios(unittest.TestCase):
    def test_are_replaced_in_sections_and_stay_as_they_were(self):
        read = pipesim.read(QUICKSTART)
        other = read.replace(batch={"num_microbatches": 8}, schedule="zb-h1")
        self.assertEqual((read.microbatches, other.microbatches, other.schedules), (24, 8, ["zb-h1"]))
        expected = json.loads(command("run", QUICKSTART, "schedule=zb-h1", "batch.num_microbatches=8", "--json", "-")[1])
        self.assertEqual(other.simulate().to_dict()["results"], expected["results"])
        self.assertEqual(other.replace({"batch.num_microbatches": 24}, schedule=read.schedules).simulate().json,
                         read.simulate().json)
        with self.assertRaisesRegex(pipesim.InputError, "did you mean 'num_microbatches'"):
            read.replace(batch={"num_microbatch": 8})

    def test_take_a_section_of_another_kind_whole(self):
        passes = {"kind": "given", "forward": 0.001, "backward_input": 0.001, "backward_weight": 0.001}
        self.assertEqual(pipesim.read(QUICKSTART).replace(cost=passes, schedule="1f1b",
                                                          parallel={"pipeline_model_parallel_size": 4},
                                                          batch__num_microbatches=8)
                         .simulate()[0].iteration_seconds, pipesim.simulate(small())[0].iteration_seconds)

    def test_call_own_schedules_with_the_numbers_that_changed(self):
        read = pipesim.read(small(schedule=one_f_one_b))
        for microbatches in (4, 16):
            own = read.replace(batch__num_microbatches=microbatches)
            self.assertEqual(own.simulate()[0].iteration_seconds,
                             own.replace(schedule="1f1b").simulate()[0].iteration_seconds)

    def test_take_floats_arrays_and_durations_as_costs(self):
        milliseconds = datetime.timedelta(milliseconds=1)
        expected = pipesim.simulate(small())[0].iteration_seconds
        for forward in (0.001, numpy.float64(0.001), milliseconds, [0.001] * 4, numpy.full(4, 0.001)):
            cost = {**small()["cost"], "forward": forward}
            self.assertEqual(pipesim.simulate(small(cost=cost))[0].iteration_seconds, expected)
            self.assertEqual(pipesim.simulate(small(), {"cost.forward": forward})[0].iteration_seconds, expected)
        memory = {"kind": "given", "activation": 2.0**30, "weight_stash": 0.0}
        self.assertEqual(pipesim.simulate(small(memory=memory))[0].peak_activation_bytes, 4 * 2**30)


class Commands(unittest.TestCase):
    def test_make_the_documents_of_the_program(self):
        read = pipesim.read(QUICKSTART, schedule="zb-h1")
        asked = (QUICKSTART, "schedule=zb-h1")
        self.assertEqual(read.sensitivity().json, command("sensitivity", *asked, "--json", "-")[1])
        both = (QUICKSTART, "1f1b", "zb-h1")
        orders = read.replace(schedule="1f1b").compare(read)
        self.assertEqual(orders.text, command("compare", *both)[1])
        self.assertEqual(orders.svg, command("compare", *both, "--svg", "-")[1])
        self.assertEqual(orders.b_less_a_seconds, json.loads(orders.json)["b_less_a_seconds"])
        llama = pipesim.read(LLAMA, schedule="1f1b")
        self.assertEqual(llama.goodput("15T", runs=20).json,
                         command("goodput", LLAMA, "schedule=1f1b", "--tokens", "15T", "--runs", 20, "--json", "-")[1])
        self.assertEqual(llama.export("megatron"), command("export", LLAMA, "schedule=1f1b", "--format", "megatron")[1])

    def test_write_the_pages_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, page in (("report", pipesim.report(QUICKSTART)), ("workbench", pipesim.workbench(QUICKSTART))):
                path = pathlib.Path(folder, f"{name}.html")
                self.assertEqual(command(name, QUICKSTART, "-o", path)[0], 0)
                self.assertEqual(page, path.read_text())

    def test_improve_and_prove_orders(self):
        improved = pipesim.improve(QUICKSTART, schedule="1f1b", effort=1e5)
        self.assertLess(improved.iteration_seconds, improved.iteration_seconds_before)
        self.assertGreaterEqual(improved.time_seconds, improved.bound_seconds)
        proof = pipesim.prove(small(schedule=two_devices(), parallel={"pipeline_model_parallel_size": 2},
                                    batch={"num_microbatches": 3}), effort=1e5)
        self.assertTrue(proof.proven)
        self.assertEqual(proof.gap, 0)

    def test_fit_anchors_and_read_them_back(self):
        llama = pipesim.read(LLAMA, schedule="1f1b")
        anchor = pipesim.anchor([(llama, "13.9 s")])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "anchor.yaml")
            path.write_text(anchor.yaml)
            self.assertAlmostEqual(llama.replace(cost__anchor=path).simulate()[0].iteration_seconds, 13.9, places=6)
        with self.assertRaisesRegex(pipesim.InputError, "name it, as in schedule=1f1b"):
            pipesim.anchor([(LLAMA, 13.9)])

    def test_import_what_export_writes(self):
        llama = pipesim.read(LLAMA, schedule="1f1b")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "run.sh")
            path.write_text(llama.export("megatron"))
            imported = pipesim.import_(path, format="megatron", cluster="dgx-h100")
            self.assertEqual(imported.as_scenario().tensor_model_parallel_size, llama.tensor_model_parallel_size)
            path.write_text("--tensor-model-parallel-sise 8\n")
            with self.assertRaises(pipesim.Error):
                pipesim.import_(path, format="torchtitan")

    def test_list_what_scenarios_name(self):
        self.assertIn("zb-h1", [row.name for row in pipesim.list()])
        self.assertIn("h100-sxm", [row.name for row in pipesim.list("gpus")])
        self.assertEqual([row.name for row in pipesim.list("metrics")], list(pipesim.METRICS))
        with self.assertRaisesRegex(pipesim.InputError, "did you mean 'clusters'"):
            pipesim.list("cluster")


def two_devices():
    """An order of two devices and three microbatches."""
    return pipesim.schedule([["0F0", "0F1", "0B0", "0W0", "0F2", "0B1", "0W1", "0B2", "0W2"],
                             ["1F0", "1B0", "1W0", "1F1", "1B1", "1W1", "1F2", "1B2", "1W2"]])


if __name__ == "__main__":
    unittest.main()
