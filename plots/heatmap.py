"""One number over two swept keys: a panel per schedule, the value written in every cell.

Cells of points that do not fit their memory are hatched; a cross stands for a refused point, a dash for none.
"""
import argparse
import dataclasses
import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

import series
import style
from tables import CHOICE, InputError, Quantity, Table, joined, quantity, read_table

HATCH = "/////"

Place = tuple[str, str]


@dataclasses.dataclass
class Cells:
    """One panel's cells; a point that does not fit has a number too."""
    numbers: dict[Place, float]
    unfit: set[Place]
    refused: set[Place]


def draw(inputs: list[tuple[str, str]], asked: argparse.Namespace) -> Figure:
    table = joined(inputs).only(asked.where)
    shown = (asked.x, asked.y, asked.panel, asked.relative_to.partition("=")[0])
    if "schedule" in table.columns:
        table = table.named("schedule", [choice for choice in CHOICE if choice in table.keys and choice not in shown])
    value = table.require(asked.value or ("simulated" if "simulated" in table.columns else "iteration_seconds"))
    panel = table.require(asked.panel) if asked.panel else "schedule" if "schedule" in table.columns else ""
    x, y = _axes_of(table, asked, panel)
    shown = Quantity(f"change of {quantity(value).name}", "%", 0.01) if asked.relative_to else quantity(value)
    table = table.relative_to(asked.relative_to, value)
    points = series.Points(table, None, panel, "", [])
    maps = []
    for title, rows, _ in points.panels():
        series.one_per_place(points, rows, [x, y], lambda row: (row[x], row[y]))
        maps.append((title or "pipesim", _cells(rows, x, y, value, shown.scale)))
    if value == "simulated" and table.has_values("published"):
        maps.append(("published", _cells(table, x, y, "published", shown.scale)))
    if asked.published:
        beside = read_table(asked.published)
        maps.append(("published", _cells(beside, beside.require(x), beside.require(y), beside.require(value),
                                         shown.scale)))
    whole = table.with_refused()
    columns, rows = whole.values(x), whole.values(y)
    return _figure(maps, columns, rows, (x, y), shown, asked)


def _axes_of(table: Table, asked: argparse.Namespace, panel: str) -> tuple[str, str]:
    free = [key for key in table.with_refused().varying([panel, asked.relative_to.partition("=")[0], "table"])
            if key not in (asked.x, asked.y)]
    named = [table.require(key) for key in (asked.x, asked.y) if key]
    if len(named) + len(free) != 2:
        raise InputError(f"{table.source}:1:1: a heat map needs two swept keys, here are "
                         f"{', '.join(named + free) or 'none'}: choose with --x and --y, the others with --where")
    return asked.x or free.pop(), asked.y or free.pop()


def _cells(table: Table, x: str, y: str, value: str, scale: float) -> Cells:
    found = {(row[x], row[y]): (number / scale, table.fits(row)) for row in table.rows
             if (number := table.number(row, value)) is not None}
    return Cells({place: number for place, (number, _) in found.items()},
                 {place for place, (_, fits) in found.items() if not fits},
                 {(row[x], row[y]) for row in table.refused} - found.keys())


def _figure(maps: list[tuple[str, Cells]], columns: list[str], rows: list[str], axes_of: tuple[str, str],
            shown: Quantity, asked: argparse.Namespace) -> Figure:
    every = [number for _, cells in maps for number in cells.numbers.values()]
    if not every:
        raise InputError("no value to draw")
    low, high = min(every), max(every)
    across = min(len(maps), 2 if len(columns) > 4 else 3)
    figure, axes = style.panels(len(maps), asked.width, 0.75 + 0.26 * len(rows), columns=across, sharey=True)
    image = None
    for ax, (title, cells) in zip(axes, maps):
        image = _panel(ax, cells, columns, rows, low, high)
        style.title(ax, title)
        ax.set_xlabel(quantity(axes_of[0]).label())
        if ax.get_subplotspec().is_first_col():
            ax.set_ylabel(quantity(axes_of[1]).label())
    style.legend_below(figure, _legend([cells for _, cells in maps]))
    figure.colorbar(image, ax=axes, label=textwrap.fill(shown.label(), 30), fraction=0.05, pad=0.02)
    return figure


def _legend(every: list[Cells]) -> list:
    handles = []
    if any(cells.unfit for cells in every):
        handles.append(Patch(facecolor="white", edgecolor="black", hatch=HATCH, linewidth=0.4, label="does not fit"))
    if any(cells.refused for cells in every):
        handles.append(Line2D([], [], linestyle="none", marker="x", color="black", label="refused"))
    return handles


def _panel(ax: Axes, cells: Cells, columns: list[str], rows: list[str], low: float, high: float):
    grid = [[cells.numbers.get((column, row), float("nan")) for column in columns] for row in rows]
    # Cividis grows evenly in grey, and for those who do not tell red from green.
    image = ax.imshow(grid, cmap="cividis", vmin=low, vmax=high, aspect="auto")
    span = high - low or 1
    digits = 0 if max(abs(low), abs(high)) >= 100 else 1 if max(abs(low), abs(high)) >= 10 else 2
    for row, values in enumerate(grid):
        for column, number in enumerate(values):
            place = columns[column], rows[row]
            if number != number:
                text, colour, behind = "×" if place in cells.refused else "–", "black", None
            else:
                text, colour = f"{number:.{digits}f}", "black" if (number - low) / span > 0.55 else "white"
                behind = {"facecolor": image.cmap(image.norm(number)), "edgecolor": "none", "pad": 0.8}
            if place in cells.unfit:
                ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, hatch=HATCH, edgecolor=colour,
                                       linewidth=0))
            ax.text(column, row, text, ha="center", va="center_baseline", fontsize=6.5, color=colour,
                    bbox=behind if place in cells.unfit else None)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0)
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return image
