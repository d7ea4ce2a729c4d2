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
OPTIONS = ["-DCMAKE_BUILD_TYPE=Release", "-DPIPESIM_TESTS=OFF", "-DPIPESIM_BENCHMARKS=OFF", "-DPIPESIM_LIBRARY=OFF",
           "-DPIPESIM_CUDA=OFF"]


def pybind11():
    """Where pip's pybind11 has its CMake files; nothing where Debian's is to be found."""
    try:
        import pybind11 as installed
    except ImportError:
        return []
    return [f"-Dpybind11_DIR={installed.get_cmake_dir()}"]


def run(*command):
    """Raises what setuptools prints as one line; the command has said why."""
    try:
        subprocess.run(command, check=True)
    except FileNotFoundError:
        raise SetupError(f"{command[0]} is not found: install cmake and ninja-build (docs/how-to/install.md)") from None
    except subprocess.CalledProcessError as error:
        raise SetupError(f"{command[0]} failed with exit code {error.returncode}; above it says why") from None


class BuildWithCMake(build_ext):
    """Configures a build of its own, or takes the one that PIPESIM_BUILD names, and installs from there."""

    def run(self):
        if self.editable_mode or self.inplace:
            raise SetupError("an editable install has no module: set PYTHONPATH to python/ of a build instead")
        given = os.environ.get("PIPESIM_BUILD")
        build = pathlib.Path(given or self.build_temp).resolve()
        if not given:
            run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", *OPTIONS, *pybind11(),
                f"-DPython_EXECUTABLE={sys.executable}", *os.environ.get("CMAKE_ARGS", "").split())
        if not (build / "python" / "pipesim").exists():
            raise SetupError("the package needs pybind11 2.10 or later and Python's headers: apt-get install pybind11-dev "
                             "python3-dev, or pip install pybind11")
        run("cmake", "--build", build, "--target", "pipesim_python", "pipesim")
        package = pathlib.Path(self.build_lib).resolve() / "pipesim"
        run("cmake", "--install", build, "--component", "python", "--prefix", package)


def version():
    return re.search(r"project\(pipesim VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


setup(version=version(), ext_modules=[Extension("pipesim._pipesim", [])], cmdclass={"build_ext": BuildWithCMake})
