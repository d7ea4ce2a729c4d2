"""Sweeps: the points of a grid as they are done."""

from __future__ import annotations

import concurrent.futures
import contextlib
import fcntl
import itertools
import json
import math
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Optional, Union

from . import _arguments, _pipesim, _tables, _yaml
from ._errors import Error, InfeasibleError, InputError
from ._metrics import RunMetrics
from ._rows import Row
from ._scenario import Scenario, Source, _over, changes_of, read, text_and_changes, texts_of

_CHOICE = ("schedule", "options", "recompute", "offload", "memory_limit")
_METRICS = [name for name in _tables.METRICS if name in vars(RunMetrics)]
_EMPTY: dict[str, Any] = dict.fromkeys((*_CHOICE, *_METRICS, "reason"))


def _value(text: str) -> Any:
    """A swept value as a number where it is one."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


_MOST_POINTS = _pipesim.usual_points()


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


class _Kept:
    """Results of a folder: in points.jsonl a line for each scenario, by its key. One process writes it."""

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self._process = os.getpid()
        self._path = os.path.join(folder, "points.jsonl")
        self._writing = threading.Lock()
        self._lines: dict[str, list[dict[str, Any]]] = {}
        self._file = open(self._path, "a+", encoding="utf-8", errors="replace")
        try:
            self._lock()
            self._read()
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{self._path}: another sweep writes it", self._path) from None

    def _read(self) -> None:
        """Takes the lines that are whole; ends the last one if it was cut off."""
        self._file.seek(0)
        whole = True
        for line in self._file:
            whole = line.endswith("\n")
            with contextlib.suppress(ValueError, KeyError, TypeError):  # a line that was cut off
                kept = json.loads(line)
                self._lines[kept["key"]] = kept["lines"]
        if not whole:
            self._file.write("\n")
            self._file.flush()

    def get(self, key: str) -> Optional[list[dict[str, Any]]]:
        """The lines of a scenario, where it has been simulated."""
        return self._lines.get(key)

    def put(self, key: str, lines: list[dict[str, Any]]) -> None:
        """Keeps the lines of a scenario, whatever happens to this process. After `close` it raises ValueError."""
        with self._writing:
            if self._file.closed:
                raise ValueError(f"{self._path}: its sweep has been closed")
            self._file.write(json.dumps({"key": key, "lines": lines}) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Lets others write; nothing more is kept. Closing twice does no harm."""
        with self._writing:
            if self._file.closed:
                return
            if os.getpid() == self._process:  # a process that was forked since has the lock too, and ends sooner or later
                fcntl.flock(self._file, fcntl.LOCK_UN)
            self._file.close()


class OwnSweep(Sweep):
    """A sweep of schedules that Python makes: every point calls their functions, on threads of this process."""

    def __init__(self, scenario: Scenario, grid: Mapping[str, Sequence[Any]], folder: Optional[str], threads: int,
                 progress: Optional[Callable[[dict[str, Any]], Any]]) -> None:
        self._own = None
        self._running = None
        self._closed = False
        self._kept: Optional[_Kept] = None
        self._ahead: list[concurrent.futures.Future[list[tuple[Point, bool]]]] = []
        self._ready: list[tuple[Point, bool]] = []
        self._pool: Optional[concurrent.futures.ThreadPoolExecutor] = None
        self._progress = progress
        self.keys = list(grid)
        self._columns = self.keys
        self._schedules = scenario.schedules
        self.points = math.prod(map(len, grid.values())) * len(self._schedules)
        if self.points > _MOST_POINTS:
            raise InfeasibleError(f"a sweep of {self.points:.4g} points; at most {_MOST_POINTS}: fewer values of "
                                  f"{', '.join(self.keys)}")
        self._scenario = scenario
        self._taking = threading.RLock()  # by one thread at a time, so that none closes another's point
        self._before = 0
        self._done: list[Point] = []
        # Values that may name files. Functions' arguments count by their orders, so that they may be any objects.
        swept = _yaml.flow({key: each for key, each in grid.items() if not scenario._is_argument(key)}, "sweep")
        asked = [*scenario.changes, ("sweep", swept)]
        self._surroundings = "" if folder is None else _pipesim.surroundings(scenario.file, scenario.text, asked)
        try:
            self._kept = None if folder is None else _Kept(folder)
            self._pool = concurrent.futures.ThreadPoolExecutor(threads)
            for number, values in enumerate(itertools.product(*grid.values())):
                self._ahead.append(self._pool.submit(self._points_of, number, values))
        except BaseException:
            self.close()
            raise

    def _simulated(self, scenario: Scenario) -> list[dict[str, Any]]:
        """Schedules that can be met, then the others."""
        comparison = scenario.simulate(numbers_only=True)
        lines: list[dict[str, Any]] = [comparison._line(index) for index in range(len(comparison))]
        lines += [{"schedule": label, "reason": reason} for label, reason in comparison.refused]
        return [{name: line.get(name) for name in _EMPTY} for line in lines]

    def _lines_of(self, scenario: Scenario) -> tuple[list[dict[str, Any]], bool]:
        """The lines of a setting; True where the folder has them."""
        if self._kept is None:
            return self._simulated(scenario), False
        key = scenario._key(self._surroundings)
        kept = self._kept.get(key)
        if kept is not None:
            return kept, True
        lines = self._simulated(scenario)
        self._kept.put(key, lines)
        return lines, False

    def _points_of(self, number: int, values: Sequence[Any]) -> list[tuple[Point, bool]]:
        """Points of a setting; True where the folder had them before."""
        setting = dict(zip(self.keys, values))
        shown = {key: value if isinstance(value, (int, float)) else str(value) for key, value in setting.items()}
        before = False
        try:
            lines, before = self._lines_of(self._scenario.set(setting))
        except StopIteration as error:  # it would end the sweep without a word
            raise RuntimeError("the schedule's function raised StopIteration") from error
        except Error as error:
            lines = [{**_EMPTY, "schedule": name, "reason": str(error)} for name in self._schedules]
        first = number * len(self._schedules)
        return [(Point({"point": first + index, **shown, **line}), before) for index, line in enumerate(lines)]

    def close(self) -> None:
        """Ends the sweep: its folder is free, points at work are dropped and `next` finds no more."""
        self._closed = True
        self._ahead, self._ready = [], []
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        if self._kept is not None:
            self._kept.close()

    def __next__(self) -> Point:
        try:
            with self._taking:
                return self._next()
        except BaseException:  # also at the end, and at Ctrl-C: the folder is free then
            self.close()
            raise

    def _next(self) -> Point:
        while not self._ready:
            if not self._ahead:
                raise StopIteration
            try:
                self._ready = self._ahead.pop(0).result()
            except Exception:
                if self._closed:  # by another thread
                    raise StopIteration from None
                raise
        point, before = self._ready.pop(0)
        self._before += before
        self._done.append(point)
        if self._progress is not None:
            self._progress(self.progress)
        return point

    @property
    def progress(self) -> dict[str, Any]:
        """The keys of any sweep's progress."""
        done = len(self._done)
        return {"points": self.points, "before": self._before, "evaluated": done - self._before, "share": done / self.points}

    @property
    def json(self) -> str:
        """A sweep of functions has no document: no command could make it."""
        raise Error("a sweep of schedules made in Python has no document: take rows() or to_pandas()")

    def rows(self) -> list[Point]:
        """All points in their order; waits for what is left. Raises Error where the sweep was ended before."""
        for _ in self:
            pass
        if len(self._done) < self.points:
            raise Error(f"the sweep was ended after {len(self._done)} of {self.points} points: call it again")
        return self._done


def _lists_of(grid: Any) -> dict[str, list[Any]]:
    """The grid of a sweep in this process, checked as that of a file is."""
    if not isinstance(grid, Mapping) or not grid:
        _arguments.refuse("grid", "a dict of lists by key", grid)
    lists = {}
    for key, values in grid.items():
        if getattr(values, "size", 0) > _MOST_POINTS:  # of an array
            _arguments.refuse(f"grid: {key}", f"at most {_MOST_POINTS} values", values)
        lists[_arguments.text("grid", key)] = values.tolist() if hasattr(values, "tolist") else values
        if isinstance(lists[key], (str, bytes)) or not isinstance(lists[key], Sequence) or not lists[key]:
            _arguments.refuse(f"grid: {key}", "a list of values", values)
    return lists


def sweep(source: Source, changes: Mapping[str, Any] | None = None, /, *,
          grid: Optional[Mapping[str, Sequence[Any]]] = None,
          folder: Union[str, os.PathLike[str], None] = None, processes: Optional[int] = None,
          progress: Optional[Callable[[dict[str, Any]], Any]] = None, **keywords: Any) -> Sweep:
    """Simulates every point of a scenario with a section `sweep`, on processes of this machine.

    grid: by key its values, in place of that section: ``{"batch.num_microbatches": [8, 16]}``.
    folder: keeps the results, so that the same call goes on where an earlier one was stopped; without it
      nothing is kept. One sweep at a time writes it. processes: as many as cores when not given.
    progress: called after every point as progress({"points": ..., "before": ..., "evaluated": ..., "share": ...}).

    Returns an iterator. Ctrl-C while it waits stops the sweep and raises KeyboardInterrupt; what is done is
    stored in the folder. Processes are forked by the call.

    Schedules made in Python are called on threads, for every point. In a folder they are called again, but an order
    that they made before is not simulated again. Their arguments, keys "schedule.NAME" of the grid, may be any
    objects. Whatever a function or `progress` raises ends the sweep, and leaves its folder to the next one.
    """
    given = changes_of(changes, keywords)
    count = (os.cpu_count() or 1) if processes is None else _arguments.whole("processes", processes)
    if grid is None and isinstance(source, Mapping) and "grid" in (source.get("sweep") or {}):
        grid = source["sweep"]["grid"]
        source = {key: value for key, value in source.items() if key != "sweep"}
    place = None if folder is None else os.fspath(folder)
    name, text, made = text_and_changes(source, dict(given))
    if made:
        if grid is None:
            raise InputError("a schedule made in Python is swept over a grid: the function is called for every point",
                             "<sweep>")
        return OwnSweep(read(source, given), _lists_of(grid), place, count, progress)
    if grid is not None:
        text = f"{text.rstrip()}\nsweep: {_yaml.flow({'grid': grid}, 'sweep')}\n"
    before = getattr(source, "changes", [])
    described = _pipesim.sweep_of_text(name, text, _over(before, texts_of(given)))
    if place is not None:
        os.makedirs(place, exist_ok=True)
    return Sweep(described, place, count, progress)
