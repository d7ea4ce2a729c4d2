"""Packages: a wheel with program, module and data; a source distribution with all that it builds from."""
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

from support import SOURCE, command

LLAMA = SOURCE / "scenarios" / "llama3-70b-h100.yaml"
TREE = ("setup.py", "pyproject.toml", "MANIFEST.in", "CMakeLists.txt", "README.md", "python")


def run(*arguments, **options):
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False, **options)


def copied(folder):
    """Copies the files that describe the package to a folder that may be written."""
    tree = pathlib.Path(folder, "tree")
    tree.mkdir()
    for name in TREE:
        subprocess.run(["cp", "-r", SOURCE / name, tree], check=True)
    return tree


class Packages(unittest.TestCase):
    def setUp(self):
        for needed in ("pip", "setuptools", "wheel"):
            if run("-c", f"import {needed}").returncode:
                self.skipTest(f"python3-{needed} is not installed")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def succeed(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_install_as_a_wheel_without_a_network(self):
        self.succeed("-m", "pip", "wheel", "--no-build-isolation", "--no-index", "--no-deps", "-w", self.folder,
                     copied(self.folder))
        wheel = next(pathlib.Path(self.folder).glob("pipesim-*.whl"))
        names = zipfile.ZipFile(wheel).namelist()
        for part in ("pipesim/bin/pipesim", "pipesim/py.typed", "pipesim/share/pipesim/catalog/gpus.yaml",
                     "pipesim/share/pipesim/report/page.html", "pipesim/lib/pipesim/simgrid-engine.so"):
            self.assertIn(part, names)
        place = pathlib.Path(self.folder, "site")
        self.succeed("-m", "pip", "install", "--no-index", "--no-deps", "--target", place, wheel)
        alone = {key: value for key, value in os.environ.items() if not key.startswith("PIPESIM")}
        alone["PYTHONPATH"] = str(place)
        expected = command("run", LLAMA, "--json", "-")[1]
        said = self.succeed("-c", f"import pipesim; print(pipesim.__file__); print(pipesim.simulate({str(LLAMA)!r}).json, end='')",
                            cwd=self.folder, env=alone)
        where, document = said.split("\n", 1)
        self.assertTrue(where.startswith(str(place)), where)
        self.assertEqual(document, expected)
        program = place / "bin" / "pipesim"
        ran = subprocess.run([program, "run", LLAMA, "--json", "-"], capture_output=True, text=True, env=alone, check=False)
        self.assertEqual(ran.stdout, expected)
        self.assertGreater(len(self.succeed("-c", f"import pipesim; print(pipesim.report({str(LLAMA)!r}))", env=alone)), 1e5)

    def test_hold_every_source_in_a_distribution(self):
        self.succeed("setup.py", "--quiet", "egg_info", "--egg-base", self.folder, "sdist", "-d", self.folder, cwd=SOURCE)
        archive = tarfile.open(next(pathlib.Path(self.folder).glob("pipesim-*.tar.gz")))
        self.addCleanup(archive.close)
        held = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
        tracked = subprocess.run(["git", "ls-files", "app", "cmake", "include", "models", "plots", "python", "scenarios",
                                  "schedules", "sim", "validate"], cwd=SOURCE, capture_output=True, text=True, check=False)
        self.assertEqual([name for name in tracked.stdout.split() if name not in held], [])
        archive.extractall(self.folder)
        tree = next(path for path in pathlib.Path(self.folder).glob("pipesim-*") if path.is_dir())
        configured = subprocess.run(["cmake", "-S", tree, "-B", tree / "build", "-G", "Ninja", "-DPIPESIM_TESTS=OFF",
                                     "-DPIPESIM_BENCHMARKS=OFF", "-DPIPESIM_CUDA=OFF"], capture_output=True, text=True,
                                    check=False)
        self.assertEqual(configured.returncode, 0, configured.stderr)

    def test_say_in_a_sentence_what_is_missing(self):
        told = {**os.environ, "CMAKE_ARGS": "-DCMAKE_DISABLE_FIND_PACKAGE_pybind11=ON"}
        del told["PIPESIM_BUILD"]
        done = run("setup.py", "--quiet", "build", "--build-base", self.folder, cwd=SOURCE, env=told)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.splitlines()[-1].startswith("error: the package needs pybind11"), done.stderr)
        self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
