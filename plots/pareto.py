"""Speed against memory: a mark per point, the frontier as a line, published points hollow, those that do not fit crosses.

With --relative-to COLUMN=VALUE those rows are the hollow ones, and how the frontier moves is printed.
"""
import argparse
import dataclasses

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import series
import style
from labels import place
from tables import InputError, Table, quantity

SPEEDS = ("mfu", "samples_per_second_per_gpu", "iteration_seconds", "bubble_rate")
MEMORIES = ("peak_memory_bytes", "peak_activation_bytes")  # all of it where a GPU is known

LEAST = 1e-4  # of a speed, that makes it better: what rounding does is not
MOST_LABELS = 16  # of points that are all named where they stand, in a figure of one panel; else the frontier's are

Point = tuple[float, float, str]  # x, y in the units of the axes; series, or whatever tells them apart


def draw(inputs: list[tuple[str, str]], asked: argparse.Namespace) -> Figure:
    points = series.read(inputs, asked)
    x, y = _axis(points, asked.x, MEMORIES), _axis(points, asked.y, SPEEDS)
    if asked.relative_to:
        points = _against(points, asked.relative_to)
    panels = points.panels()
    figure, axes = style.panels(len(panels), asked.width, 2.7 if len(panels) > 1 else 3.4, sharey=True)
    crosses = False
    labels = []
    for ax, (title, table, beside) in zip(axes, panels):
        if beside:
            _scatter(ax, points, _points(beside, points.column, x, y), y, hollow=True)
        _scatter(ax, points, _points(table, points.column, x, y), y, hollow=False)
        if asked.band:
            _bands(ax, points, table, x, y)
        labels.append((ax, _labels(points, _points(table, points.column, x, y), y, len(panels) == 1)))
        unfit = _points(table, points.column, x, y, fits=False)
        _cross(ax, points, unfit)
        crosses = crosses or bool(unfit)
        if asked.relative_to:
            _print_moves(title, points, beside, table, (x, y))
        style.title(ax, title)
        ax.set_xlabel(quantity(x).label())
        ax.margins(0.08)
        ax.set_xlim(left=0)
        if ax.get_subplotspec().is_first_col():
            ax.set_ylabel(quantity(y).label())
    style.legend_below(figure, points.legend() + ([_cross_of("#555555", label="does not fit")] if crosses else []))
    place(figure, labels)
    return figure


def _axis(points: series.Points, asked: str, usual: tuple[str, ...]) -> str:
    """The usual one that every table has, else that the simulated one has."""
    table, published = points.table, points.published
    if asked:
        return table.require(asked)
    known = [column for column in usual if table.has_values(column)]
    for column in known:
        if not published or published.has_values(column):
            return column
    if known:
        return known[0]
    raise InputError(f"{table.source}:1:1: none of {', '.join(usual)} has values: choose a column with --x or --y")


def _points(table: Table, series_of: str, x: str, y: str, fits: bool = True) -> list[Point]:
    """Points of the rows that fit their memory, or of the others."""
    found = []
    for row in table.rows:
        if table.fits(row) != fits:
            continue
        at = table.number(row, table.require(x)), table.number(row, table.require(y))
        if None not in at:
            found.append((at[0] / quantity(x).scale, at[1] / quantity(y).scale, row[series_of]))
    return found


def _bands(ax: Axes, points: series.Points, table: Table, x: str, y: str) -> None:
    """A thin line through every point, over the band that its table has."""
    for row in table.rows:
        at, band = table.number(row, x), table.band(row, y)
        if at is not None and band and table.fits(row):
            ax.vlines(at / quantity(x).scale, band[0] / quantity(y).scale, band[1] / quantity(y).scale,
                      color=style.colour(points.series.index(row[points.column])), linewidth=0.7, alpha=0.5, zorder=1)


def frontier(points: list[Point], higher_is_better: bool) -> list[Point]:
    """Points that no other beats by more than LEAST with as little memory, from the left."""
    sign = -1 if higher_is_better else 1
    best: list[Point] = []
    for point in sorted(points, key=lambda each: (each[0], sign * each[1])):
        if not best or sign * point[1] < sign * best[-1][1] - LEAST * abs(best[-1][1]):
            best.append(point)
    return best


def _against(points: series.Points, condition: str) -> series.Points:
    """The rows of the condition take the place of the published ones; the others are compared with them."""
    column, _, value = condition.partition("=")
    if points.published:
        raise InputError("command line:1:1: --relative-to and --published both want the hollow points: choose one")
    base = points.table.only([condition])
    rows = [row for row in points.table.rows if row[column] != value]
    rest = sorted({row[column] for row in rows})
    if len(rest) != 1:
        raise InputError(f"{points.table.source}:1:1: the frontier of {condition} moves to that of one other value; "
                         f"there are {', '.join(rest) or 'none'}: choose with --where")
    keys = points.table.keys_besides(column)
    return dataclasses.replace(points, table=dataclasses.replace(points.table, rows=rows, keys=keys), published=base,
                               told_by=column, hollow=value, filled=rest[0])


def _print_moves(title: str, points: series.Points, base: Table, now: Table, axes: tuple[str, str]) -> None:
    """Prints every row on either frontier: its place and speed in both, and if it stays on it."""
    x, y = quantity(axes[0]), quantity(axes[1])
    was, now_at = _by_keys(points, base, axes), _by_keys(points, now, axes)
    before, after = (set(key for _, _, key in frontier([(*at, key) for key, at in rows.items()], y.higher_is_better))
                     for rows in (was, now_at))
    besides = now.varying([points.column, points.panel, axes[0]])
    names = {_key(points, row): " ".join([row[points.column]] + [f"{key}={row[key]}" for key in besides])
             for row in now.rows}
    print(f"frontier{', ' + title if title else ''}: {y.label()} against {x.label()}, {points.hollow} -> {points.filled}")
    wide = max(map(len, names.values()), default=0)
    for key, (at, speed) in sorted(now_at.items(), key=lambda each: (each[1], each[0])):
        if key not in was or key not in before | after:
            continue
        place = "leaves" if key not in after else "stays" if key in before else "enters"
        old_at, old = was[key]
        change = f" ({speed / old - 1:+.2%})" if old and abs(speed / old - 1) >= LEAST else ""
        print(f"  {names[key]:<{wide}}  {_moved(old_at, at)}: {_moved(old, speed)}{change}, {place}")


def _moved(old: float, new: float) -> str:
    return f"{old:.4g} -> {new:.4g}" if f"{old:.4g}" != f"{new:.4g}" else f"{new:.4g}"


def _key(points: series.Points, row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[key] for key in points.table.keys if key != points.told_by)


def _by_keys(points: series.Points, table: Table, axes: tuple[str, str]) -> dict[tuple[str, ...], tuple[float, float]]:
    found = {}
    for row in table.rows:
        for x, y, _ in _points(dataclasses.replace(table, rows=[row]), points.column, *axes):
            found[_key(points, row)] = x, y
    return found


def _cross_of(colour: str, x: list[float] = (), y: list[float] = (), label: str | None = None) -> Line2D:
    return Line2D(x, y, linestyle="none", marker="x", color=colour, markeredgewidth=1.2, markersize=6, label=label)


def _cross(ax: Axes, points: series.Points, found: list[Point]) -> None:
    for index, name in enumerate(points.series):
        own = [point for point in found if point[2] == name]
        ax.add_line(_cross_of(style.colour(index), [point[0] for point in own], [point[1] for point in own]))


def _labels(points: series.Points, found: list[Point], y: str, alone: bool) -> list[Point]:
    """Points that are named where they stand: all of a few in one panel, else the frontier's."""
    named = found if alone and len(found) <= MOST_LABELS else frontier(found, quantity(y).higher_is_better)
    names = dict(zip(points.series, points.names()))
    return [(at, height, names[name]) for at, height, name in named]


def _scatter(ax: Axes, points: series.Points, found: list[Point], y: str, hollow: bool) -> None:
    line = frontier(found, quantity(y).higher_is_better)
    ax.step([point[0] for point in line], [point[1] for point in line], where="post", color="#777777",
            linestyle=":" if hollow else "-", linewidth=1.0, zorder=1)
    for index, name in enumerate(points.series):
        own = [point for point in found if point[2] == name]
        ax.plot([point[0] for point in own], [point[1] for point in own], linestyle="none", marker=style.mark(index),
                color=style.colour(index), markerfacecolor="white" if hollow else style.colour(index),
                markeredgewidth=1.1 if hollow else 0.4, markeredgecolor=style.colour(index) if hollow else "white",
                markersize=6, zorder=2 if hollow else 3)
