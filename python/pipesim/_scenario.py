"""Scenarios from files, dicts and changes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Union

from . import _pipesim, _schedules, _yaml
from ._errors import InputError

Source = Union[str, "os.PathLike[str]", Mapping[str, Any], _pipesim.Scenario]


def changes_of(changes: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Both as dotted keys; two underscores of a keyword are a dot."""
    return {**(changes or {}), **{key.replace("__", "."): value for key, value in keywords.items()}}


def texts_of(changes: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(key, _yaml.flow(value, key)) for key, value in changes.items()]


def _without_functions(value: Any) -> tuple[Any, dict[int, _schedules.Schedule]]:
    """The value of `schedule` with placeholders, and what they stand for."""
    alone = _schedules.as_schedule(value)
    if alone is not None:
        return _schedules.placeholder(alone), {0: alone}
    if not isinstance(value, (list, tuple)):
        return value, {}
    made = {i: found for i, each in enumerate(value) if (found := _schedules.as_schedule(each)) is not None}
    return [_schedules.placeholder(made[i]) if i in made else each for i, each in enumerate(value)], made


def refuse_functions(source: Source, changes: Mapping[str, Any]) -> None:
    """Of what is read anew at every point."""
    for value in (source if isinstance(source, Mapping) else {}, changes):
        if _without_functions(value.get("schedule"))[1]:
            raise InputError("schedule: a schedule made in Python cannot be swept: describe it in a file, "
                             "or call simulate for every setting", "<dict>")


def text_of(source: Mapping[str, Any]) -> str:
    """The text as which a dict is read, and in which mistakes are located."""
    return _yaml.block(source)


def scenario(source: Source, changes: Mapping[str, Any] | None = None, /, **keywords: Any) -> _pipesim.Scenario:
    """Reads a scenario once, for many calls of `simulate` or `search`.

    source: a path of a YAML file; a dict of the same keys (docs/reference/scenario.md), quantities with
      their units as text ("18.5 ms", "3.7 GiB"); or a scenario, which comes back as it is.
    changes, keywords: replace values, as the command line's path.to.key=value: by dotted keys,
      {"batch.num_microbatches": 8}, or by keywords in which two underscores are a dot, batch__num_microbatches=8.

    `schedule` may hold functions, lists and building blocks (`pipesim.schedule`). Raises InputError.
    """
    given = changes_of(changes, keywords)
    if isinstance(source, _pipesim.Scenario):
        if given:
            raise TypeError("a scenario that has been read cannot be changed: give its path or dict")
        return source
    made: dict[int, _schedules.Schedule] = {}
    if "schedule" in given:
        given["schedule"], made = _without_functions(given["schedule"])
    elif isinstance(source, Mapping) and "schedule" in source:
        value, made = _without_functions(source["schedule"])
        source = {**source, "schedule": value}
    if isinstance(source, Mapping):
        read = _pipesim.read_text("<dict>", text_of(source), texts_of(given))
    else:
        read = _pipesim.read_file(os.fspath(source), texts_of(given))
    for index, each in made.items():
        read = _schedules.insert(read, index, each)
    return read
