"""Speed against memory: a mark per point, the frontier as a line, published points hollow."""
import argparse

from matplotlib.axes import Axes
from matplotlib.figure import Figure

import series
import style
from tables import InputError, Table, quantity

SPEEDS = ("mfu", "samples_per_second_per_gpu", "iteration_seconds", "bubble_rate")
MEMORIES = ("peak_activation_bytes", "peak_memory_bytes")

MOST_LABELS = 16  # of points that are named where they stand, in a figure of one panel

Point = tuple[float, float, str]  # x, y in the units of the axes; series


def draw(inputs: list[tuple[str, str]], asked: argparse.Namespace) -> Figure:
    points = series.read(inputs, asked)
    x, y = _axis(points.table, asked.x, MEMORIES), _axis(points.table, asked.y, SPEEDS)
    panels = points.panels()
    figure, axes = style.panels(len(panels), asked.width, 2.7 if len(panels) > 1 else 3.4, sharey=True)
    for ax, (title, table, beside) in zip(axes, panels):
        if beside:
            _scatter(ax, points, _points(beside, points.column, x, y), y, hollow=True)
        _scatter(ax, points, _points(table, points.column, x, y), y, hollow=False)
        ax.set_title(title)
        ax.set_xlabel(quantity(x).label())
        ax.margins(0.08)
        ax.set_xlim(left=0)
        if ax.get_subplotspec().is_first_col():
            ax.set_ylabel(quantity(y).label())
    style.legend_below(figure, points.legend())
    return figure


def _axis(table: Table, asked: str, usual: tuple[str, ...]) -> str:
    if asked:
        return table.require(asked)
    for column in usual:
        if table.has_values(column):
            return column
    raise InputError(f"{table.source}:1:1: none of {', '.join(usual)} has values: choose a column with --x or --y")


def _points(table: Table, series_of: str, x: str, y: str) -> list[Point]:
    found = []
    for row in table.rows:
        at = table.number(row, table.require(x)), table.number(row, table.require(y))
        if None not in at:
            found.append((at[0] / quantity(x).scale, at[1] / quantity(y).scale, row[series_of]))
    return found


def frontier(points: list[Point], higher_is_better: bool) -> list[Point]:
    """Those that no other beats with as little memory, from the left."""
    sign = -1 if higher_is_better else 1
    best: list[Point] = []
    for point in sorted(points, key=lambda each: (each[0], sign * each[1])):
        if not best or sign * point[1] < sign * best[-1][1]:
            best.append(point)
    return best


def _scatter(ax: Axes, points: series.Points, found: list[Point], y: str, hollow: bool) -> None:
    line = frontier(found, quantity(y).higher_is_better)
    ax.step([point[0] for point in line], [point[1] for point in line], where="post", color="#777777",
            linestyle=":" if hollow else "-", linewidth=1.0, zorder=1)
    if not hollow and not points.panel and len(found) <= MOST_LABELS:
        for at, height, name in found:
            ax.annotate(name, (at, height), (4, 4), textcoords="offset points", fontsize=6.5)
    for index, name in enumerate(points.series):
        own = [point for point in found if point[2] == name]
        ax.plot([point[0] for point in own], [point[1] for point in own], linestyle="none", marker=style.mark(index),
                color=style.colour(index), markerfacecolor="white" if hollow else style.colour(index),
                markeredgewidth=1.1 if hollow else 0.4, markeredgecolor=style.colour(index) if hollow else "white",
                markersize=6, zorder=2 if hollow else 3)
