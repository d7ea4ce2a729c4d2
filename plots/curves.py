"""One number over a swept key: a line per schedule, published points hollow on dotted lines."""
import argparse

from matplotlib.axes import Axes
from matplotlib.figure import Figure

import series
import style
from tables import InputError, Quantity, Table, quantity


def draw(inputs: list[tuple[str, str]], asked: argparse.Namespace) -> Figure:
    points = series.read(inputs, asked)
    x, columns = _x(points.table, asked.x, points.panel, points.column), (asked.y or "iteration_seconds").split(",")
    for column in columns:
        points.table.require(column)
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
        if places_of_x:
            ax.set_xticks(range(len(places_of_x)), places_of_x)
        elif _grows_by_factors(table, x):
            ax.set_xscale("log", base=2)
            ax.set_xticks([table.number({x: value}, x) for value in table.values(x)], table.values(x))
            ax.minorticks_off()
        ax.set_title(title)
        ax.set_xlabel(quantity(x).label())
        if len(columns) > 1 or ax.get_subplotspec().is_first_col():
            ax.set_ylabel(shown.label())
    style.legend_below(figure, points.legend())
    return figure


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


def _lines(ax: Axes, points: series.Points, table: Table, of: tuple[str, str], scale: float,
           places: list[str] | None, hollow: bool) -> None:
    x, y = table.require(of[0]), of[1]
    for index, name in enumerate(points.series):
        own = []
        for row in table.rows:
            value = table.number(row, y)
            if row[points.column] == name and value is not None and (places is None or row[x] in places):
                own.append((places.index(row[x]) if places else table.number(row, x), value / scale))
            band = table.band(row, y)
            if own and band and value is not None and not hollow and row[points.column] == name:
                ax.vlines(own[-1][0], band[0] / scale, band[1] / scale, color=style.colour(index), linewidth=0.7,
                          alpha=0.5, zorder=1)
        own.sort()
        ax.plot([at for at, _ in own], [value for _, value in own], color=style.colour(index),
                linestyle=":" if hollow else style.line(index), marker=style.mark(index),
                markerfacecolor="white" if hollow else style.colour(index), markeredgecolor=style.colour(index),
                markersize=4.5, linewidth=1.0 if hollow else 1.3, zorder=3 if hollow else 2)
