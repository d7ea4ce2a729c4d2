"""The style of all figures: type, colours, marks and hatches, panels, and files that are the same bytes again.

Series differ in colour, in mark and in line, areas in colour and in hatch, so that nothing is lost in grey or to
readers who do not tell colours apart. Colours are those of Okabe and Ito, ordered so that neighbours differ in grey.
"""
import math
import textwrap

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDTH = 7.0  # inches: a page's text

# Colour, mark and line of the n-th series.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#000000", "#E69F00", "#7a6a00")
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h", "p", "d", "8")
_LINES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "++++", "oo", "----")


def colour(index: int) -> str:
    return _COLOURS[index % len(_COLOURS)]


def mark(index: int) -> str:
    return _MARKS[index % len(_MARKS)]


def line(index: int):
    return _LINES[index % len(_LINES)]


def use() -> None:
    matplotlib.rcdefaults()
    matplotlib.rcParams.update({
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 8,
        "axes.titlesize": 8.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.6,
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": "#dddddd",
        "grid.linewidth": 0.5,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "lines.linewidth": 1.3,
        "lines.markersize": 5,
        "legend.frameon": False,
        "legend.fontsize": 7.5,
        "legend.handlelength": 2.4,
        "hatch.linewidth": 0.5,
        "figure.titlesize": 10,
        "figure.titleweight": "bold",
        "figure.constrained_layout.use": True,
        "savefig.dpi": 200,
        "svg.fonttype": "none",  # text stays text
        "svg.hashsalt": "pipesim",
        "pdf.fonttype": 42,
    })


def panels(count: int, width: float, height: float, columns: int = 3,
           **shared: bool) -> tuple[Figure, list[Axes]]:
    """`count` axes in rows of at most `columns`; `height` inches each; empty places stay blank."""
    from matplotlib import pyplot
    if columns == 3 and count % 4 == 0:  # whole rows
        columns = 2 if count == 4 else 4
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(width or WIDTH, height * rows), squeeze=False, **shared)
    every = [each for row in axes for each in row]
    for blank in every[count:]:
        blank.set_axis_off()
    return figure, every[:count]


def title(ax: Axes, text: str) -> None:
    """Sets a panel's title, on as many lines as its width asks for."""
    width = ax.get_figure().get_size_inches()[0] / ax.get_subplotspec().get_gridspec().ncols
    ax.set_title(textwrap.fill(text, max(16, int(width * 72 / 5.4))))


def label(quantity_label: str, inches: float) -> str:
    """An axis's label, on two lines where one is longer than the axis."""
    return textwrap.fill(quantity_label, max(16, int(inches * 72 / 5)))


def categories(ax: Axes, names: list[str]) -> None:
    """Names along the x axis, slanted where they would meet."""
    ax.set_xticks(range(len(names)), names)
    width = 0.85 * ax.get_figure().get_size_inches()[0] / ax.get_subplotspec().get_gridspec().ncols
    if sum(len(name) + 2 for name in names) * 4.4 > width * 72:
        ax.tick_params(axis="x", labelrotation=30)
        for text in ax.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")


def legend_below(figure: Figure, handles: list) -> None:
    """One legend for all panels, beneath them."""
    if not handles:
        return
    width, height = figure.get_size_inches()
    longest = max(len(handle.get_label()) for handle in handles)
    columns = max(1, min(len(handles), int(width * 72 / (4.3 * longest + 38))))
    rows = math.ceil(len(handles) / columns)
    room = 0.2 * rows + 0.12
    figure.set_size_inches(width, height + room)
    figure.get_layout_engine().set(rect=(0, room / (height + room), 1, 1 - room / (height + room)))
    figure.legend(handles=handles, loc="lower center", ncol=columns, bbox_to_anchor=(0.5, 0), borderaxespad=0.2)


def save(figure: Figure, path: str) -> None:
    """No date and no version in the file: the same figure is the same bytes."""
    kind = path.rsplit(".", 1)[-1]
    metadata = {"pdf": {"CreationDate": None, "Creator": None, "Producer": None},
                "svg": {"Date": None, "Creator": None},
                "png": {"Software": None}}[kind]
    figure.canvas.draw()
    figure.set_layout_engine("none")  # another one at the file's resolution would clip labels
    figure.savefig(path, metadata=metadata)
