"""What calls return: the documents of the commands as Python's values, with tables and drawings."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

from . import _pipesim, _schedules

# By the numbers of Timeline.kind and Timeline.pass_kind.
TASK_KINDS = ("compute", "transfer", "collective", "optimizer", "barrier", "copy_out", "copy_in")
PASS_KINDS = ("F", "B", "W", "BW", "FB", "R", "S", "T", "IF", "IB")


def _array(column: _pipesim.Column) -> Any:
    """NumPy's array over the column's own memory, or a memoryview where NumPy is not installed."""
    try:
        import numpy
    except ImportError:
        return memoryview(column)
    return numpy.asarray(column)


def frame_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A pandas.DataFrame of the rows; needs pandas."""
    import pandas

    return pandas.DataFrame([dict(row) for row in rows])


def table_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """An HTML table of some columns."""
    def cell(value: Any) -> str:
        return html.escape(f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value))

    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{cell(row.get(name))}</td>" for name in columns) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


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

    def __init__(self, answer: _pipesim.Answer) -> None:
        self._answer = answer
        self._table: _pipesim.TaskTable | None = None

    def _column(self, name: str) -> Any:
        if self._table is None:
            self._table = self._answer.table()
        return _array(self._table.column(name))

    def __len__(self) -> int:
        return len(self.start)

    @property
    def start(self) -> Any:
        return _array(self._answer.start)

    @property
    def end(self) -> Any:
        return _array(self._answer.end)

    @property
    def kind(self) -> Any:
        return self._column("kind")

    @property
    def pass_kind(self) -> Any:
        return self._column("pass")

    @property
    def device(self) -> Any:
        return self._column("device")

    @property
    def receiver(self) -> Any:
        return self._column("receiver")

    @property
    def stage(self) -> Any:
        return self._column("stage")

    @property
    def microbatch(self) -> Any:
        return self._column("microbatch")

    @property
    def iteration(self) -> Any:
        return self._column("iteration")

    def name(self, task: int) -> str:
        """The task in words: "3F2", "3F2 -> device 4", "optimizer of device 1"."""
        return self._answer.task_name(task)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row per task, kinds as categories; needs pandas."""
        import pandas

        frame = pandas.DataFrame({name: getattr(self, name) for name in self.COLUMNS}, copy=False)
        for name, names in (("kind", TASK_KINDS), ("pass_kind", PASS_KINDS)):
            frame[name] = pandas.Categorical.from_codes(frame[name].astype("int8"), names)
        return frame


class Result(Mapping[str, Any]):
    """One schedule's simulation: the keys of a result of `pipesim run --json` (docs/reference/json.md).

    ``result["iteration_seconds"]`` or ``result.iteration_seconds``: times are seconds, memory is bytes, what
    does not apply is None.
    """

    def __init__(self, comparison: Comparison, index: int) -> None:
        self._comparison = comparison
        self._index = index
        self._answer = comparison._made.answer(index)

    def to_dict(self) -> dict[str, Any]:
        return self._comparison.to_dict()["results"][self._index]

    def __getitem__(self, key: str) -> Any:
        return self.to_dict()[key]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.to_dict():
            return self.to_dict()[name]
        raise AttributeError(f"a result has no {name!r}; keys: {', '.join(self) if name[:1] != '_' else ''}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())

    @property
    def label(self) -> str:
        """The schedule as tables call it."""
        return self._answer.label

    @property
    def timeline(self) -> Timeline:
        return self._comparison._timelines.setdefault(self._index, Timeline(self._answer))

    @property
    def passes(self) -> list[list[str]]:
        """Of every device the passes in their order, as text: [["0F0", "0F1", ...], ...]."""
        return self._answer.passes()

    @property
    def svg(self) -> str:
        """The schedule drawn as `pipesim show --format svg` does."""
        return self._answer.svg()

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row per device; needs pandas."""
        import pandas

        return pandas.json_normalize(self["devices"])

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return f"<figure>{self.svg}</figure>"

    def __repr__(self) -> str:
        return f"<pipesim.Result {self.label}: {self._answer.headline()}>"


class Comparison(Sequence[Result]):
    """The schedules of a scenario side by side: results by number or by schedule, in their order."""

    _COLUMNS = ("schedule", "iteration_seconds", "bubble_rate", "peak_activation_bytes", "peak_memory_bytes",
                "samples_per_second", "mfu")

    def __init__(self, made: _pipesim.Comparison) -> None:
        self._made = made
        self._document: dict[str, Any] | None = None
        self._timelines: dict[int, Timeline] = {}

    # Results are not kept: they refer to this, and a circle would hold large memory until Python looks for circles.
    def _all(self) -> list[Result]:
        return [Result(self, i) for i in range(self._made.size)]

    def __len__(self) -> int:
        return self._made.size

    def __getitem__(self, which: Union[int, slice, str]) -> Any:
        if not isinstance(which, str):
            return self._all()[which]
        for result in self._all():
            if which in (result.label, result._answer.name):
                return result
        raise KeyError(f"{which!r} is none of {', '.join(result.label for result in self._all())}")

    @property
    def refused(self) -> list[tuple[str, str]]:
        """Schedules that cannot be met, and why: (label, reason)."""
        return self._made.refused

    @property
    def seconds(self) -> float:
        """What the simulator itself took, in seconds of a clock."""
        return self._made.seconds

    @property
    def json(self) -> str:
        """The document of `pipesim run --json`, byte for byte."""
        return self._made.json()

    def to_dict(self) -> dict[str, Any]:
        """The same document as a dict."""
        if self._document is None:
            self._document = json.loads(self.json)
        return self._document

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row per schedule; needs pandas."""
        rows = self.to_dict()["results"]
        return frame_of([{key: value for key, value in row.items() if not isinstance(value, (list, dict))}
                         for row in rows])

    def _repr_html_(self) -> str:
        drawings = "".join(f"<figure>{result.svg}</figure>" for result in self._all())
        refused = "".join(f"<p>{html.escape(label)}: refused: {html.escape(why)}</p>" for label, why in self.refused)
        return table_of(self.to_dict()["results"], self._COLUMNS) + refused + drawings

    def __repr__(self) -> str:
        return self._made.table().rstrip("\n")


class Found(Mapping[str, Any]):
    """What a search found: the keys of `pipesim search --csv`, and ``passes``, the order of every device.

    Times are seconds, memory is bytes; ``gap`` is how far the time lies above the lower bound, as a share.
    """

    def __init__(self, row: dict[str, Any]) -> None:
        self._row = row

    def __getitem__(self, key: str) -> Any:
        return self._row[key]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._row:
            return self._row[name]
        raise AttributeError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._row)

    def __len__(self) -> int:
        return len(self._row)

    def to_dict(self) -> dict[str, Any]:
        return dict(self._row)

    def as_schedule(self) -> _schedules.Schedule:
        """The order that was found, for `schedule` of a scenario. What is on the host stays in it."""
        return _schedules.schedule(self.passes, name=f"found-{self.schedule}", chunks=self.chunks)

    def __repr__(self) -> str:
        return (f"<pipesim.Found {self.schedule}{' (refined)' if self.refined else ''}: "
                f"{self.makespan_from_rest_seconds:.6g} s, {self.peak_activation_bytes:.6g} bytes>")


class Rows(Sequence[Any]):
    """Rows of one document: a sequence of dicts, or of what they became."""

    def __init__(self, rows: Sequence[Any], columns: Sequence[str], notes: Sequence[str] = ()) -> None:
        self._rows = list(rows)
        self._columns = columns
        self.left_out = list(notes)  # "name: reason", of a search

    def __getitem__(self, which: Any) -> Any:
        return self._rows[which]

    def __len__(self) -> int:
        return len(self._rows)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row each; needs pandas."""
        return frame_of(self._rows)

    def _repr_html_(self) -> str:
        return table_of(self._rows, self._columns)

    def __repr__(self) -> str:
        return f"<{len(self._rows)} rows: {', '.join(self._columns)}>"


class Plan(Rows):
    """The fastest layouts, those of the first cluster first: the keys of `layouts` of `pipesim plan --json`,
    and ``cluster``. ``layout["scenario"]`` is the text of a scenario that simulates it."""

    _COLUMNS = ("cluster", "schedule", "tensor_model_parallel_size", "pipeline_model_parallel_size",
                "data_parallel_size", "micro_batch_size", "iteration_seconds", "mfu", "peak_memory_bytes", "limited_by")

    def __init__(self, text: str, table: str) -> None:
        self.json = text  # the document of `pipesim plan --json`, byte for byte
        self._document: dict[str, Any] = json.loads(text)
        self._table = table
        super().__init__([{"cluster": plan["cluster"], **layout}
                          for plan in self._document["plans"] for layout in plan["layouts"]], self._COLUMNS)

    def to_dict(self) -> dict[str, Any]:
        return self._document

    def __repr__(self) -> str:
        return self._table.rstrip("\n")
