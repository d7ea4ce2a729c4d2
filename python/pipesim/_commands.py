"""The commands that take a scenario, as functions: what they print or write comes back as values."""

from __future__ import annotations

import datetime
import json as _json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, Union

from . import _arguments, _drawings, _pipesim, _program
from ._errors import InputError
from ._rows import Document, Row, Rows
from ._scenario import Scenario, Source, read
from ._search import Order


class Page(str):
    """A page of HTML that needs nothing else; a notebook shows it in a frame."""

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the page to a file."""
        with open(path, "w", encoding="utf-8") as out:
            out.write(self)

    def _repr_html_(self) -> str:
        import html

        return f'<iframe style="width:100%;height:640px;border:0" srcdoc="{html.escape(self)}"></iframe>'

    def __repr__(self) -> str:
        return f"<pipesim.Page of {len(self)} characters>"


class Orders(Row):
    """Two orders side by side: the keys of `pipesim compare --json`; ``text``, ``svg`` and ``html`` are its outputs."""

    def __init__(self, made: _pipesim.Orders) -> None:
        self.json: str = made.json()
        self.text: str = made.text()
        self.svg: str = made.svg()
        self.html = Page(made.html())
        super().__init__(_json.loads(self.json))

    def __reduce__(self) -> tuple[Any, ...]:
        return Orders.__new__, (Orders,), self.__dict__

    def _repr_html_(self) -> str:
        return _drawings.inline(self.svg)

    def __repr__(self) -> str:
        return self.text.rstrip("\n")


class Improved(Order):
    """An order that was refined: ``iteration_seconds`` and ``peak_activation_bytes`` of it and, with ``_before``, of
    what it was; ``bound_seconds`` is what no order of this placement beats, to hold against ``time_seconds``."""


class Proof(Order):
    """How near an order is to the best: ``proven``, ``time_seconds`` of the best known, ``bound_seconds`` that nothing
    beats, their ``gap`` as a share, and ``ended``, why the search did."""


def sensitivity(source: Source, changes: Mapping[str, Any] | None = None, /, *, factors: Sequence[float] = (0.5, 2),
                **keywords: Any) -> Document[Row]:
    """Multiplies each number of a scenario and measures the effects, like `pipesim sensitivity`.

    Returns a row for each schedule, value and factor: ``what``, ``key``, ``factor``, and the resulting metrics.
    """
    document, text, refused = _pipesim.sensitivity(read(source, changes, **keywords)._read, _arguments.numbers_of("factors", factors))
    rows = [Row({"schedule": one["schedule"], **effect, **(effect["outcome"] or {})})
            for one in _json.loads(document)["sensitivity"] for effect in one["effects"]]
    return Document(document, text, rows, ("schedule", "what", "factor", "iteration_seconds", "bubble_rate",
                                           "peak_memory_bytes"), refused)


def goodput(source: Source, changes: Mapping[str, Any] | None = None, /, *, tokens: Union[str, float], runs: int = 200,
            seed: int = 1, price_per_gpu_hour: Optional[float] = None, max_steps: float = 4e9,
            **keywords: Any) -> Document[Row]:
    """How long training takes with failures, checkpoints and slow nodes, as `pipesim goodput` does.

    tokens: of training in all, "15T" or a number. runs: training runs to simulate, from `seed` on. max_steps: the
    most checkpoints and failures of all runs; more are refused.
    Returns a row for each schedule, as the document's ``goodput`` has it.
    """
    asked = tokens if isinstance(tokens, str) else f"{_arguments.number('tokens', tokens):.0f}"
    price = None if price_per_gpu_hour is None else _arguments.number("price_per_gpu_hour", price_per_gpu_hour)
    document, text, refused = _pipesim.goodput(
        read(source, changes, **keywords)._read, asked, _arguments.whole("runs", runs), _arguments.whole("seed", seed),
        price, _arguments.number("max_steps", max_steps))
    rows = [Row(each) for each in _json.loads(document)["goodput"]]
    return Document(document, text, rows, ("schedule", "goodput", "gpu_hours", "price"), refused)


def compare(a: Source, b: Source | None = None, /, **keywords: Any) -> Orders:
    """Two orders side by side, as `pipesim compare` does: where they part, who waits for what.

    a, b: a scenario with two schedules, or two of one; keywords change both.
    """
    other = None if b is None else read(b, **keywords)._read
    return Orders(_pipesim.Orders(read(a, **keywords)._read, other))


def improve(source: Source, changes: Mapping[str, Any] | None = None, /, *,
            memory_limit: Union[float, str, None] = None, effort: float = 2e7, seed: int = 1, **keywords: Any) -> Improved:
    """Refines an order on its own placement within a memory limit, as `pipesim improve` does.

    memory_limit: as `search` takes it; without one, what the order itself holds. effort: passes to evaluate.
    """
    limit = None if memory_limit is None else str(memory_limit)
    return Improved(_pipesim.improve(read(source, changes, **keywords)._read, limit, _arguments.number("effort", effort),
                                     _arguments.whole("seed", seed)))


def prove(source: Source, changes: Mapping[str, Any] | None = None, /, *,
          memory_limit: Union[float, str, None] = None, effort: float = 2e7, seed: int = 1, seconds: int = 60,
          **keywords: Any) -> Proof:
    """The best order of a small placement, proven by CBC, or how far from it one is, as `pipesim prove` does.

    seconds: CBC's, at most. The others are those of `improve`.
    """
    limit = None if memory_limit is None else str(memory_limit)
    return Proof(_pipesim.prove(read(source, changes, **keywords)._read, limit, _arguments.number("effort", effort),
                                _arguments.whole("seed", seed), _arguments.whole("seconds", seconds)))


def export(source: Source, changes: Mapping[str, Any] | None = None, /, *, format: str = "torch", **keywords: Any) -> str:
    """A scenario's schedule for another program, as `pipesim export` writes it.

    format: torch, csv, megatron, megatron-bridge or torchtitan.
    """
    return _pipesim.export(read(source, changes, **keywords)._read, _arguments.text("format", format))


def workbench(source: Source, changes: Mapping[str, Any] | None = None, /, **keywords: Any) -> Page:
    """A page on which a scenario's schedules are changed by hand, as `pipesim workbench` writes it."""
    asked = read(source, changes, **keywords)
    return Page(_pipesim.workbench(asked._read, [f"{path}={value}" for path, value in asked.changes]))


def report(*sources: Source) -> Page:
    """Results as one page of HTML, as `pipesim report` writes it.

    sources: scenarios; or paths of documents of `run --json` or `plan --json`, or of a sweep's folder.
    """
    paths = [os.fspath(each) for each in sources if isinstance(each, (str, os.PathLike))]
    if len(paths) == len(sources) and any(path.endswith(".json") or os.path.isdir(path) for path in paths):
        return Page(_program.output("report", *paths, "-o", "-"))
    asked = [read(each) for each in sources]
    texts = [(each.text, [f"{path}={value}" for path, value in each.changes]) for each in asked]
    return Page(_pipesim.report([each._read for each in asked], texts))


class Anchor(Rows[Row]):
    """Measured steps against simulated ones: a row per run, ``factors``, and ``yaml``, the file for `cost.anchor`."""

    def __init__(self, factors: Mapping[str, float], rows: Iterable[Mapping[str, Any]], unidentified: Sequence[str],
                 yaml: str, text: str) -> None:
        super().__init__([Row(row) for row in rows], ("scenario", "measured_seconds", "simulated_seconds",
                                                      "anchored_seconds"))
        self.factors = dict(factors)
        self.unidentified = list(unidentified)
        self.yaml = yaml
        self.text = text

    def __repr__(self) -> str:
        return self.text.rstrip("\n")


def anchor(measured: Iterable[tuple[Source, Union[float, str, datetime.timedelta]]]) -> Anchor:
    """From measured steps the factors that simulated ones are off by, as `pipesim anchor` finds them.

    measured: pairs of a scenario with one schedule and what its step takes: seconds, "13.9 s" or a timedelta.
    """
    def seconds(value: Union[float, str, datetime.timedelta]) -> float:
        if isinstance(value, datetime.timedelta):
            return value.total_seconds()
        found = _pipesim.quantity(value) if isinstance(value, str) else _arguments.number("measured", value)
        if found is None or not found > 0:
            _arguments.refuse("measured", "the seconds of a step, such as 13.9 or '13.9 s'", value)
        return found

    runs = [(read(source)._read, seconds(value)) for source, value in measured]
    if not runs:
        raise InputError("measured: expected at least one pair of a scenario and the seconds of its step", "<measured>")
    return Anchor(*_pipesim.anchor(runs))
