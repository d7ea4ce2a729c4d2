"""A GPU's bytes over each parallel size: a panel per size, a line per part; the thin line is a part that follows."""
import argparse

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import style
from tables import CHOICE, InputError, Table, quantity, read_table

AXES = {"data_parallel_size": "data parallel", "tensor_model_parallel_size": "tensor parallel",
        "context_parallel_size": "context parallel", "pipeline_model_parallel_size": "pipeline parallel",
        "expert_model_parallel_size": "expert parallel"}
PARTS = ("weights_bytes", "gradients_bytes", "optimizer_bytes", "vocabulary_bytes", "microbatch_bytes",
         "peak_activation_bytes", "peak_memory_bytes")


def draw(inputs: list[tuple[str, str]], asked: argparse.Namespace) -> Figure:
    panels = []
    for _, path in inputs:
        table = read_table(path)
        for column in ("schedule", "axis", "size", *PARTS):
            table.require(column)
        table = table.named("schedule", [choice for choice in CHOICE if table.differs_within(choice, ["schedule"])])
        panels += [(schedule, axis, table.only([f"schedule={schedule}", f"axis={axis}"]))
                   for schedule in table.values("schedule") for axis in table.values("axis")]
    if not panels:
        raise InputError(f"{inputs[0][1]}:1:1: no sizes to draw")
    several = len({schedule for schedule, _, _ in panels}) > 1
    figure, axes = style.panels(len(panels), asked.width, 2.3, columns=len({axis for _, axis, _ in panels}), sharey=True)
    for ax, (schedule, axis, table) in zip(axes, panels):
        _panel(ax, table)
        style.title(ax, f"{schedule}, {AXES.get(axis, axis)}" if several else AXES.get(axis, axis))
        ax.set_xlabel("ranks")
        if ax.get_subplotspec().is_first_col():
            ax.set_ylabel("GiB a GPU")
    style.legend_below(figure, [Line2D([], [], color=style.colour(i), marker=style.mark(i), linestyle=style.line(i % 6),
                                       label=part.removesuffix("_bytes").replace("_", " "))
                                for i, part in enumerate(PARTS)])
    return figure


def _panel(ax: Axes, table: Table) -> None:
    for index, part in enumerate(PARTS):
        points = [(table.number(row, "size"), table.number(row, part)) for row in table.rows]
        known = [(size, held / quantity(part).scale) for size, held in points if held]
        ax.plot([size for size, _ in known], [held for _, held in known], color=style.colour(index),
                marker=style.mark(index), markersize=3.5, linestyle=style.line(index % 6))
        if part == "peak_memory_bytes" and known:
            (least, most), last = known[0], known[-1][0]
            ax.plot([least, last], [most, most * least / last], color="#999999", linewidth=0.6, zorder=1)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    sizes = [table.number(row, "size") for row in table.rows]
    ax.set_xticks(sizes, [f"{size:g}" for size in sizes])
    ax.tick_params(axis="x", labelsize=6)
    ax.minorticks_off()
