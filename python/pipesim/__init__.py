"""pipesim from Python: the commands as functions, their documents as values (docs/how-to/python.md).

Times are seconds, memory is bytes, unless a name says otherwise. Quantities of scenarios are text with a
unit, as in files: "18.5 ms", "3.7 GiB", "400 Gbps".
"""

from __future__ import annotations

import json as _json
import os as _os
import shutil as _shutil
import tempfile as _tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Optional, Union

from . import _pipesim
from ._errors import Error, InfeasibleError, InputError
from ._pipesim import Scenario, __version__
from ._results import PASS_KINDS, TASK_KINDS, Comparison, Found, Plan, Result, Rows, Timeline
from ._scenario import Source, changes_of, refuse_functions, scenario, text_of, texts_of
from ._schedules import Schedule, schedule

__all__ = ["Comparison", "Error", "Found", "InfeasibleError", "InputError", "METRICS", "PASS_KINDS", "Plan", "Result", "Rows",
           "Scenario", "Schedule", "Sweep", "TASK_KINDS", "Timeline", "__version__", "plan", "scenario", "schedule",
           "search", "simulate", "sweep", "validate", "validations"]

# By name what docs/reference/metrics.md says of a metric: label, title, unit, better, band, digits, definition.
METRICS: dict[str, dict[str, Any]] = {each["name"]: each for each in _json.loads(_pipesim.metrics())}


def simulate(source: Source, changes: Mapping[str, Any] | None = None, /, **keywords: Any) -> Comparison:
    """Simulates every schedule of a scenario, as `pipesim run` does.

    source, changes, keywords: as `scenario` takes them. What is simulated often is read once:
    ``read = pipesim.scenario(path)``, then ``pipesim.simulate(read)``.

    Other threads of Python run meanwhile; Ctrl-C is heard between schedules. Raises InputError for what
    cannot be read, and InfeasibleError where no schedule can be met; where others can, it is in `refused`.
    """
    return Comparison(_pipesim.simulate(scenario(source, changes, **keywords)))


def search(source: Source, changes: Mapping[str, Any] | None = None, /, *, memory_limit: Union[float, str] = 1,
           points: Optional[int] = None, schedules: Sequence[str] = (), max_chunks: int = 2, max_splits: int = 1,
           offload: bool = False, recompute: bool = False, refine: bool = True, effort: Optional[float] = None,
           seed: int = 1, max_passes: float = 2**30, progress: Optional[Callable[[int, int], Any]] = None,
           **keywords: Any) -> Any:
    """Finds the schedule with the least time under a limit on activation memory, as `pipesim search` does.

    memory_limit: a multiple of p times the activation of one microbatch on a device, or bytes: "40 GiB".
    points: so many limits instead, from one microbatch to where more memory does not help; the frontier.
    progress: of a frontier, called as progress(limits done, limits) some ten times a second.
    The others are the command's options (docs/how-to/search.md); keywords that are none change the scenario.

    Returns a Found, or for a frontier Rows of them. Ctrl-C ends the search and raises KeyboardInterrupt.
    """
    read = scenario(source, changes, **keywords)
    rows, left_out = _pipesim.search(read, str(memory_limit), points, list(schedules), max_chunks, max_splits,
                                     offload, recompute, refine, effort, seed, max_passes, progress)
    if points is None and not rows:
        raise InfeasibleError("\n  left out: ".join([f"no schedule fits into a limit of {memory_limit}", *left_out]))
    found = [Found(row) for row in rows]
    columns = ("limit_over_p_microbatches", "schedule", "refined", "makespan_from_rest_seconds", "bubble_rate",
               "peak_activation_bytes")
    return found[0] if points is None else Rows(found, columns, left_out)


def _value(text: str) -> Any:
    """A swept value as a number where it is one."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


class Sweep(Iterator[dict[str, Any]]):
    """The points of a sweep as they are done, in no fixed order: iterate over it.

    A point is a dict with ``point`` (its number), the swept keys, ``schedule``, the metrics of results.csv in
    seconds and bytes (None where one does not apply) and ``reason``, None unless the point is refused.
    """

    def __init__(self, described: Any, folder: Optional[str], processes: int,
                 progress: Optional[Callable[[dict[str, Any]], Any]]) -> None:
        self.keys: list[str] = described.keys
        self.points: int = described.points
        self._progress = progress
        self._json: Optional[str] = None
        self._running: Any = None
        self._own = None if folder is not None else _tempfile.mkdtemp(prefix="pipesim-")
        self._running = _pipesim.RunningSweep(described, self._own or folder, min(processes, self.points))

    def __len__(self) -> int:
        return self.points

    def close(self) -> None:
        """Stops the sweep; what is done stays in its folder, where it has one."""
        if self._running is not None:
            self._running.stop()
        if self._own is not None:
            _shutil.rmtree(self._own, ignore_errors=True)

    def __del__(self) -> None:
        self.close()

    def __next__(self) -> dict[str, Any]:
        point = self._running.next()
        if point is None:
            if self._json is None:
                self._json = self._running.json()
            raise StopIteration
        for key in self.keys:
            point[key] = _value(point[key])
        if self._progress is not None:
            self._progress(self.progress)
        return point

    @property
    def progress(self) -> dict[str, Any]:
        """``points``; those stored ``before``; those ``evaluated``; ``share`` of the work that is done, 0 to 1."""
        return self._running.progress()

    @property
    def json(self) -> str:
        """The document of `pipesim sweep --json`, byte for byte; takes what is left of the points."""
        for _ in self:
            pass
        assert self._json is not None
        return self._json

    def to_dict(self) -> dict[str, Any]:
        return _json.loads(self.json)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame of the points that are left, in their order; needs pandas."""
        import pandas

        return pandas.DataFrame(sorted(self, key=lambda point: point["point"]))


def sweep(source: Source, changes: Mapping[str, Any] | None = None, /, *,
          folder: Union[str, "_os.PathLike[str]", None] = None, processes: Optional[int] = None,
          progress: Optional[Callable[[dict[str, Any]], Any]] = None, **keywords: Any) -> Sweep:
    """Simulates every point of a scenario with a section `sweep`, on processes of this machine.

    folder: keeps the results, so that the same call goes on where an earlier one was stopped; without it
      nothing is kept. processes: as many as cores when not given.
    progress: called after every point as progress({"points": ..., "before": ..., "evaluated": ..., "share": ...}).

    Returns an iterator. Ctrl-C while it waits stops the sweep and raises KeyboardInterrupt; what is done is
    stored in the folder. Processes are forked by the call.
    """
    given = changes_of(changes, keywords)
    if isinstance(source, Scenario):
        raise TypeError("a sweep needs a path or a dict: a scenario that has been read has no section `sweep`")
    refuse_functions(source, given)
    if isinstance(source, Mapping):
        described = _pipesim.sweep_of_text("<dict>", text_of(source), texts_of(given))
    else:
        described = _pipesim.sweep_of_file(_os.fspath(source), texts_of(given))
    place = None if folder is None else _os.fspath(folder)
    if place is not None:
        _os.makedirs(place, exist_ok=True)
    return Sweep(described, place, processes or _os.cpu_count() or 1, progress)


def _arguments(options: Mapping[str, Any]) -> list[str]:
    """Keywords as the command line has them: max_gpus=8 is --max-gpus 8, a list has commas, True is a flag."""
    made = []
    for key, value in options.items():
        name = "--" + key.replace("_", "-")
        if value is None or value is False:
            continue
        listed = isinstance(value, Sequence) and not isinstance(value, str)
        made += [name] if value is True else [name, ",".join(map(str, value)) if listed else str(value)]
    return made


def plan(model: Union[str, "_os.PathLike[str]"], cluster: Union[str, Sequence[str]], gpus: int, global_batch_size: int,
         seq_length: int, changes: Mapping[str, Any] | None = None, *,
         progress: Optional[Callable[[str, int, int, Optional[float]], Any]] = None, **options: Any) -> Plan:
    """Finds the fastest layouts of a model on a number of GPUs, as `pipesim plan` does.

    model: a name of `pipesim list models`, or the path of a Hugging Face config.json. cluster: a name of
      `pipesim list clusters`, or several. global_batch_size: samples of an iteration. seq_length: tokens of a sample.
    changes: other scenario keys, {"cost.overlap_grad_reduce": True}.
    options: those of the command, underscores for dashes: tensor=[4, 8], memory_limit="72 GiB", best=3,
      tokens="15T", contention=0, no_offload=True (docs/how-to/plan.md).
    progress: called as progress(cluster, points decided, points, best seconds or None) some ten times a second.

    Mistakes are located in the command that it makes. Ctrl-C ends the search and raises KeyboardInterrupt;
    InfeasibleError says what would make a layout fit where none does.
    """
    asked = {"model": _os.fspath(model), "cluster": cluster, "gpus": gpus, "global_batch_size": global_batch_size,
             "seq_length": seq_length, **options}
    settings = [f"{key}={value}" for key, value in texts_of(changes or {})]
    return Plan(*_pipesim.plan(_arguments(asked) + settings, progress))


def validate(name: str, data: Union[str, "_os.PathLike[str]"] = "") -> Rows:
    """Compares the simulator with published figures, as `pipesim validate NAME --json` does.

    name: one of `validations()`, such as "korthikanti", or "runs" for measured training runs. data: a folder
    with tables of the same form. Returns a row per cell, with its `published` and `simulated` value.
    """
    rows = _json.loads(_pipesim.validate(name, _os.fspath(data)))
    return Rows(rows, ("table", "cell", "published", "simulated"))


def validations() -> list[str]:
    """The names that `validate` takes."""
    return _pipesim.validations()
