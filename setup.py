"""Builds the package pipesim with CMake (docs/how-to/python.md)."""

import os
import pathlib
import re
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import SetupError

ROOT = pathlib.Path(__file__).resolve().parent


class BuildWithCMake(build_ext):
    """Configures a build of its own, or takes the one that PIPESIM_BUILD names, and installs from there."""

    def run(self):
        if self.editable_mode or self.inplace:
            raise SetupError("an editable install has no module: set PYTHONPATH to python/ of a build instead")
        given = os.environ.get("PIPESIM_BUILD")
        build = pathlib.Path(given or self.build_temp).resolve()
        if not given:
            subprocess.run(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                            "-DPIPESIM_TESTS=OFF", "-DPIPESIM_BENCHMARKS=OFF", "-DPIPESIM_LIBRARY=OFF",
                            "-DPIPESIM_CUDA=OFF", f"-DPython_EXECUTABLE={sys.executable}",
                            *os.environ.get("CMAKE_ARGS", "").split()], check=True)
        subprocess.run(["cmake", "--build", build, "--target", "pipesim_python"], check=True)
        package = pathlib.Path(self.build_lib).resolve() / "pipesim"
        subprocess.run(["cmake", "--install", build, "--component", "python", "--prefix", package], check=True)


def version():
    return re.search(r"project\(pipesim VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


setup(version=version(), ext_modules=[Extension("pipesim._pipesim", [])], cmdclass={"build_ext": BuildWithCMake})
