"""Scenarios from files, dicts and changes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union, overload

from . import _arguments, _pipesim, _schedules, _yaml
from ._errors import InputError

if TYPE_CHECKING:
    from ._commands import Improved, Orders, Page, Proof
    from ._results import Comparison
    from ._rows import Document, Row, Rows
    from ._search import Found
    from ._sweep import Sweep

# Keys whose value is one thing, whole: a dict there replaces what stands there.
_WHOLE = ("schedule", "sweep")


def _flattened(path: str, value: Any) -> dict[str, Any]:
    """A dict changes the keys that it has, unless it says a kind: then it is a section of its own."""
    _yaml.check_depth(path.count("."), path)
    if not isinstance(value, Mapping) or not value or "kind" in value or path in _WHOLE:
        return {path: value}
    merged: dict[str, Any] = {}
    for key, each in value.items():
        merged.update(_flattened(f"{path}.{str(key).replace('-', '_')}", each))
    return merged


def _by_key(changes: Any) -> dict[str, Any]:
    """Changes that a caller gave, whose keys are texts."""
    if not isinstance(changes, Mapping):
        _arguments.refuse("changes", "a dict by dotted keys", changes)
    return {_arguments.text("changes", key): value for key, value in changes.items()}


def changes_of(changes: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Both as dotted keys; two underscores of a keyword are a dot."""
    given = {**(_by_key(changes) if changes is not None else {}), **{key.replace("__", "."): value for key, value in keywords.items()}}
    merged: dict[str, Any] = {}
    for key, value in given.items():
        merged.update(_flattened(key, value))
    return merged


def texts_of(changes: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(key, _yaml.flow(value, key)) for key, value in changes.items()]


def _over(before: Sequence[tuple[str, str]], after: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Both in turn, without those that a later one replaces."""
    new = [path for path, _ in after]
    kept = [each for each in before if not any(f"{each[0]}.".startswith(f"{path}.") for path in new)]
    return [*kept, *after]


class Scenario:
    """A scenario that has been read: an immutable value that is changed by `replace` and can be pickled.

    ``pipesim.read(path_or_dict)`` makes one; every command takes it, and has a method here.
    """

    def __init__(self, name: str, text: str, changes: Sequence[tuple[str, str]] = (),
                 made: Mapping[int, _schedules.Schedule] | None = None,
                 parsed: Optional[_pipesim.ScenarioText] = None) -> None:
        self._name = name
        self._text = text
        self._changes = list(changes)
        self._made = dict(made or {})
        self._parsed = parsed or _pipesim.ScenarioText(name, text)  # shared by all that replace makes of it
        self._read = self._parsed.read(self._changes)
        self._orders: list[str] = []
        for index, each in self._made.items():
            self._read, order = _schedules.insert(self._read, index, each)
            self._orders.append(order)

    @property
    def file(self) -> str:
        """The path of its file, or "<dict>"."""
        return self._read.file

    @property
    def schedules(self) -> list[str]:
        """The names of its schedules, in their order."""
        return self._read.schedules

    @property
    def devices(self) -> int:
        """Pipeline devices: pipeline_model_parallel_size, p of the docs."""
        return self._read.devices

    @property
    def microbatches(self) -> int:
        """Microbatches of one pipeline in an iteration: num_microbatches, m of the docs."""
        return self._read.microbatches

    @property
    def gpus(self) -> int:
        """GPUs of all ranks: tensor x context x pipeline x data."""
        return self._read.gpus

    @property
    def pipeline_model_parallel_size(self) -> int:
        """Pipeline devices."""
        return self._read.devices

    @property
    def tensor_model_parallel_size(self) -> int:
        """Tensor-parallel ranks of a device."""
        return self._read.tensor

    @property
    def context_parallel_size(self) -> int:
        """Context-parallel ranks of a device."""
        return self._read.context

    @property
    def data_parallel_size(self) -> int:
        """Data-parallel replicas."""
        return self._read.data

    @property
    def micro_batch_size(self) -> Optional[int]:
        """Samples of a microbatch; None where the scenario does not say."""
        return self._read.micro_batch_size

    @property
    def seq_length(self) -> Optional[int]:
        """Tokens of a sample; None where the scenario does not say."""
        return self._read.seq_length

    @property
    def model(self) -> Optional[str]:
        """The model's name; None where costs are given."""
        return self._read.model

    @property
    def cluster(self) -> Optional[str]:
        """The cluster's name; None without one of the catalogue."""
        return self._read.cluster

    @property
    def text(self) -> str:
        """The YAML that it was read from, without changes."""
        return self._text

    @property
    def changes(self) -> list[tuple[str, str]]:
        """Changes since then, as path and value of the command line's path.to.key=value."""
        return list(self._changes)

    def replace(self, changes: Mapping[str, Any] | None = None, /, **keywords: Any) -> Scenario:
        """The same scenario with other values.

        A section is a keyword, and its dict changes the keys that it has: ``replace(batch={"num_microbatches": 8})``,
        as ``replace(batch__num_microbatches=8)`` and ``replace({"batch.num_microbatches": 8})`` do. A dict with a
        ``kind``, a schedule and a sweep replace what stands there. Raises InputError.
        """
        given = changes_of(changes, keywords)
        if not given:
            return self
        made = self._made
        if "schedule" in given:
            given["schedule"], made = _without_functions(given["schedule"])
        return Scenario(self._name, self._text, _over(self._changes, texts_of(given)), made, self._parsed)

    def _is_argument(self, key: str) -> bool:
        """True if the key, "schedule.NAME", is an argument of the functions of its own schedules."""
        return bool(self._made) and key.startswith("schedule.")

    def set(self, setting: Mapping[str, Any]) -> Scenario:
        """The same with other values by dotted keys; "schedule.NAME" is an argument of its own schedules' functions."""
        setting = _by_key(setting)
        own = {key.partition(".")[2]: value for key, value in setting.items() if self._is_argument(key)}
        rest = {key: value for key, value in setting.items() if not self._is_argument(key)}
        made = {index: each.using(**own) for index, each in self._made.items()} if own else self._made
        return Scenario(self._name, self._text, _over(self._changes, texts_of(changes_of(rest, {}))), made, self._parsed)

    def simulate(self, *, numbers_only: bool = False) -> Comparison:
        """`pipesim.simulate` of this scenario."""
        from ._results import Comparison

        return Comparison(self, numbers_only)

    @overload
    def search(self, *, points: int, **options: Any) -> Rows[Found]: ...
    @overload
    def search(self, *, points: None = None, **options: Any) -> Found: ...

    def search(self, *, points: Optional[int] = None, **options: Any) -> Union[Found, Rows[Found]]:
        """`pipesim.search` of this scenario."""
        from ._search import search

        return search(self, **options) if points is None else search(self, points=points, **options)

    def sweep(self, grid: Mapping[str, Sequence[Any]] | None = None, **options: Any) -> Sweep:
        """`pipesim.sweep` over a grid of this scenario's keys: ``sweep({"batch.num_microbatches": [8, 16]})``."""
        from ._sweep import sweep

        return sweep(self, grid=grid, **options)

    def sensitivity(self, factors: Sequence[float] = (0.5, 2)) -> Document[Row]:
        """`pipesim.sensitivity` of this scenario."""
        from ._commands import sensitivity

        return sensitivity(self, factors=factors)

    def compare(self, other: Optional[Scenario] = None) -> Orders:
        """`pipesim.compare` of this scenario's two schedules, or of its one and the other's."""
        from ._commands import compare

        return compare(self, other)

    def improve(self, **options: Any) -> Improved:
        """`pipesim.improve` of this scenario's schedule."""
        from ._commands import improve

        return improve(self, **options)

    def prove(self, **options: Any) -> Proof:
        """`pipesim.prove` of this scenario's schedule."""
        from ._commands import prove

        return prove(self, **options)

    def goodput(self, tokens: Union[str, float], **options: Any) -> Document[Row]:
        """`pipesim.goodput` of this scenario."""
        from ._commands import goodput

        return goodput(self, tokens=tokens, **options)

    def export(self, format: str = "torch") -> str:
        """`pipesim.export` of this scenario's schedule."""
        from ._commands import export

        return export(self, format=format)

    def workbench(self) -> Page:
        """`pipesim.workbench` of this scenario."""
        from ._commands import workbench

        return workbench(self)

    def report(self) -> Page:
        """`pipesim.report` of this scenario."""
        from ._commands import report

        return report(self)

    def _key(self, surroundings: str) -> str:
        """By what a sweep's folder finds the numbers of a scenario.

        Equal for equal text, equal changes, equal orders that functions made and equal surroundings: the build, and
        the files that text and changes name. The functions themselves do not count.
        """
        return hashlib.sha256(repr((surroundings, self._text, self._changes, self._orders)).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self._state() == other._state()

    def __hash__(self) -> int:
        return hash((self._name, self._text, tuple(self._changes)))

    def _state(self) -> tuple[Any, ...]:
        return self._name, self._text, self._changes, self._made

    def __reduce__(self) -> tuple[Any, ...]:
        made = {index: _schedules.pickled(each, self.devices, self.microbatches) for index, each in self._made.items()}
        return Scenario, (self._name, self._text, self._changes, made)

    def __repr__(self) -> str:
        changed = "".join(f" {path}={value}" for path, value in self._changes)
        return f"<pipesim.Scenario {self.file}{changed}: {', '.join(self.schedules)}>"


Source = Union[str, "os.PathLike[str]", Mapping[str, Any], Scenario]


def _without_functions(value: Any) -> tuple[Any, dict[int, _schedules.Schedule]]:
    """The value of `schedule` with placeholders, and what they stand for."""
    alone = _schedules.as_schedule(value)
    if alone is not None:
        return _schedules.placeholder(alone), {0: alone}
    if not isinstance(value, (list, tuple)):
        return value, {}
    made = {i: found for i, each in enumerate(value) if (found := _schedules.as_schedule(each)) is not None}
    return [_schedules.placeholder(made[i]) if i in made else each for i, each in enumerate(value)], made


def text_and_changes(source: Source, given: dict[str, Any]) -> tuple[str, str, dict[int, _schedules.Schedule]]:
    """The name of a source, its text, and the schedules made in Python; those in `given` get placeholders."""
    made: dict[int, _schedules.Schedule] = {}
    if isinstance(source, Mapping) and "schedule" in source:
        value, made = _without_functions(source["schedule"])
        source = {**source, "schedule": value}
    if "schedule" in given:
        given["schedule"], made = _without_functions(given["schedule"])
    if isinstance(source, Mapping):
        return "<dict>", _yaml.block(source), made
    if isinstance(source, Scenario):
        return source._name, source._text, made if "schedule" in given else source._made
    path = os.fspath(source)
    return path, _pipesim.input_text(path), made


def read(source: Source, changes: Mapping[str, Any] | None = None, /, **keywords: Any) -> Scenario:
    """Reads a scenario once, for every command that takes one.

    source: a path of a YAML file; a dict of the same keys (docs/reference/scenario.md), quantities with
      their units as text ("18.5 ms", "3.7 GiB"); or a scenario. In `cost` a float, an array of floats or a
      timedelta is in seconds, in `memory` a float is in bytes.
    changes, keywords: replace values, as `Scenario.replace` takes them.

    `schedule` may hold functions, lists and building blocks (`pipesim.schedule`). Raises InputError.
    """
    if isinstance(source, Scenario):
        return source.replace(changes, **keywords)
    given = changes_of(changes, keywords)
    name, text, made = text_and_changes(source, given)
    return Scenario(name, text, texts_of(given), made)


def scenario(source: Source, changes: Mapping[str, Any] | None = None, /, **keywords: Any) -> Scenario:
    """The same as `read`."""
    return read(source, changes, **keywords)
