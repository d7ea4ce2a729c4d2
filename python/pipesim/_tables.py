"""Rows as frames of pandas, HTML and text, by the units of docs/reference/metrics.md."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _pipesim

# By name what docs/reference/metrics.md says of a metric: label, title, unit, better, band, digits, definition.
METRICS: dict[str, dict[str, Any]] = {each["name"]: each for each in json.loads(_pipesim.metrics())}

# Keys that a table has as columns of their own, or not at all.
_LEFT_OUT = ("band", "ensemble", "contended", "outcome")
_SIZES = {"tensor_model_parallel_size": "tp", "context_parallel_size": "cp", "pipeline_model_parallel_size": "pp",
          "virtual_pipeline_model_parallel_size": "vpp", "data_parallel_size": "dp", "micro_batch_size": "mbs"}
_TEXTS = ("schedule", "options", "recompute", "label", "reason", "refusal", "cluster", "registered_schedule")


def text_of(name: str, value: Any) -> str:
    """A value for people: "18.5 ms", "12.3%", "3.7 GiB"."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    if name in METRICS:
        return _pipesim.metric_text(name, float(value))
    for suffix, unit in (("_seconds", "s"), ("_bytes", "B")):
        if name.endswith(suffix):
            return _pipesim.human(float(value), unit)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as columns: a dict within it becomes one for each key, a list text."""
    columns: dict[str, Any] = {}
    for key, value in row.items():
        if key in _LEFT_OUT:
            continue
        if isinstance(value, Mapping):
            columns.update({f"{key}.{name}": each for name, each in flat(value).items()})
        elif isinstance(value, (list, tuple)):
            columns[key] = ", ".join(map(str, value))
        else:
            columns[key] = value
    return columns


def _column(name: str, values: list[Any]) -> Any:
    """The values in the type that fits them all, with a missing value for None."""
    import pandas

    unit = METRICS[name]["unit"] if name in METRICS else None
    there = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in there) and (there or unit == "flag"):
        return pandas.array(values, dtype="boolean")
    if unit == "fit" or name in _TEXTS or any(isinstance(value, str) for value in there):
        return pandas.array([None if value is None else str(value) for value in values], dtype="string")
    if there and all(isinstance(value, int) for value in there):
        return pandas.array(values, dtype="int64" if len(there) == len(values) else "Int64")
    return pandas.array([float("nan") if value is None else float(value) for value in values], dtype="float64")


def frame_of(rows: Iterable[Mapping[str, Any]]) -> Any:
    """A pandas.DataFrame of the rows; needs pandas."""
    import pandas

    flattened = [flat(row) for row in rows]
    names = dict.fromkeys(name for row in flattened for name in row)
    return pandas.DataFrame({name: _column(name, [row.get(name) for row in flattened]) for name in names})


def heading(name: str) -> str:
    """A column's name for people: the label of a metric, `plan`'s word for a size, or the key."""
    return str(METRICS[name]["label"]) if name in METRICS else _SIZES.get(name, name.replace("_", " "))


def _shown(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[str]:
    return [name for name in columns if any(row.get(name) is not None for row in rows)]


def html_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """An HTML table of the columns that have a value, numbers with units and aligned to the right."""
    names = _shown(rows, columns)

    def cell(name: str, value: Any) -> str:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return f"<td{' class=n' if number else ''}>{html.escape(text_of(name, value))}</td>"

    head = "".join(f"<th title=\"{html.escape(name)}\">{html.escape(heading(name))}</th>" for name in names)
    body = "".join("<tr>" + "".join(cell(name, row.get(name)) for name in names) + "</tr>" for row in rows)
    return f"{STYLE}<table class=pipesim><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def plain_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """The same as lines of text."""
    names = _shown(rows, columns)
    lines = [[heading(name) for name in names]] + [[text_of(name, row.get(name)) for name in names] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


# The colours and the font of the pages, light and dark; a cell scrolls where a table is wider.
STYLE = ("<style>table.pipesim{border-collapse:collapse;font:13px/1.5 system-ui,sans-serif;display:block;overflow-x:auto;"
         "max-width:100%;color:inherit;background:none}"
         "table.pipesim th{text-align:left;font-weight:600;border-bottom:1px solid #8888;padding:2px 12px 2px 0}"
         "table.pipesim td{text-align:left;border-bottom:1px solid #8883;padding:2px 12px 2px 0;white-space:nowrap}"
         "table.pipesim td.n{text-align:right;font-variant-numeric:tabular-nums}</style>")
