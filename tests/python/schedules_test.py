"""Schedules made in Python: what they come to, and that mistakes are refused as those of files are."""
import errno
import os
import pathlib
import tempfile
import threading
import unittest
import unittest.mock

import pipesim
from support import command, one_f_one_b, small


def refusal(schedule, **sections):
    try:
        pipesim.simulate(small(schedule=schedule, **sections))
    except pipesim.Error as error:
        return error
    raise AssertionError("nothing is refused")


class Functions(unittest.TestCase):
    def test_that_return_passes_are_simulated_as_the_registered_schedule(self):
        own, known = pipesim.simulate(small(schedule=[one_f_one_b, "1f1b"]))
        self.assertEqual(own.label, "one_f_one_b")
        self.assertEqual(own.passes, known.passes)
        self.assertEqual(own.iteration_seconds, known.iteration_seconds)

    def test_may_give_passes_as_tuples(self):
        def tuples(p, m):
            return [[(d, "F", i) for i in range(m)] + [(d, "BW", i) for i in range(m)] for d in range(p)]

        self.assertEqual(pipesim.simulate(small(schedule=tuples))[0].iteration_seconds,
                         pipesim.simulate(small(schedule="gpipe"))[0].iteration_seconds)

    def test_may_have_chunks_and_overlapped_blocks(self):
        known = pipesim.simulate(small(schedule="zb-v"))[0]
        again = pipesim.schedule(known.passes, name="again", chunks=2)
        self.assertEqual(pipesim.simulate(small(schedule=again))[0].iteration_seconds, known.iteration_seconds)
        cost = {**small()["cost"], "overlapped": "3 ms"}
        blocks = pipesim.simulate(small(schedule="dualpipev", cost=cost))[0]
        again = pipesim.schedule(blocks.passes, name="again", chunks=2)
        self.assertIn("&", "".join(blocks.passes[0]))
        self.assertEqual(pipesim.simulate(small(schedule=again, cost=cost))[0].iteration_seconds,
                         blocks.iteration_seconds)

    def test_that_yield_a_block_are_the_described_schedule(self):
        @pipesim.schedule(placement="linear", period=3)
        def block(p, m):
            yield {"pass": "F", "stage": "s", "at": "s"}
            yield {"pass": "BW", "stage": "s", "at": "3*p - 2 - 2*s"}

        plain = {"placement": "linear", "period": 3, "block": list(block(4, 8))}
        expected = pipesim.simulate(small(schedule="1f1b"))[0].iteration_seconds
        for result in pipesim.simulate(small(schedule=[block, plain])):
            self.assertEqual(result.iteration_seconds, expected)

    def test_fit_a_scenario_of_stages_that_differ(self):
        passes = pipesim.simulate(small(schedule="zb-v"))[0].passes
        cost = {"kind": "given", "per": "stage", "forward": [f"{i % 3 + 1} ms" for i in range(8)],
                "backward_input": "1 ms", "backward_weight": "1 ms"}
        self.assertEqual(len(pipesim.simulate(small(schedule=pipesim.schedule(passes, chunks=2), cost=cost))), 1)


def late(p, m, ahead=0):
    """1F1B with so many more microbatches in flight."""
    for device in range(p):
        first = min(p - device + ahead, m)
        order = [f"{device}F{i}" for i in range(first)]
        for i in range(m):
            order += [f"{device}BW{i}"] + ([f"{device}F{i + first}"] if i + first < m else [])
        yield order


def one_f_one_b_of(p, m, _):
    return one_f_one_b(p, m)


class Ahead:
    """An argument that no YAML has a word for."""

    def __init__(self, number):
        self.number = number

    def __iter__(self):
        return iter((self.number,))

    def __str__(self):
        return f"ahead of {self.number}"


class Everywhere(unittest.TestCase):
    """A schedule of one's own goes wherever a registered one goes."""

    def test_is_swept_with_its_arguments(self):
        sweep = pipesim.sweep(small(schedule=[late, "1f1b"]), grid={"schedule.ahead": [0, 1, 2],
                                                                    "batch.num_microbatches": [4, 8]})
        self.assertEqual((len(sweep), len(list(sweep))), (12, 12))
        frame = sweep.to_pandas()
        own = frame[frame.schedule == "late"]
        for ahead, m, seconds in zip(own["schedule.ahead"], own["batch.num_microbatches"], own.iteration_seconds):
            asked = small(schedule=pipesim.schedule(late).using(ahead=ahead), batch={"num_microbatches": m})
            self.assertEqual(pipesim.simulate(asked)[0].iteration_seconds, seconds)
        self.assertEqual(frame.iteration_seconds.dtype, "float64")
        self.assertEqual(set(pipesim.METRICS) & set(frame.columns),
                         set(pipesim.METRICS) & set(pipesim.simulate(small())[0]))

    def test_has_points_that_are_refused_with_the_reason(self):
        points = pipesim.sweep(small(schedule=late), grid={"schedule.ahead": [0, -9]}).rows()
        self.assertIsNone(points[0].reason)
        self.assertIsNone(points[1].iteration_seconds)
        self.assertIn("no microbatch here", points[1].reason)

    def test_goes_on_from_the_folder_of_its_sweep(self):
        asked = small(schedule=[late, "1f1b"])
        with tempfile.TemporaryDirectory() as folder:
            first = pipesim.sweep(asked, grid={"schedule.ahead": [0, 1]}, folder=folder)
            rows = [str(row) for row in first.rows()]
            self.assertEqual(first.progress, {"points": 4, "before": 0, "evaluated": 4, "share": 1})
            with open(os.path.join(folder, "points.jsonl"), "a", encoding="utf-8") as kept:
                kept.write('{"key": "cut o')
            again = pipesim.sweep(asked, grid={"schedule.ahead": [0, 1, 2]}, folder=folder)
            self.assertEqual([str(row) for row in again.rows()][:4], rows)
            self.assertEqual((again.progress["before"], again.progress["evaluated"]), (4, 2))

    def test_is_simulated_anew_where_it_makes_another_order(self):
        def changed(p, m, ahead=0):
            return late(p, m, ahead + 1)

        changed.__name__ = "late"
        with tempfile.TemporaryDirectory() as folder:
            for function, before in ((late, 0), (changed, 1), (changed, 2)):
                sweep = pipesim.sweep(small(schedule=function), grid={"schedule.ahead": [0, 1]}, folder=folder)
                own = [row.iteration_seconds for row in sweep.rows()]
                self.assertEqual(sweep.progress["before"], before)
                self.assertEqual(own, [row.iteration_seconds for row in
                                       pipesim.sweep(small(schedule=function), grid={"schedule.ahead": [0, 1]}).rows()])

    def test_shares_its_folder_with_no_other_sweep(self):
        with tempfile.TemporaryDirectory() as folder:
            running = pipesim.sweep(small(schedule=late), grid={"schedule.ahead": [0, 1]}, folder=folder)
            with self.assertRaisesRegex(pipesim.InputError, "another sweep writes it"):
                pipesim.sweep(small(schedule=late), grid={"schedule.ahead": [0, 1]}, folder=folder)
            running.close()

    def test_leaves_its_folder_usable_after_a_failure(self):
        def broken(p, m, ahead=0):
            if ahead == 1:
                raise ZeroDivisionError("mine")
            return late(p, m, ahead)

        def progress(_):
            raise KeyboardInterrupt

        broken.__name__ = "late"
        grid = {"schedule.ahead": [0, 1, 2]}
        for function, options, thrown in ((broken, {}, ZeroDivisionError), (late, {"progress": progress}, KeyboardInterrupt)):
            with self.subTest(thrown.__name__), tempfile.TemporaryDirectory() as folder:
                failed = pipesim.sweep(small(schedule=function), grid=grid, folder=folder, processes=1, **options)
                with self.assertRaises(thrown):
                    list(failed)
                self.assertEqual(list(failed), [])  # it has ended
                with self.assertRaisesRegex(pipesim.Error, "ended after [01] of 3 points"):
                    failed.rows()
                again = pipesim.sweep(small(schedule=late), grid=grid, folder=folder)
                self.assertEqual([row.reason for row in again.rows()], [None] * 3)
                self.assertGreaterEqual(again.progress["before"], 1)

    def test_leaves_its_folder_to_others_where_it_cannot_begin(self):
        with tempfile.TemporaryDirectory() as folder:
            with unittest.mock.patch("concurrent.futures.ThreadPoolExecutor", side_effect=RuntimeError("no thread")):
                with self.assertRaises(RuntimeError) as kept:  # whose frames hold the sweep
                    pipesim.sweep(small(schedule=late), grid={"schedule.ahead": [0]}, folder=folder)
            self.assertEqual(len(pipesim.sweep(small(schedule=late), grid={"schedule.ahead": [0]}, folder=folder).rows()), 1)
            self.assertIn("no thread", str(kept.exception))

    def test_keeps_nothing_once_it_is_closed(self):
        begun, go = threading.Event(), threading.Event()

        def waits(p, m, ahead=0):
            if threading.current_thread() is not threading.main_thread():  # which reads the scenario
                begun.set()
                go.wait(60)
            return late(p, m, ahead)

        waits.__name__ = "late"
        grid = {"schedule.ahead": [0]}
        with tempfile.TemporaryDirectory() as folder:
            running = pipesim.sweep(small(schedule=waits), grid=grid, folder=folder, processes=1)
            future = running._ahead[0]
            self.assertTrue(begun.wait(60))
            running.close()
            running.close()
            again = pipesim.sweep(small(schedule=late), grid=grid, folder=folder)
            go.set()
            self.assertRegex(str(future.exception()), "points.jsonl: its sweep has been closed")
            again.rows()
            self.assertEqual(pathlib.Path(folder, "points.jsonl").read_text(encoding="utf-8").count("\n"), 1)

    def test_finds_no_more_points_where_another_thread_closes_it(self):
        go = threading.Event()

        def waits(p, m, ahead=0):
            if threading.current_thread() is not threading.main_thread():
                go.wait(60)
            return late(p, m, ahead)

        waits.__name__ = "late"
        with tempfile.TemporaryDirectory() as folder:
            running = pipesim.sweep(small(schedule=waits), grid={"schedule.ahead": [0, 1]}, folder=folder, processes=1)
            threading.Timer(0.3, lambda: (running.close(), go.set())).start()
            self.assertEqual(list(running), [])

    def test_keeps_its_folder_where_a_process_that_was_forked_ends(self):
        with tempfile.TemporaryDirectory() as folder:
            running = pipesim.sweep(small(schedule=late), grid={"schedule.ahead": [0, 1]}, folder=folder)
            next(running)
            child = os.fork()
            if child == 0:
                running.close()
                os._exit(0)
            os.waitpid(child, 0)
            with self.assertRaisesRegex(pipesim.InputError, "another sweep writes it"):
                pipesim.sweep(small(schedule=late), grid={"schedule.ahead": [0, 1]}, folder=folder)
            running.close()

    def test_is_locked_out_by_another_sweep_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            with unittest.mock.patch("fcntl.flock", side_effect=OSError(errno.ENOLCK, "no locks")):
                with self.assertRaisesRegex(OSError, "no locks"):
                    pipesim.sweep(small(schedule=late), grid={"schedule.ahead": [0]}, folder=folder)

    def test_reads_past_lines_that_are_no_text(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "points.jsonl").write_bytes(b"\xff\xfe\n")
            self.assertEqual(len(pipesim.sweep(small(schedule=late), grid={"schedule.ahead": [0]}, folder=folder).rows()), 1)

    def test_takes_arguments_that_are_no_text(self):
        def shaped(p, m, order=late, ahead=(0,)):
            return order(p, m, *ahead)

        grid = {"schedule.order": [late, one_f_one_b_of], "schedule.ahead": [(0,), Ahead(1)], "batch.num_microbatches": [4]}
        plain = pipesim.sweep(small(schedule=shaped), grid=grid).rows()
        self.assertEqual([row.reason for row in plain], [None] * 4)
        self.assertEqual(plain[1]["schedule.ahead"], "ahead of 1")
        with tempfile.TemporaryDirectory() as folder:
            for before in (0, 4):
                sweep = pipesim.sweep(small(schedule=shaped), grid=grid, folder=folder)
                self.assertEqual([str(row) for row in sweep.rows()], [str(row) for row in plain])
                self.assertEqual(sweep.progress["before"], before)
            with self.assertRaisesRegex(pipesim.InputError, "expected a number, text, list or dict, not object"):
                pipesim.sweep(small(schedule=shaped), grid={"batch.num_microbatches": [object()]}, folder=folder)

    def test_may_have_an_argument_named_as_a_key(self):
        def named(p, m, num_microbatches=0):
            return late(p, m, num_microbatches)

        rows = pipesim.sweep(small(schedule=named), grid={"schedule.num_microbatches": [0, 1], "batch.num_microbatches": [4]}).rows()
        for ahead, row in enumerate(rows):
            asked = small(schedule=pipesim.schedule(late).using(ahead=ahead), batch={"num_microbatches": 4})
            self.assertEqual(row.iteration_seconds, pipesim.simulate(asked)[0].iteration_seconds)

    def test_is_a_candidate_of_a_search(self):
        best = pipesim.simulate(small(schedule="zb-h1"))[0]
        own = pipesim.schedule(best.passes, name="own")
        found = pipesim.search(small(schedule=own), schedules=["own", "gpipe"], refine=False, memory_limit=2)
        self.assertEqual(found.schedule, "own")
        self.assertEqual(found.makespan_from_rest_seconds, best.makespan_from_rest_seconds)
        with self.assertRaisesRegex(pipesim.InputError, "did you mean 'own'"):
            pipesim.search(small(schedule=own), schedules=["owm"])

    def test_is_never_better_than_what_a_search_answers(self):
        found = pipesim.search(small(), effort=1e5, memory_limit=2)
        own = pipesim.schedule(found.passes, name="own", chunks=found.chunks)
        self.assertLessEqual(pipesim.search(small(schedule=own), refine=False, memory_limit=2).makespan_from_rest_seconds,
                             pipesim.simulate(small(schedule=own))[0].makespan_from_rest_seconds)

    def test_is_compared_improved_exported_and_changed_by_hand(self):
        own = pipesim.read(small(schedule=late))
        self.assertEqual(own.compare(own.replace(schedule="1f1b")).a["order"], "late")
        self.assertLessEqual(own.improve(effort=1e5).iteration_seconds, own.simulate()[0].iteration_seconds)
        self.assertEqual(own.export(), own.replace(schedule="1f1b").export())
        self.assertIn("late", own.workbench())
        self.assertIn("late", own.report())


class Refusals(unittest.TestCase):
    def check(self, error, file, line, column, message):
        self.assertIsInstance(error, pipesim.InputError)
        self.assertEqual((error.file, error.line, error.column), (file, line, column))
        self.assertIn(message, str(error))

    def test_stand_at_the_device_and_the_pass(self):
        def letters(p, m):
            return [["0F0", "0X0"]]

        self.check(refusal(letters), "<letters>", 1, 7, "cell '0X0': expected F, B, W, BW or R after the stage")

        def tuples(p, m):
            return [[(0, "F", 0), (0, "X", 0)]]

        self.check(refusal(tuples), "<tuples>", 1, 7, "written as (0, 'X', 0)")

        def twice(p, m):
            return [[f"{d}F{i}" for i in range(m)] + [f"{d}BW{i % 7}" for i in range(m)] for d in range(p)]

        error = refusal(twice)
        self.assertEqual((error.file, error.line), ("<twice>", 1))
        self.assertIn("0BW0", str(error))

        def moved(p, m):
            return [["0F0", "0BW0"], ["1F0", "0BW0"]]

        self.check(refusal(moved), "<moved>", 2, 6, "stage 0 stands on rank 0 already")

    def test_are_those_of_a_csv_file(self):
        rows = [["0F0", "0F0", "0BW0", "0BW1"], ["1F0", "1F1", "1BW0", "1BW1"]]
        error = refusal(pipesim.schedule(rows, name="rows"))
        with tempfile.TemporaryDirectory() as folder:
            csv = pathlib.Path(folder, "rows.csv")
            csv.write_text("\n".join(", ".join(row).replace("BW", "B") for row in rows))
            in_file = refusal({"csv": csv})
        self.assertEqual((error.line, error.column), (in_file.line, in_file.column))
        self.assertEqual(str(error).split("\n")[0].split(": ", 1)[1], str(in_file).split("\n")[0].split(": ", 1)[1])

    def test_of_a_shape_stand_at_the_function(self):
        def short(p, m):
            return list(one_f_one_b(p, m - 1))

        code = short.__code__
        self.check(refusal(short), code.co_filename, code.co_firstlineno, 1, "has 7 microbatches: expected 8")
        passes = pipesim.simulate(small(schedule="zb-v"))[0].passes
        self.assertIn("has 2 chunks per device: expected 1", str(refusal(pipesim.schedule(passes))))

    def test_of_a_block_stand_in_its_lines(self):
        @pipesim.schedule(placement="linear", period=2)
        def crowded(p, m):
            yield {"pass": "F", "stage": "s", "at": "s"}
            yield {"pass": "BW", "stage": "s", "at": "3*p - 2 - 2*s"}

        error = refusal(crowded)
        self.assertEqual((error.file, error.line), ("<crowded>", 5))
        self.assertIn("share slot", str(error))

    def test_of_an_order_that_cannot_run_name_the_cycle(self):
        def backwards(p, m):
            return [[f"{d}BW{i}" for i in range(m)] + [f"{d}F{i}" for i in range(m)] for d in range(p)]

        error = refusal(backwards)
        self.assertIsInstance(error, pipesim.InputError)
        self.assertIn("deadlock: 3BW0 needs 3F0", str(error))

    def test_of_what_is_no_pass_say_what_one_is(self):
        for wrong in ([["0F0", 7]], ["0F0", "0BW0"]):
            self.assertIn("<schedule>: expected a", str(refusal(pipesim.schedule(wrong))))

    def test_pass_on_what_a_function_raises(self):
        def broken(p, m):
            raise ZeroDivisionError("mine")

        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            pipesim.simulate(small(schedule=broken))


class Dicts(unittest.TestCase):
    def test_are_refused_at_the_line_that_is_shown(self):
        try:
            pipesim.simulate(small(batchh=1))
        except pipesim.InputError as error:
            self.assertEqual((error.file, error.line, error.column, error.text), ("<dict>", 11, 1, "batchh: 1"))
            self.assertIn("did you mean 'batch'?", str(error))

    def test_are_refused_with_the_words_of_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "small.yaml")
            path.write_text("schedule: 1f1b\nparallel: {pipeline_model_parallel_size: 4}\n"
                            "batch: {num_microbatches: 8}\n"
                            "cost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n")
            for change in ({"cost.forward": "1 mss"}, {"batch.num_microbatch": 3}, {"schedule": "zbh7"},
                           {"cost.forward": 3}, {"batch.num_microbatches": -1}, {"parallel": None}):
                error = None
                try:
                    pipesim.simulate(path, change)
                except pipesim.InputError as refused:
                    error = refused
                said = command("run", path, *(f"{key}={'~' if value is None else value}"
                                              for key, value in change.items()))
                self.assertEqual(said[0], 2, change)
                first = said[2].splitlines()[0].split(": ", 2)[2]
                self.assertEqual(str(error).splitlines()[0].split(": ", 1)[1], first)
                self.assertEqual(error.file, "<change>")

    def test_cannot_hold_what_yaml_has_no_word_for(self):
        with self.assertRaisesRegex(pipesim.InputError, "<dict>: cost: expected a number, text, list or dict, not obj"):
            pipesim.simulate(small(cost=object()))


if __name__ == "__main__":
    unittest.main()
