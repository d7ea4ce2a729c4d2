"""Simulations: results by schedule, the timeline of each, and schedules side by side."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional, Union, overload

from . import _drawings, _pipesim, _tables
from ._errors import Error
from ._metrics import RunMetrics
from ._rows import Row
from ._scenario import Scenario, Source, read

# By the numbers of Timeline.kind and Timeline.pass_kind.
TASK_KINDS = ("compute", "transfer", "collective", "optimizer", "barrier", "copy_out", "copy_in")
PASS_KINDS = ("F", "B", "W", "BW", "FB", "R", "S", "T", "IF", "IB")

# A notebook draws what has no more tasks by itself, on a time axis of so many pixels.
_DRAWN_TASKS = 20_000
_PIXELS = 820.0


def _array(column: _pipesim.Column) -> Any:
    """NumPy's array over the column's own memory, or a memoryview where NumPy is not installed."""
    try:
        import numpy
    except ImportError:
        return memoryview(column)  # type: ignore[arg-type]
    return numpy.asarray(column)


class Timeline:
    """Every task of a simulation, as columns of equal length: one entry per task, shape (tasks,).

    Tasks come in a topological order, those of one device in the order in which it runs them. Columns are
    read-only NumPy arrays (memoryviews without NumPy) over the simulation's own memory, which lives as long
    as any of them; nothing is copied.

    start, end   float64, seconds
    kind         uint8, an index of pipesim.TASK_KINDS
    pass_kind    uint8, an index of pipesim.PASS_KINDS; of a transfer F for activations, B for gradients
    device       int32, pipeline * p + position; of a transfer its sender; -1 of a collective
    receiver     int32, of a transfer; else -1
    stage        int32, the virtual stage of a pass; else -1
    microbatch   int32; -1 of collectives and optimizer steps
    iteration    int32
    """

    COLUMNS = ("start", "end", "kind", "pass_kind", "device", "receiver", "stage", "microbatch", "iteration")

    def __init__(self, tasks: _pipesim.Tasks) -> None:
        self._tasks = tasks

    def __len__(self) -> int:
        return len(self.start)

    @property
    def start(self) -> Any:
        """When each task starts, seconds."""
        return _array(self._tasks.column("start"))

    @property
    def end(self) -> Any:
        """When each task ends, seconds."""
        return _array(self._tasks.column("end"))

    @property
    def kind(self) -> Any:
        """The kind of each task: an index of pipesim.TASK_KINDS."""
        return _array(self._tasks.column("kind"))

    @property
    def pass_kind(self) -> Any:
        """The pass that it is, or is for: an index of pipesim.PASS_KINDS."""
        return _array(self._tasks.column("pass_kind"))

    @property
    def device(self) -> Any:
        """The device that runs or sends it; -1 of a collective."""
        return _array(self._tasks.column("device"))

    @property
    def receiver(self) -> Any:
        """The device that a transfer goes to; else -1."""
        return _array(self._tasks.column("receiver"))

    @property
    def stage(self) -> Any:
        """The virtual stage of a pass; else -1."""
        return _array(self._tasks.column("stage"))

    @property
    def microbatch(self) -> Any:
        """The microbatch that it works on; -1 of collectives and optimizer steps."""
        return _array(self._tasks.column("microbatch"))

    @property
    def iteration(self) -> Any:
        """The iteration that it belongs to."""
        return _array(self._tasks.column("iteration"))

    @property
    def edges(self) -> Any:
        """Which task waits for which: an int64 array of shape (edges, 2), a row being (earlier, later).

        ``networkx.DiGraph(timeline.edges.tolist())`` is the graph. Needs NumPy.
        """
        import numpy

        pairs = (self._tasks.column("awaited"), self._tasks.column("waiting"))
        return numpy.stack([numpy.asarray(each, dtype="int64") for each in pairs], axis=1)

    @property
    def critical_path(self) -> list[int]:
        """The tasks that decide when the last one ends, in their order."""
        return self._tasks.critical_path()

    def name(self, task: int) -> str:
        """The task in words: "3F2", "3F2 -> device 4", "optimizer of device 1"."""
        return self._tasks.name(task)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row per task, kinds as categories; needs pandas."""
        import pandas

        frame = pandas.DataFrame({name: getattr(self, name) for name in self.COLUMNS}, copy=False)
        for name, names in (("kind", TASK_KINDS), ("pass_kind", PASS_KINDS)):
            frame[name] = pandas.Categorical.from_codes(frame[name].astype("int8"), names)
        return frame

    def __repr__(self) -> str:
        return f"<pipesim.Timeline of {len(self)} tasks: {', '.join(self.COLUMNS)}>"


class Device(Row):
    """A device of a result (docs/reference/json.md): seconds busy and idle by cause, peaks in bytes."""


class Result(Row, RunMetrics):
    """One schedule's simulation: the keys of a result of `pipesim run --json` (docs/reference/json.md).

    ``result.iteration_seconds`` or ``result["iteration_seconds"]``: times are seconds, memory is bytes, what
    does not apply is None. The timeline, devices and drawings are simulated when they are first asked for.
    """

    def __init__(self, comparison: Comparison, index: int) -> None:
        self._comparison = comparison
        self._index = index

    def _keys(self) -> Mapping[str, Any]:
        comparison = self._comparison
        return comparison._line(self._index) if comparison._numbers_only else comparison._document_of(self._index)

    def __getitem__(self, key: str) -> Any:
        line = self._comparison._line(self._index)
        return line[key] if key in line else self._keys()[key]

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._comparison._line(self._index)})

    def __reduce__(self) -> tuple[Any, ...]:
        return Result, (self._comparison, self._index)

    @property
    def schedule(self) -> str:
        """The schedule's name alone."""
        return str(self["schedule"])

    @property
    def label(self) -> str:
        """The schedule as tables call it."""
        return str(self["label"])

    @property
    def tasks(self) -> int:
        """Tasks that were simulated."""
        return int(self["tasks"])

    @property
    def devices(self) -> list[Device]:
        """Each device's numbers: busy_seconds, idle_seconds_by_cause, peak_memory_bytes and others."""
        return [Device(each) for each in self._comparison._document_of(self._index)["devices"]]

    @property
    def timeline(self) -> Timeline:
        """Every task with its start and end."""
        return self._comparison._timeline(self._index)

    @property
    def passes(self) -> list[list[str]]:
        """Every device's passes in their order, as text: [["0F0", "0F1", ...], ...]."""
        return self._comparison._simulated.passes(self._index)

    @property
    def svg(self) -> str:
        """The schedule drawn as `pipesim show --format svg` does."""
        return self._comparison._whole(self._index).svg()

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row per device; needs pandas."""
        return _tables.frame_of(self.devices)

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return _tables.html_of([self._comparison._line(self._index)], _COLUMNS) + self._comparison._figure(self._index)

    def __repr__(self) -> str:
        return f"<pipesim.Result {self.label}: {self._comparison._headline(self._index)}>"


_COLUMNS = ("label", "iteration_seconds", "iteration_low_seconds", "iteration_high_seconds", "bubble_rate",
            "peak_activation_bytes", "peak_memory_bytes", "fits", "samples_per_second", "tokens_per_second_per_gpu", "mfu")


class Comparison(Sequence[Result]):
    """The schedules of a scenario side by side: results by number or by schedule, in their order."""

    def __init__(self, scenario: Scenario, numbers_only: bool = False) -> None:
        self.scenario = scenario
        self._numbers_only = numbers_only
        self._made: Optional[_pipesim.Comparison] = _pipesim.Comparison(scenario._read)
        self.refused: list[tuple[str, str]] = self._made.refused  # schedules that cannot be met: (label, reason)
        self.seconds: float = self._made.seconds  # what the simulator itself took, on a clock
        self._size: int = self._made.size
        self._lines: dict[int, dict[str, Any]] = {}
        self._headlines: dict[int, str] = {}
        self._documents: dict[int, dict[str, Any]] = {}
        self._timelines: dict[int, Timeline] = {}

    def __getstate__(self) -> dict[str, Any]:
        for index in range(self._size):
            self._line(index)
            self._headline(index)
        return {**self.__dict__, "_made": None, "_timelines": {}}

    @property
    def _simulated(self) -> _pipesim.Comparison:
        """Simulated anew where this was pickled: the same scenario gives the same numbers."""
        if self._made is None:
            self._made = _pipesim.Comparison(self.scenario._read)
        return self._made

    def _whole(self, index: int) -> _pipesim.Answer:
        if self._numbers_only:
            raise Error("simulated with numbers_only=True: leave it out for timelines, devices, drawings and documents")
        return self._simulated.answer(index)

    def _line(self, index: int) -> dict[str, Any]:
        if index not in self._lines:
            self._lines[index] = self._simulated.row(index)
        return self._lines[index]

    def _headline(self, index: int) -> str:
        if index not in self._headlines:
            self._headlines[index] = self._simulated.headline(index)
        return self._headlines[index]

    def _document_of(self, index: int) -> dict[str, Any]:
        if index not in self._documents:
            self._documents[index] = json.loads(self._whole(index).json())["results"][0]
        return self._documents[index]

    def _timeline(self, index: int) -> Timeline:
        if index not in self._timelines:
            self._timelines[index] = Timeline(self._whole(index).tasks())
        return self._timelines[index]

    def _figure(self, index: int) -> str:
        if self._numbers_only or self._line(index)["tasks"] > _DRAWN_TASKS:
            return ""
        return _drawings.inline(self._whole(index).svg(_PIXELS))

    # Results are not kept: they refer to this, and a circle would hold large memory until Python looks for circles.
    def _all(self) -> list[Result]:
        return [Result(self, i) for i in range(self._size)]

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, which: Union[int, str]) -> Result: ...
    @overload
    def __getitem__(self, which: slice) -> list[Result]: ...

    def __getitem__(self, which: Union[int, slice, str]) -> Union[Result, list[Result]]:
        if not isinstance(which, str):
            return self._all()[which]
        for result in self._all():
            if which in (result.label, result.schedule):
                return result
        raise KeyError(f"{which!r} is none of {', '.join(result.label for result in self._all())}")

    @property
    def json(self) -> str:
        """The document of `pipesim run --json`, byte for byte."""
        if self._numbers_only:
            self._whole(0)
        return self._simulated.json()

    def to_dict(self) -> dict[str, Any]:
        """The same document as a dict."""
        document: dict[str, Any] = json.loads(self.json)
        return document

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row per schedule and a column per metric, the band's ends too; needs pandas."""
        return _tables.frame_of([self._line(i) for i in range(self._size)])

    def _repr_html_(self) -> str:
        refused = "".join(f"<p>{html.escape(label)}: refused: {html.escape(why)}</p>" for label, why in self.refused)
        table = _tables.html_of([self._line(i) for i in range(self._size)], _COLUMNS)
        return table + refused + "".join(self._figure(i) for i in range(self._size))

    def __repr__(self) -> str:
        return self._simulated.table().rstrip("\n")


def simulate(source: Source, changes: Mapping[str, Any] | None = None, /, *, numbers_only: bool = False,
             **keywords: Any) -> Comparison:
    """Simulates every schedule of a scenario, as `pipesim run` does.

    source, changes, keywords: as `read` takes them. A scenario that is simulated often is read once:
    ``scenario = pipesim.read(path)``, then ``scenario.simulate()`` or ``scenario.replace(...).simulate()``.
    numbers_only: nothing but numbers can be asked for afterwards; without it timelines, devices, drawings and
      documents are simulated when they are asked for.

    Other threads of Python run meanwhile. Raises InputError for what cannot be read, and InfeasibleError where
    no schedule can be met; where others can, it is in `refused`.
    """
    return Comparison(read(source, changes, **keywords), numbers_only)
