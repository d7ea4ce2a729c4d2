"""One number over a swept key: a line per schedule, published points hollow on dotted lines."""
import argparse
import re

from matplotlib.axes import Axes
from matplotlib.figure import Figure

import series
import style
from tables import InputError, Quantity, Table, quantity

MOST_TICKS = 8  # values of x that each have a tick of their own
LARGE_RANGE = 20  # of values on the y axis: by factors beyond


def draw(inputs: list[tuple[str, str]], asked: argparse.Namespace) -> Figure:
    points = series.read(inputs, asked)
    x, columns = _x(points.table, asked.x, points.panel, points.column), (asked.y or "iteration_seconds").split(",")
    for column in columns:
        points.table.require(column)
    base_column, _, base = asked.relative_to.partition("=")
    if base_column == points.column and base in points.series:
        points.series.remove(base)  # all zeros
    panels = points.panels()
    wide = len(columns) if len(columns) > 1 else 3
    figure, axes = style.panels(len(panels) * len(columns), asked.width, 2.5, columns=wide)
    places = [(panel, column) for panel in panels for column in columns]
    for index, (ax, ((title, table, beside), column)) in enumerate(zip(axes, places)):
        shown = quantity(column)
        if asked.relative_to:
            table, beside = table.relative_to(asked.relative_to, column), None
            shown = Quantity(f"change of {shown.name}", "%", 0.01)
        places_of_x = None if table.is_numeric(x) else table.values(x)
        series.one_per_place(points, table, [x, points.column], lambda row: (row[points.column], row[x]))
        if beside and beside.has_values(column):
            _lines(ax, points, beside, (x, column), shown.scale, places_of_x, True)
        _lines(ax, points, table, (x, column), shown.scale, places_of_x, False)
        if asked.band:
            _bands(ax, points, table, (x, column), shown.scale, places_of_x)
        if asked.relative_to:
            ax.axhline(0, color="#555555", linewidth=0.8, zorder=1)
        _scales(ax, table, x, places_of_x)
        style.title(ax, title)
        ax.set_xlabel(quantity(x).label())
        if len(columns) > 1 or ax.get_subplotspec().is_first_col():
            ax.set_ylabel(style.label(shown.label(), 2.0))
    style.legend_below(figure, points.legend(lines=not places_of_x or _in_order(places_of_x)))
    return figure


def _in_order(values: list[str]) -> bool:
    """True where names grow along the axis, as 32k and 64k do: a line may join their points."""
    return all(re.fullmatch(r"\d+[kM]?", value) for value in values)


def _scales(ax: Axes, table: Table, x: str, places: list[str] | None) -> None:
    """Ticks where points stand, as far as they are few; both axes by factors where values grow so."""
    if places:
        style.categories(ax, places)
        ax.margins(x=0.1)
    else:
        numbers = [table.number({x: value}, x) for value in table.values(x)]
        by_factors = _grows_by_factors(table, x)
        if by_factors:
            ax.set_xscale("log", base=2)
        if by_factors or len(numbers) <= MOST_TICKS and _apart(numbers):
            ax.set_xticks(numbers, table.values(x))
            ax.minorticks_off()
    heights = [height for drawn in ax.lines for height in drawn.get_ydata() if len(drawn.get_xdata()) > 1]
    if heights and min(heights) > 0 and max(heights) > LARGE_RANGE * min(heights):
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter(lambda value, _: "")


def _apart(numbers: list[float]) -> bool:
    """True if there is room for labels of all numbers."""
    span = numbers[-1] - numbers[0]
    return all(after - before > span / MOST_TICKS for before, after in zip(numbers, numbers[1:]))


def _x(table: Table, asked: str, panel: str, series_of: str) -> str:
    if asked:
        return table.require(asked)
    free = table.varying([series_of, panel, "input"])
    if len(free) == 1:
        return free[0]
    raise InputError(f"{table.source}:1:1: " + (f"several swept keys ({', '.join(free)}): choose one with --x"
                                                 if free else "no key is swept: choose a column with --x"))


def _grows_by_factors(table: Table, x: str) -> bool:
    values = [table.number({x: value}, x) for value in table.values(x)]
    return len(values) > 2 and values[0] > 0 and values[-1] / values[-2] > 1.9 and values[1] / values[0] > 1.9


def _points(points: series.Points, table: Table, of: tuple[str, str], places: list[str] | None,
            name: str) -> list[tuple[float, dict[str, str]]]:
    """Place on the axis and row, from the left."""
    x, y = table.require(of[0]), of[1]
    own = [(places.index(row[x]) if places else table.number(row, x), row) for row in table.rows
           if row[points.column] == name and table.number(row, y) is not None and (places is None or row[x] in places)]
    return sorted(own, key=lambda each: each[0])


def _lines(ax: Axes, points: series.Points, table: Table, of: tuple[str, str], scale: float,
           places: list[str] | None, hollow: bool) -> None:
    joined = places is None or _in_order(places)
    for index, name in enumerate(points.series):
        own = _points(points, table, of, places, name)
        ax.plot([at for at, _ in own], [table.number(row, of[1]) / scale for _, row in own], color=style.colour(index),
                linestyle="none" if not joined else ":" if hollow else style.line(index), marker=style.mark(index),
                markerfacecolor="none" if hollow else style.colour(index), markeredgecolor=style.colour(index),
                markersize=6.5 if hollow else 4.5, linewidth=1.0 if hollow else 1.3, zorder=3 if hollow else 2)


def _bands(ax: Axes, points: series.Points, table: Table, of: tuple[str, str], scale: float,
           places: list[str] | None) -> None:
    for index, name in enumerate(points.series):
        for at, row in _points(points, table, of, places, name):
            if band := table.band(row, of[1]):
                ax.vlines(at, band[0] / scale, band[1] / scale, color=style.colour(index), linewidth=0.7, alpha=0.5,
                          zorder=1)
