"""Memory over time: a line per device, those that say most named and the others thin."""
import argparse

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import style
from tables import InputError, part, read_json

GIB = 2.0**30


def draw(inputs: list[tuple[str, str]], asked: argparse.Namespace) -> Figure:
    drawings, capacity = [], None
    for name, path in inputs:
        document = read_json(path)
        for drawing in part(document, "drawings", path, "pipesim plot"):
            if drawing["memory"] is None:
                raise InputError(f"{name}: the scenario says nothing of memory: give it a section memory, or a model")
            drawings.append(drawing)
        capacity = document["capacity_bytes"] or capacity
    figure, axes = style.panels(len(drawings), asked.width, 2.1, columns=2, sharey=True, sharex=True)
    scale, unit = (1.0, "s") if max(d["seconds"] for d in drawings) >= 10 else (1e-3, "ms")
    shown = [_panel(ax, drawing, scale, capacity) for ax, drawing in zip(axes, drawings)]
    axes[0].set_ylim(0, 1.12 * max(max(line.get_ydata()) for ax in axes for line in ax.lines))
    columns = axes[0].get_subplotspec().get_gridspec().ncols
    for index, ax in enumerate(axes):
        if index % columns == 0:
            ax.set_ylabel("memory (GiB)" if drawings[0]["beside_bytes"] else "activations (GiB)")
        if index + columns >= len(axes):
            ax.set_xlabel(f"time ({unit})")
            ax.tick_params(labelbottom=True)
    style.legend_below(figure, _legend(capacity, any(shown), drawings[0]["beside_bytes"] is not None))
    return figure


def _panel(ax: Axes, drawing: dict, scale: float, capacity: float | None) -> bool:
    """True if devices were drawn that are not named."""
    curves = drawing["memory"]
    beside = drawing["beside_bytes"] or [0.0] * len(curves)
    peaks = [max((level for _, level in curve), default=0.0) + floor for curve, floor in zip(curves, beside)]
    most = peaks.index(max(peaks))
    named = {0: 0, len(curves) - 1: 1}
    for device, (curve, floor) in enumerate(zip(curves, beside)):
        times = [0.0] + [seconds / scale for seconds, _ in curve] + [drawing["seconds"] / scale]
        levels = [floor / GIB] + [(level + floor) / GIB for _, level in curve]
        levels.append(levels[-1])
        if device in named:
            look = {"color": style.colour(named[device]), "linestyle": style.line(named[device]), "zorder": 3}
        else:
            look = {"color": "#aaaaaa", "linewidth": 0.6, "zorder": 2}
        ax.step(times, levels, where="post", **look)
    at = max(curves[most], key=lambda point: point[1], default=(0.0, 0.0))[0] / scale
    ax.plot([at], [peaks[most] / GIB], marker="v", color="black", linestyle="none", zorder=4, clip_on=False)
    late = at > drawing["seconds"] / scale / 2
    ax.annotate(f"{peaks[most] / GIB:.1f} GiB, device {most}", (at, peaks[most] / GIB), (-5 if late else 5, 2),
                textcoords="offset points", fontsize=7, ha="right" if late else "left")
    if capacity:
        ax.axhline(capacity / GIB, color="black", linestyle=(0, (1, 2)), linewidth=1)
    style.title(ax, drawing["label"])
    return len(curves) > 2


def _legend(capacity: float | None, others: bool, whole: bool) -> list[Line2D]:
    handles = [Line2D([], [], color=style.colour(0), linestyle=style.line(0), label="first device"),
               Line2D([], [], color=style.colour(1), linestyle=style.line(1), label="last device")]
    if others:
        handles.append(Line2D([], [], color="#aaaaaa", linewidth=0.6, label="the others"))
    handles.append(Line2D([], [], color="black", marker="v", linestyle="none",
                          label="peak, weights and state included" if whole else "peak"))
    if capacity:
        handles.append(Line2D([], [], color="black", linestyle=(0, (1, 2)), linewidth=1, label="capacity"))
    return handles
