"""The program `pipesim` itself, for commands that read and write files."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Union

from . import _arguments, _pipesim
from ._errors import Error, InfeasibleError, InputError
from ._rows import Row, Rows
from ._scenario import Scenario

_HERE = pathlib.Path(__file__).parent


def path() -> str:
    """Where the program stands: in the package, beside it in a build, or on the PATH."""
    for place in (_HERE / "bin" / "pipesim", pathlib.Path(_pipesim.__file__).parents[2] / "bin" / "pipesim"):
        if os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("pipesim")
    if found is None:
        raise Error("the program pipesim is not found: neither in the package nor on the PATH")
    return found


def run(*arguments: Union[str, "os.PathLike[str]"]) -> tuple[int, str, str]:
    """Exit code, standard output and standard error. Raises what the command refuses."""
    done = subprocess.run([path(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode == 2:
        raise InputError(done.stderr.strip(), "command line")
    return done.returncode, done.stdout, done.stderr


def output(*arguments: Union[str, "os.PathLike[str]"]) -> str:
    """Standard output. Raises InfeasibleError where the command says that it failed."""
    code, said, error = run(*arguments)
    if code != 0:
        raise InfeasibleError(error.strip())
    return said


def main() -> None:
    """The command `pipesim` of an installed package."""
    os.execv(path(), ["pipesim", *sys.argv[1:]])


class Imported:
    """A scenario read from another program's file: ``text``, and ``summary``, how each setting was treated."""

    def __init__(self, text: str, summary: str, complete: bool) -> None:
        self.text = text
        self.summary = summary
        self.complete = complete  # whether nothing is missing

    def as_scenario(self) -> Scenario:
        """The scenario that it became; InputError where something is missing."""
        return Scenario("<import>", self.text)

    def __repr__(self) -> str:
        return self.summary.rstrip("\n") or f"<pipesim.Imported {len(self.text.splitlines())} lines>"


def import_(file: Union[str, "os.PathLike[str]"], *, format: str = "", settings: Mapping[str, Any] | None = None,
            accept: Sequence[str] = (), cluster: str = "", log: Union[str, "os.PathLike[str]"] = "") -> Imported:
    """Reads a schedule or a configuration of another program, as `pipesim import` does.

    format: torch (a schedule CSV), passes, kineto, megatron, torchtitan or deepspeed. settings: over what the file says, or variables
      of a script. accept: settings to go on without. cluster: what it ran on. log: a training log to compare with.
    """
    given = [(key, str(value)) for key, value in (settings or {}).items()]
    return Imported(*_pipesim.import_file(os.fspath(file), _arguments.text("format", format), given,
                                          _arguments.texts("accept", accept), cluster, os.fspath(log)))


def reproduce(name: str, folder: Union[str, "os.PathLike[str]"], *, format: str = "svg") -> str:
    """Draws a paper's figure beside its published points into a folder, as `pipesim reproduce` does.

    Returns the sentence that says how far they are apart. `pipesim.list("figures")` names them.
    """
    return output("reproduce", name, "-o", folder, "--format", format).strip()


def listed(what: str = "schedules") -> Rows[Row]:
    """Names for a scenario: schedules, models, clusters, gpus, metrics; or the figures of `reproduce`."""
    if isinstance(what, str) and what == "figures":
        lines = [line.split(None, 1) for line in output("reproduce").splitlines()]
        return Rows([Row({"name": line[0], "title": line[1].strip()}) for line in lines], ("name", "title"))
    rows = [Row(row) for row in _pipesim.catalogue(_arguments.text("what", what))]
    return Rows(rows, list(rows[0]))
