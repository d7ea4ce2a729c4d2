"""The simulator against published figures."""

from __future__ import annotations

import json
import os
from typing import Union

from . import _arguments, _pipesim
from ._rows import Row, Rows


def validate(name: str, data: Union[str, "os.PathLike[str]"] = "") -> Rows[Row]:
    """Compares the simulator with published figures, as `pipesim validate NAME --json` does.

    name: one of `validations()`, such as "korthikanti", or "runs" for measured training runs. data: a folder
    with tables of the same form. Returns a row per cell, with its `published` and `simulated` value.
    """
    rows = json.loads(_pipesim.validate(_arguments.text("name", name), os.fspath(data)))
    return Rows([Row(row) for row in rows], ("table", "cell", "published", "simulated"))


def validations() -> list[str]:
    """The names that `validate` takes."""
    return _pipesim.validations()
