"""Ranks of MPI that die, stand still, read other files or lose their folder: the job ends, says why, and leaves no process."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from support import QUICKSTART

PIPESIM = pathlib.Path(os.environ["PIPESIM_EXECUTABLE"])
MPIRUN = ["mpirun", "--oversubscribe", "-n", "2"]
MOST_SECONDS = 120  # of a job, on a busy machine
EXECUTE = (f"{PIPESIM} execute {QUICKSTART} schedule=1f1b parallel.pipeline_model_parallel_size=2 batch.num_microbatches=8 "
           "--pass-ms 300")
SWEEP = f"{PIPESIM} sweep s.yaml"
SCENARIO = """
schedule: zb-h2
parallel: {pipeline_model_parallel_size: 8}
batch: {num_microbatches: 8}
cost: {kind: given, forward: 10 ms, backward_input: 10 ms, backward_weight: 10 ms}
sweep: {grid: {batch.num_microbatches: {from: 2000, to: 8000, step: 10}}}
"""


def on_rank(rank, instead, line):
    """The others' line, which one rank runs something else before."""
    return ["sh", "-c", f"[ $OMPI_COMM_WORLD_RANK = {rank} ] && {{ {instead}; }}; exec {line}"]


def begun(folder, seconds=0.5):
    """Shell that waits until a sweep has been at work in the folder for so long."""
    return f"until [ -e {folder}/results.sqlite ]; do sleep 0.1; done; sleep {seconds}"


def after(wait, rank, what, line):
    """The line on every rank; then on one of them something happens to the process $k."""
    return ["sh", "-c", f"{line} & k=$!; [ $OMPI_COMM_WORLD_RANK = {rank} ] && {{ {wait}; {what}; }}; wait $k"]


@unittest.skipIf(shutil.which("mpirun") is None or not (PIPESIM.parent / "../lib/pipesim/mpi.so").exists(),
                 "built without MPI, or no mpirun (libopenmpi-dev, openmpi-bin)")
class Ranks(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pipesim-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "s.yaml").write_text(SCENARIO)

    def job(self, arguments, interrupt_after=None):
        """Exit code and output of a job, none of whose processes is left."""
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", MARK=str(self.folder),
                           ASAN_OPTIONS="detect_leaks=0")
        child = subprocess.Popen(arguments, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, start_new_session=True)
        if interrupt_after is not None:
            time.sleep(interrupt_after)
            os.kill(child.pid, signal.SIGTERM)
        try:
            said = child.communicate(timeout=MOST_SECONDS)[0]
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            self.fail(f"not done after {MOST_SECONDS} s: {arguments[-1]}\n{child.communicate()[0]}")
        self.assertEqual(self.left(), [])
        return child.returncode, said

    def left(self):
        """Processes of the job that are at work three seconds later."""
        for _ in range(30):
            found = []
            for each in pathlib.Path("/proc").iterdir():
                try:
                    if each.name.isdigit() and f"MARK={self.folder}".encode() in (each / "environ").read_bytes():
                        found.append((each / "cmdline").read_text().replace("\0", " "))
                except OSError:
                    continue
            if not found:
                break
            time.sleep(0.1)
        return found

    def refused(self, why, arguments, **options):
        code, said = self.job(arguments, **options)
        self.assertNotEqual(code, 0, said)
        self.assertIn(why, said)
        for wrong in ("internal error", "_M_range_check", "Segmentation"):
            self.assertNotIn(wrong, said)

    def test_of_an_execution_that_die_end_it(self):
        for rank, how in ((0, "KILL"), (1, "KILL"), (1, "TERM"), (1, "HUP")):
            with self.subTest(rank=rank, how=how):
                self.refused("", MPIRUN + after("sleep 2", rank, f"kill -{how} $k", EXECUTE))

    def test_that_stand_still_are_waited_for_until_the_deadline(self):
        self.refused("not done in time: it stands before", MPIRUN + after("sleep 4", 1, "kill -STOP $k; sleep 10; kill -KILL $k",
                                                                          EXECUTE.replace("300", "900") + " --deadline 8"))

    def test_that_read_other_things_are_named(self):
        why = "rank 1 has read something else than rank 0"
        for other in (EXECUTE + " batch.num_microbatches=9", EXECUTE + " --messages torch", EXECUTE + " schedule=gpipe",
                      f"{PIPESIM} execute nowhere.yaml", EXECUTE.replace("--pass-ms 300", "--pass-ms 3")):
            with self.subTest(other[-40:]):
                self.refused(why, MPIRUN + on_rank(1, f"exec {other}", EXECUTE))
        self.refused("rank 1 has read other files than rank 0", MPIRUN + on_rank(
            1, f"sed s/10.ms/40.ms/ s.yaml > t.yaml; exec {PIPESIM} sweep t.yaml -o out", SWEEP + " -o out"))

    def test_that_all_read_a_mistake_say_it_once(self):
        code, said = self.job(MPIRUN + ["sh", "-c", EXECUTE + " schedule=1f1c"])
        self.assertEqual(said.count("did you mean '1f1b'"), 1, said)
        self.assertEqual(code, 2)

    def test_of_another_number_than_devices_are_refused(self):
        self.refused("2 ranks were started for 4 devices", MPIRUN + (EXECUTE + " parallel.pipeline_model_parallel_size=4").split())

    def test_that_no_launcher_joins_are_refused(self):
        for names in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"),
                      ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")):
            with self.subTest(names[0]):
                self.refused("2 ranks were started, but MPI joins 1 of them",
                             ["env", f"{names[0]}=0", f"{names[1]}=2"] + EXECUTE.split())

    def test_that_cannot_write_say_so(self):
        quick = EXECUTE.replace("--pass-ms 300", "--pass-ms 5")
        self.refused("No space left on device", MPIRUN + (quick + " --json /dev/full").split())
        self.refused("cannot write 'nowhere/x.json'", MPIRUN + (quick + " --json nowhere/x.json").split())
        (self.folder / "gone").mkdir()
        self.refused("cannot write 'gone/x.json'", MPIRUN + after("sleep 2", 0, "rmdir gone", EXECUTE + " --json gone/x.json"))

    def test_that_are_ended_from_without_leave_none(self):
        for line in (EXECUTE, SWEEP + " -o out"):
            with self.subTest(line[-20:]):
                self.assertNotEqual(self.job(MPIRUN + line.split(), interrupt_after=2)[0], 0)

    def test_of_a_sweep_that_die_lose_nothing_stored(self):
        self.assertEqual(self.job((SWEEP + " -o alone").split())[0], 0)
        expected = (self.folder / "alone/results.csv").read_bytes()
        for rank in (0, 1):
            with self.subTest(rank=rank):
                self.refused("", MPIRUN + after(begun(f"out{rank}"), rank, "kill -KILL $k", f"{SWEEP} -o out{rank}"))
                self.assertEqual(self.job(MPIRUN + f"{SWEEP} -o out{rank}".split())[0], 0)
                self.assertEqual((self.folder / f"out{rank}/results.csv").read_bytes(), expected)

    def test_whose_workers_die_lose_nothing(self):
        sweep = SWEEP.replace("s.yaml", "many.yaml")
        (self.folder / "many.yaml").write_text(SCENARIO.replace("from: 2000, to: 8000, step: 10", "from: 8, to: 2000, step: 1"))
        self.assertEqual(self.job(f"{sweep} -o alone".split())[0], 0)
        # A worker is likely to die while more points are on their way to it.
        often = "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.0$i; pkill -KILL -P $k; done"
        said = self.job(MPIRUN + after(begun("out", 0), 1, often, f"{sweep} -o out"))[1]
        self.assertNotIn("internal error", said)
        code, said = self.job(MPIRUN + f"{sweep} -o out".split())  # a point may have died twice
        self.assertEqual(code, 0, said)
        self.assertEqual(*[(self.folder / name / "results.csv").read_bytes() for name in ("alone", "out")])

    def test_of_a_sweep_whose_folder_vanishes_end_it(self):
        self.refused("out/results.sqlite'", MPIRUN + after(begun("out"), 0, "rm -r out", SWEEP + " -o out"))
        self.refused("out/results.sqlite'", ["sh", "-c", f"{SWEEP} -o out & k=$!; {begun('out')}; rm -r out; wait $k"])


if __name__ == "__main__":
    unittest.main()
