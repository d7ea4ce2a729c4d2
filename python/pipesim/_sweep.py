"""Sweeps: the points of a grid as they are done."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Optional, Union

from . import _pipesim, _tables, _yaml
from ._errors import InputError
from ._metrics import RunMetrics
from ._rows import Row
from ._scenario import Source, _over, changes_of, text_and_changes, texts_of


def _value(text: str) -> Any:
    """A swept value as a number where it is one."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


class Point(Row, RunMetrics):
    """A point of a sweep: ``point`` (its number), the swept keys, ``schedule`` and the metrics of results.csv.

    ``reason`` is None unless the point is refused. Times are seconds, memory is bytes.
    """

    @property
    def point(self) -> int:
        """Its number, by which tables are ordered."""
        return int(self["point"])

    @property
    def schedule(self) -> str:
        """The schedule's name alone."""
        return str(self["schedule"])

    @property
    def reason(self) -> Optional[str]:
        """Why there are no numbers; None where there are."""
        reason: Optional[str] = self["reason"]
        return reason


class Sweep(Iterator[Point]):
    """The points of a sweep as they are done, in no fixed order: iterate over it."""

    def __init__(self, described: _pipesim.Sweep, folder: Optional[str], processes: int,
                 progress: Optional[Callable[[dict[str, Any]], Any]]) -> None:
        self.keys: list[str] = described.keys
        self.points: int = described.points
        self._columns: list[str] = described.columns
        self._progress = progress
        self._json: Optional[str] = None
        self._running: Any = None
        self._own = None if folder is not None else tempfile.mkdtemp(prefix="pipesim-")
        self._running = _pipesim.RunningSweep(described, self._own or str(folder), min(processes, self.points))

    def __len__(self) -> int:
        return self.points

    def close(self) -> None:
        """Stops the sweep; what is done stays in its folder, where it has one."""
        if self._running is not None:
            self._running.stop()
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)

    def __del__(self) -> None:
        self.close()

    def _point(self, row: dict[str, Any]) -> Point:
        return Point({**row, **{column: _value(row[column]) for column in self._columns}})

    def __next__(self) -> Point:
        row = self._running.next()
        if row is None:
            if self._json is None:
                self._json = self._running.json()
            raise StopIteration
        if self._progress is not None:
            self._progress(self.progress)
        return self._point(row)

    @property
    def progress(self) -> dict[str, Any]:
        """``points``; those stored ``before``; those ``evaluated``; ``share`` of the work that is done, 0 to 1."""
        progress: dict[str, Any] = self._running.progress()
        return progress

    @property
    def json(self) -> str:
        """The document of `pipesim sweep --json`, byte for byte; takes what is left of the points."""
        for _ in self:
            pass
        assert self._json is not None
        return self._json

    def to_dict(self) -> dict[str, Any]:
        """The same document as a dict."""
        document: dict[str, Any] = json.loads(self.json)
        return document

    def rows(self) -> list[Point]:
        """All points in their order, those that were handed out before too; waits for what is left."""
        for _ in self:
            pass
        return [self._point(row) for row in self._running.rows()]

    def to_pandas(self) -> Any:
        """A pandas.DataFrame of all points in their order; needs pandas.

        Swept quantities are numbers in seconds, bytes or bytes per second: "13.3 ms" is 0.0133.
        """
        rows = [row.to_dict() for row in self.rows()]
        for column in self._columns:
            values = [row[column] for row in rows]
            numbers = [_pipesim.quantity(value) if isinstance(value, str) else value for value in values]
            if all(number is not None for number in numbers):
                for row, number in zip(rows, numbers):
                    row[column] = number
        return _tables.frame_of(rows)

    def __repr__(self) -> str:
        return f"<pipesim.Sweep of {self.points} points over {', '.join(self.keys)}>"


def sweep(source: Source, changes: Mapping[str, Any] | None = None, /, *,
          grid: Optional[Mapping[str, Sequence[Any]]] = None,
          folder: Union[str, os.PathLike[str], None] = None, processes: Optional[int] = None,
          progress: Optional[Callable[[dict[str, Any]], Any]] = None, **keywords: Any) -> Sweep:
    """Simulates every point of a scenario with a section `sweep`, on processes of this machine.

    grid: by key its values, in place of that section: ``{"batch.num_microbatches": [8, 16]}``.
    folder: keeps the results, so that the same call goes on where an earlier one was stopped; without it
      nothing is kept. processes: as many as cores when not given.
    progress: called after every point as progress({"points": ..., "before": ..., "evaluated": ..., "share": ...}).

    Returns an iterator. Ctrl-C while it waits stops the sweep and raises KeyboardInterrupt; what is done is
    stored in the folder. Processes are forked by the call.
    """
    given = changes_of(changes, keywords)
    name, text, made = text_and_changes(source, given)
    if grid is not None:
        text = f"{text.rstrip()}\nsweep: {_yaml.flow({'grid': grid}, 'sweep')}\n"
    if made:
        raise InputError("schedule: a schedule made in Python cannot be swept: describe it in a file, "
                         "or call simulate for every setting", "<dict>")
    before = getattr(source, "changes", [])
    described = _pipesim.sweep_of_text(name, text, _over(before, texts_of(given)))
    place = None if folder is None else os.fspath(folder)
    if place is not None:
        os.makedirs(place, exist_ok=True)
    return Sweep(described, place, processes or os.cpu_count() or 1, progress)
