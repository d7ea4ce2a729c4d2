"""Shared parts of figures of several points: panels of a table, series in them, and published points beside."""
import argparse
import dataclasses
import re

from matplotlib.lines import Line2D

import style
from tables import CHOICE, InputError, Table, joined, quantity, read_table


@dataclasses.dataclass
class Points:
    """One table, and the published one beside it where there is one, for the same panels and series."""
    table: Table
    published: Table | None
    panel: str  # a column, or nothing
    column: str  # whose values the series are
    series: list[str]
    told_by: str = ""  # the column that tells filled points from hollow ones, where both are of one table
    filled: str = "pipesim"
    hollow: str = "published"

    def panels(self) -> list[tuple[str, Table, Table | None]]:
        """Title, and the rows of each; published rows without such a column are in every panel."""
        if not self.panel:
            return [("", self.table, self.published)]
        every = []
        for value in self.table.values(self.panel):
            beside = self.published
            if beside and self.panel in beside.columns:
                rows = [row for row in beside.rows if row[self.panel] == value]
                beside = dataclasses.replace(beside, rows=rows)
            every.append((panel_title(self.panel, value), self.table.only([f"{self.panel}={value}"]), beside))
        return every

    def names(self) -> list[str]:
        """Names of the series, without a common end."""
        return without_common_end(self.series)

    def legend(self, lines: bool = False) -> list[Line2D]:
        handles = [Line2D([], [], color=style.colour(i), marker=style.mark(i), linestyle=style.line(i) if lines else "none",
                          label=name) for i, name in enumerate(self.names())]
        if len(handles) == 1:
            handles = []  # nothing to tell apart
        if self.published:
            handles += [Line2D([], [], color="#555555", marker="o", linestyle="-" if lines else "none", label=self.filled),
                        Line2D([], [], color="#555555", marker="o", linestyle=":" if lines else "none",
                               markerfacecolor="white", label=self.hollow)]
        return handles


def panel_title(column: str, value: str) -> str:
    """A value with the name of its column; values that speak for themselves stand alone."""
    if column == "panel":  # made for this place
        return value
    if column.split(".")[-1] == "anchor":
        return "from first principles" if value in ("none", "") else "anchored"
    name = quantity(column).name
    if value in ("none", "false", "true", ""):
        return f"{name}: {value or 'none'}"
    return f"{name} {value}" if re.fullmatch(r"[\d.e+-]+( \S+)?", value) else value


def without_common_end(names: list[str]) -> list[str]:
    """Drops equal brackets behind all names, which tell nothing apart."""
    ends = {name.partition(" (")[2] for name in names}
    return [name.partition(" (")[0] for name in names] if len(ends) == 1 else names


def read(inputs: list[tuple[str, str]], asked: argparse.Namespace) -> Points:
    table = joined(inputs).only(asked.where)
    if asked.differences:
        base, share = map(float, asked.differences.split(","))
        table = dataclasses.replace(table, differences=(base, share))
    panel = table.require(asked.panel) if asked.panel else "input" if len(inputs) > 1 else ""
    if asked.series:
        column, *more = map(table.require, asked.series.split(","))
    else:
        column = table.require("schedule")
        more = choices_of_series(table, [panel, asked.x, asked.relative_to.partition("=")[0]])
    table = table.named(column, more)
    published = read_table(asked.published).named(column, more) if asked.published else None
    if published:
        published.require(column)
    every = table.rows + (published.rows if published else [])
    return Points(table, published, panel, column, list(dict.fromkeys(row[column] for row in every)))


def choices_of_series(table: Table, shown: list[str]) -> list[str]:
    """Choices besides the schedule that differ for one schedule and that the figure does not show otherwise."""
    return [choice for choice in CHOICE
            if (choice in table.keys or choice != "memory_limit" and table.differs_within(choice, ["schedule"]))
            and not any(column and table.together(choice, column) for column in shown)]


def one_per_place(points: Points, table: Table, shown: list[str], place) -> None:
    """Refuses two rows for one place of a figure: which key tells them apart has to be chosen."""
    seen = set()
    for row in table.rows:
        if place(row) in seen:
            hidden = ", ".join(f"'{key}'" for key in table.varying(shown + [points.panel])) or "nothing that it names"
            raise InputError(f"{table.source}:{row.get('', '1')}:1: several rows for one place of the figure; "
                             f"they differ in {hidden}: choose with --where, --panel or --x")
        seen.add(place(row))
