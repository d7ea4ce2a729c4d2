"""Schedules that are Python functions, lists of passes or building blocks."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import linecache
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, overload

from . import _arguments, _pipesim, _yaml
from ._errors import InputError

_BLOCK_KEYS = {"placement", "period", "block"}


class Schedule:
    """A schedule that Python makes; ``schedule`` builds one."""

    def __init__(self, make: Any, name: str, chunks: int, description: Mapping[str, Any],
                 parameters: Mapping[str, Any] | None = None) -> None:
        self.make = make
        self.name = name
        self.chunks = chunks
        self.description = dict(description)
        self.parameters = dict(parameters or {})

    def __call__(self, devices: int, microbatches: int) -> Any:
        return self.make(devices, microbatches, **self.parameters) if callable(self.make) else self.make

    def using(self, **parameters: Any) -> Schedule:
        """The same schedule whose function is called with these arguments beside p and m."""
        return Schedule(self.make, self.name, self.chunks, self.description, {**self.parameters, **parameters})

    def __repr__(self) -> str:
        given = "".join(f" {name}={value!r}" for name, value in self.parameters.items())
        return f"<pipesim.Schedule {self.name}{given}>"


class Decorator(Protocol):
    """Makes a schedule of the function below it."""

    def __call__(self, make: Callable[..., Any], /) -> Schedule: ...


@overload
def schedule(make: Callable[..., Any] | Sequence[Any], *, name: str | None = None, chunks: int = 1,
             **description: Any) -> Schedule: ...
@overload
def schedule(make: None = None, *, block: Sequence[Mapping[str, Any]],  # type: ignore[misc]
             name: str | None = None, chunks: int = 1, **description: Any) -> Schedule: ...
@overload
def schedule(make: None = None, *, name: str | None = None, chunks: int = 1, **description: Any) -> Decorator: ...


def schedule(make: Any = None, *, name: str | None = None, chunks: int = 1, **description: Any) -> Any:
    """Makes a schedule of a function, a list of passes or a building block; also a decorator.

    A function is called as ``make(devices, microbatches)``, with the numbers p and m of the scenario.
    It returns or yields one list per device, in their order, of the passes that the device runs::

        @pipesim.schedule
        def gpipe(p, m):
            for device in range(p):
                yield ([f"{device}F{i}" for i in range(m)] +
                       [f"{device}BW{i}" for i in range(m)])

    A pass is ``<stage><kind><microbatch>`` (or a tuple of the three): F forward, B input gradient, W weight
    gradient, BW both fused, R recomputation; ``3F0&1BW2`` is an overlapped block (of F and BW, B or W). A stage
    stands on the device whose list names it; ``chunks`` says how many stages a device has at most. Or it returns or yields the lines of
    a building block, dicts ``{"pass": "F", "stage": "s", "at": "s"}``, whose placement, period and other keys
    stand in the decorator (docs/reference/descriptions.md)::

        @pipesim.schedule(placement="linear", period=3)
        def mine(p, m):
            yield {"pass": "F", "stage": "s", "at": "s"}
            yield {"pass": "BW", "stage": "s", "at": "3*p - 2 - 2*s"}

    A function may take more than p and m: ``mine.using(ahead=2)`` sets it, as does a sweep over "schedule.ahead".
    Mistakes are refused as those of files: InputError says device (line) and pass (column).
    """
    if make is None and "block" not in description:
        return lambda function: schedule(function, name=name, chunks=chunks, **description)
    if make is None:
        make = description.pop("block")
    if name is None:
        name = getattr(make, "__name__", "schedule")
    return Schedule(make, name, chunks, description)


def as_schedule(value: Any) -> Schedule | None:
    """The schedule that stands in a scenario in Python's own form, or None."""
    if isinstance(value, Schedule):
        return value
    if isinstance(value, Mapping) and _BLOCK_KEYS <= set(value):
        rest = {key: each for key, each in value.items() if key not in ("block", "name")}
        return Schedule(value["block"], value.get("name") or "schedule", rest.pop("chunks", 1), rest)
    return Schedule(value, getattr(value, "__name__", "schedule"), 1, {}) if callable(value) else None


def placeholder(made: Schedule) -> Any:
    """A stand-in while the rest of the scenario is read: a schedule with as many chunks."""
    chunks = made.description.get("chunks", 2) if made.description else made.chunks
    if made.description.get("placement") == "linear" or chunks == 1:
        return "1f1b"
    return {"name": "interleaved-1f1b", "virtual_pipeline_model_parallel_size": chunks}


def _pass(made: Schedule, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and len(value) == 3:
        return "".join(str(part) for part in value)
    raise InputError(f"<{made.name}>: expected a pass such as '2F0' or (2, 'F', 0), not {_arguments.shown(value)}",
                     f"<{made.name}>")


def _where(made: Schedule) -> tuple[str, int, str]:
    code = getattr(inspect.unwrap(made.make), "__code__", None) if callable(made.make) else None
    if code is None:
        return f"<{made.name}>", 0, ""
    line = linecache.getline(code.co_filename, code.co_firstlineno).rstrip("\n")
    return code.co_filename, code.co_firstlineno, line


# Only a function that never ends exceeds these: kinds of pass of a microbatch and chunk, and lists.
_MOST_KINDS = 16
_MOST_LISTS = 1 << 20


def _taken(made: Schedule, values: Any, most: int) -> list[Any]:
    """A list of what a function returned or yields, which may never end."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"<{made.name}>: expected a list of passes per device, not {_arguments.shown(values)}", f"<{made.name}>")
    taken = list(itertools.islice(values, most + 1))
    if len(taken) > most:
        raise InputError(f"<{made.name}>: yields over {most} of what should be a list of passes or of devices", f"<{made.name}>")
    return taken


def _lists(made: Schedule, result: Any, microbatches: int) -> list[Any]:
    """The passes of each device, or the lines of a block."""
    chunks = made.chunks if isinstance(made.chunks, int) else 1
    most = _MOST_KINDS * max(1, microbatches) * max(1, chunks)
    return [each if isinstance(each, Mapping) else _taken(made, each, most)
            for each in _taken(made, result, _MOST_LISTS)]


def pickled(made: Schedule, devices: int, microbatches: int) -> Schedule:
    """A schedule that can be pickled: the same, or of a function that stands in no module its passes."""
    try:
        pickle.dumps(made)
        return made
    except (pickle.PicklingError, AttributeError, TypeError):
        result = _lists(made, made(devices, microbatches), microbatches)
        return Schedule(result, made.name, made.chunks, made.description, made.parameters)


def insert(scenario: _pipesim.Scenario, index: int, made: Schedule) -> tuple[_pipesim.Scenario, str]:
    """Calls the schedule for the scenario's devices and microbatches, and puts what it gives into the scenario.

    index: its place among the scenario's schedules. Returns the new scenario, and a digest of the order or block that
    was made. Raises InputError where the schedule gives no order, at the device and the pass; exceptions of the
    function pass through.
    """
    result: Iterable[Any] = made(scenario.devices, scenario.microbatches)
    place = _pipesim.MadeSchedule(made.name, *_where(made))
    if isinstance(result, Mapping):
        text = _yaml.block({**made.description, **result})
        return _pipesim.with_description(scenario, index, place, text), _digest(index, made, text)
    lists = _lists(made, result, scenario.microbatches)
    if made.description or any(isinstance(each, Mapping) for each in lists):
        text = _yaml.block(made.description) + "block:\n" + "".join(f"  - {_yaml.flow(each)}\n" for each in lists)
        return _pipesim.with_description(scenario, index, place, text), _digest(index, made, text)
    cells = [[_pass(made, each) for each in of_device] for of_device in lists]
    text = "\n".join(", ".join(row) or "," for row in cells)
    try:
        return _pipesim.with_passes(scenario, index, place, made.chunks, text), _digest(index, made, text)
    except InputError as error:
        raise _as_written(error, made, lists, cells) from None


def _digest(index: int, made: Schedule, text: str) -> str:
    """Names an order in a scenario, in hexadecimal.

    Equal where place, name, chunks and text are. The text is that of all passes, or that of a block with its keys;
    arguments of the function count by it alone.
    """
    return hashlib.sha256(f"{index} {made.name} {made.chunks}\n{text}".encode()).hexdigest()


def _as_written(error: InputError, made: Schedule, lists: Sequence[Any], cells: Sequence[Sequence[str]]) -> InputError:
    """The error with the pass as its function wrote it, where that was no text."""
    if error.file != f"<{made.name}>" or not 0 < error.line <= len(cells):
        return error
    end = 0
    for written, cell in zip(lists[error.line - 1], cells[error.line - 1]):
        end += len(cell) + 2
        if error.column < end:
            quoted = "" if isinstance(written, str) else f"\n  written as {_arguments.shown(written)}"
            return InputError(f"{error}{quoted}", error.file, error.line, error.column, error.text)
    return error
