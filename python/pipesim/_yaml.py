"""Python's values as YAML, so that they are read, and refused, as files are."""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import InputError

# Text that YAML reads as itself without quotes; a colon only within a word, as in a path.
_PLAIN = re.compile(r"[A-Za-z0-9_./+-]([A-Za-z0-9_ ./+%*()-]*[A-Za-z0-9_./+%*)-])?")
_WORDS = {"", "null", "Null", "NULL", "~", "-"}


# Keys of costs and memory in which a float is in seconds, or bytes.
_SECONDS = {"forward", "backward_input", "backward_weight", "overlapped", "recompute", "output_forward", "output_backward",
            "input_forward", "input_backward", "copy_out", "copy_in", "transfer", "collective", "optimizer"}
_BYTES = {"activation", "weight_stash", "checkpoint", "output_activation"}


# No scenario is as deep or long.
_MOST_LEVELS = 50
_MOST_ENTRIES = 1 << 22


def check_depth(level: int, path: str) -> None:
    """Refuses what may hold itself."""
    if level > _MOST_LEVELS:
        raise InputError(f"<dict>: {path[:80]}...: nested more than {_MOST_LEVELS} deep", "<dict>")


def _checked(value: Any, level: int, path: str) -> None:
    """Refuses a list, dict or array that is nested too deep, or has more entries than anybody wants."""
    check_depth(level, path)
    entries = value.size if hasattr(value, "size") else len(value)
    if entries > _MOST_ENTRIES:
        raise InputError(f"<dict>: {path or 'scenario'}: {entries} entries; at most {_MOST_ENTRIES}", "<dict>")


def _unit(path: str) -> str:
    """The unit of a float at a path, behind a space; nothing where it has none."""
    section, _, key = path.replace("-", "_").partition(".")
    key = key.partition(".")[0]
    if section == "cost" and key in _SECONDS:
        return " s"
    return " B" if (section, key) == ("cost", "message") or (section == "memory" and key in _BYTES) else ""


def _scalar(value: Any, path: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "~"
    if isinstance(value, datetime.timedelta):
        return f"{value.total_seconds()!r} s"
    if isinstance(value, float):
        return repr(value) + _unit(path)
    if isinstance(value, int):
        return repr(value)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value not in _WORDS and not value.startswith(("- ", "---"))
        return value if plain else json.dumps(value, ensure_ascii=False)
    raise InputError(f"<dict>: {path or 'scenario'}: expected a number, text, list or dict, "
                     f"not {type(value).__name__}", "<dict>")


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def flow(value: Any, path: str = "", level: int = 0) -> str:
    """The value on one line."""
    if hasattr(value, "tolist"):
        _checked(value, level, path)
        value = value.tolist()  # NumPy's arrays and numbers
    if isinstance(value, Mapping):
        _checked(value, level, path)
        entries = (f"{_scalar(str(key), path)}: {flow(each, f'{path}.{key}'.lstrip('.'), level + 1)}"
                   for key, each in value.items())
        return "{" + ", ".join(entries) + "}"
    if _is_list(value):
        _checked(value, level, path)
        return "[" + ", ".join(flow(each, f"{path}.{i}", level + 1) for i, each in enumerate(value)) + "]"
    return _scalar(value, path)


def block(value: Mapping[str, Any], indent: str = "", path: str = "") -> str:
    """The dict as lines, a key on each; lists stand on one."""
    _checked(value, len(indent) // 2, path)
    lines = []
    for key, each in value.items():
        name = f"{indent}{_scalar(str(key), path)}:"
        inner = f"{path}.{key}".lstrip(".")
        if isinstance(each, Mapping) and each:
            lines.append(f"{name}\n{block(each, indent + '  ', inner)}")
        else:
            lines.append(f"{name} {flow(each, inner, len(indent) // 2)}\n")
    return "".join(lines)
