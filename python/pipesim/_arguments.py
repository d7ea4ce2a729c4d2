"""Arguments of functions, checked as the options of the commands are."""

from __future__ import annotations

import itertools
import numbers
import operator
import reprlib
from collections.abc import Iterable
from typing import Any, NoReturn

from . import _pipesim
from ._errors import InputError

_RANGES: dict[str, tuple[Any, Any]] = _pipesim.ranges()

_LONGEST_LIST = 10_000  # of a list that is an argument

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80


def shown(value: Any) -> str:
    """The value as Python writes it, cut to what a message has room for."""
    return _SHORT.repr(value)


def refuse(name: str, expected: str, value: Any) -> NoReturn:
    raise InputError(f"{name}: expected {expected}, not {shown(value)}", f"<{name}>")


def _within(name: str, what: str, value: Any, found: Any) -> Any:
    least, most = _RANGES[name]
    if found is None or not least <= found <= most:
        refuse(name, f"{what} from {least:.15g} to {most:.15g}", value)
    return found


def whole(name: str, value: Any) -> int:
    """A whole number within the argument's range."""
    try:
        found = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = None
    return int(_within(name, "a whole number", value, found))


def number(name: str, value: Any) -> float:
    """A number within the argument's range."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return float(_within(name, "a number", value, value if real else None))


def taken(name: str, expected: str, value: Any) -> list[Any]:
    """The list that a value is, or yields, which may never end."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        refuse(name, expected, value)
    taken = list(itertools.islice(value, _LONGEST_LIST + 1))
    if len(taken) > _LONGEST_LIST:
        refuse(name, f"at most {_LONGEST_LIST} entries", value)
    return taken


def numbers_of(name: str, value: Any) -> list[float]:
    """At least one number, each within the argument's range."""
    found = [number(name, each) for each in taken(name, "a list of numbers", value)]
    if not found:
        refuse(name, "at least one number", value)
    return found


def flag(name: str, value: Any) -> bool:
    """True or False, also NumPy's."""
    if type(value).__name__ not in ("bool", "bool_"):
        refuse(name, "True or False", value)
    return bool(value)


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        refuse(name, "text", value)
    return value


def texts(name: str, value: Any) -> list[str]:
    """A list of texts; one alone is a list too."""
    if isinstance(value, str):
        return [value]
    return [text(name, each) for each in taken(name, "a list of texts", value)]
