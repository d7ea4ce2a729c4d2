"""Searches under a limit on activation memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional, Union, overload

from . import _arguments, _pipesim, _schedules
from ._errors import InfeasibleError
from ._metrics import FoundMetrics
from ._rows import Row, Rows
from ._scenario import Source, read

_COLUMNS = ("limit_over_p_microbatches", "limit_bytes", "schedule", "refined", "makespan_from_rest_seconds", "bubble_rate",
            "peak_activation_bytes", "bound_seconds")


class Order(Row):
    """An order of passes that was found, whose time and memory are known."""

    @property
    def passes(self) -> list[list[str]]:
        """Every device's passes in their order, as text."""
        passes: list[list[str]] = self["passes"]
        return passes

    def _name(self) -> str:
        return str(self["label"])

    def as_schedule(self) -> _schedules.Schedule:
        """The order for `schedule` of a scenario. It keeps the copies to the host."""
        made: _schedules.Schedule = _schedules.schedule(self.passes, name=self._name(), chunks=self["chunks"])
        return made


class Found(Order, FoundMetrics):
    """A program found by search: the keys of `pipesim search --csv`, and ``passes``, the order of every device.

    Times are seconds, memory is bytes.
    """

    @property
    def schedule(self) -> str:
        """The schedule that it is, or was refined from."""
        return str(self["schedule"])

    def _name(self) -> str:
        return f"found-{self.schedule}"

    def __repr__(self) -> str:
        return (f"<pipesim.Found {self.schedule}{' (refined)' if self['refined'] else ''}: "
                f"{self.makespan_from_rest_seconds:.6g} s, {self.peak_activation_bytes:.6g} bytes>")


@overload
def search(source: Source, changes: Mapping[str, Any] | None = None, /, *, points: int, **options: Any) -> Rows[Found]: ...
@overload
def search(source: Source, changes: Mapping[str, Any] | None = None, /, *, points: None = None, **options: Any) -> Found: ...


def search(source: Source, changes: Mapping[str, Any] | None = None, /, *, memory_limit: Union[float, str] = 1,
           points: Optional[int] = None, schedules: Sequence[str] = (), max_chunks: int = 2, max_splits: int = 1,
           offload: bool = False, recompute: bool = False, refine: bool = True, effort: Optional[float] = None,
           seed: int = 1, max_passes: float = 2**30, progress: Optional[Callable[[int, int], Any]] = None,
           **keywords: Any) -> Any:
    """Finds the schedule with the least time under a limit on activation memory, as `pipesim search` does.

    memory_limit: a multiple of p times the activation of one microbatch on a device, or all that a GPU may hold: "72 GiB".
    points: so many limits instead, from one microbatch to where more memory does not help; the frontier.
    progress: of a frontier, called as progress(limits done, limits) some ten times a second.
    The others are the command's options (docs/how-to/search.md); keywords that are none change the scenario.

    Returns a Found, or for a frontier Rows of them. Ctrl-C ends the search and raises KeyboardInterrupt.
    """
    asked = read(source, changes, **keywords)
    rows, left_out = _pipesim.search(
        asked._read, str(memory_limit), None if points is None else _arguments.whole("points", points),
        _arguments.texts("schedules", schedules), _arguments.whole("max_chunks", max_chunks),
        _arguments.whole("max_splits", max_splits), _arguments.flag("offload", offload),
        _arguments.flag("recompute", recompute), _arguments.flag("refine", refine),
        None if effort is None else _arguments.number("effort", effort), _arguments.whole("seed", seed),
        _arguments.number("max_passes", max_passes), progress)
    if points is None and not rows:
        raise InfeasibleError("\n  left out: ".join([f"no schedule fits into a limit of {memory_limit}", *left_out]))
    found = [Found(row) for row in rows]
    return found[0] if points is None else Rows(found, _COLUMNS, left_out)
