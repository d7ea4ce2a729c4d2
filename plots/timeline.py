"""Passes over time in the papers' style: a row per device, a box per pass with its microbatch where it fits."""
import argparse

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

import style
from tables import InputError, part, read_json

# Beside the colour, so that kinds differ in grey too. Forward is plain.
HATCH = {"F": "", "B": "/////", "BW": "\\\\\\\\\\", "W": ".....", "R": "xxxxx", "S": "\\\\\\\\", "T": "\\\\\\\\",
         "IF": "----", "IB": "----"}
FONT = 5.5
MOST_BOXES = 20000  # beyond, boxes have no edge, no hatch and no number


def draw(inputs: list[tuple[str, str]], asked: argparse.Namespace) -> Figure:
    drawings = [drawing for _, path in inputs
                for drawing in part(read_json(path), "drawings", path, "pipesim plot")]
    if not drawings:
        raise InputError("no schedule to draw")
    devices = max(len(drawing["passes"]) for drawing in drawings)
    row = min(0.21, 8.0 / devices)
    figure, axes = style.panels(len(drawings), asked.width, 0.55 + row * devices, columns=1, sharex=True)
    scale, unit = _unit(max(drawing["seconds"] for drawing in drawings))
    end = max(drawing["seconds"] for drawing in drawings) / scale
    points = figure.get_size_inches()[0] * 72 * 0.93 / end  # of one unit of time
    for ax, drawing in zip(axes, drawings):
        _panel(ax, drawing, scale, points, row * 72)
        ax.set_xlim(0, end * 1.001)
    axes[-1].set_xlabel(f"time ({unit})")
    style.legend_below(figure, _legend(drawings))
    return figure


def _unit(seconds: float) -> tuple[float, str]:
    return (1.0, "s") if seconds >= 10 else (1e-3, "ms") if seconds >= 1e-2 else (1e-6, "µs")


def _panel(ax: Axes, drawing: dict, scale: float, points: float, row_points: float) -> None:
    rows = drawing["passes"]
    plain = sum(map(len, rows)) > MOST_BOXES
    for device, passes in enumerate(rows):
        groups: dict[tuple[str, int, int], list[tuple[float, float]]] = {}
        for start, seconds, kind, _, chunk, half in passes:
            groups.setdefault((kind, chunk, half), []).append((start / scale, seconds / scale))
        for (kind, chunk, half), spans in groups.items():
            low, height = _extent(device, half)
            text = drawing["kinds"][kind]["texts"][chunk]
            ax.broken_barh(spans, (low, height), facecolors=drawing["kinds"][kind]["fills"][chunk],
                           edgecolors="none" if plain else "#000000" if text == "#000000" else "#ffffff",
                           linewidth=0.25, hatch=None if plain else HATCH.get(kind, ""))
        if not plain:
            _numbers(ax, drawing, device, passes, scale, points, row_points)
    ax.set_ylim(len(rows) - 0.5 + 0.1, -0.6)
    step = max(1, len(rows) // 8)
    ax.set_yticks(range(0, len(rows), step), [f"{device}" for device in range(0, len(rows), step)])
    ax.set_ylabel("device")
    ax.tick_params(axis="y", length=0)
    ax.grid(False)
    style.title(ax, f"{drawing['label']}: {drawing['headline']}")


def _extent(device: int, half: int) -> tuple[float, float]:
    """Place and height of a box on its row: whole, or the upper or lower half."""
    whole = 0.9
    if half == 0:
        return device - whole / 2, whole
    return device - whole / 2 + (half - 1) * whole / 2, whole / 2


def _numbers(ax: Axes, drawing: dict, device: int, passes: list, scale: float, points: float,
             row_points: float) -> None:
    if row_points < FONT + 1:
        return
    for start, seconds, kind, microbatch, chunk, half in passes:
        text = str(microbatch)
        if half and row_points / 2 < FONT + 1 or seconds / scale * points < 0.64 * FONT * len(text) + 0.8:
            continue
        low, height = _extent(device, half)
        look = drawing["kinds"][kind]
        box = {"facecolor": look["fills"][chunk], "edgecolor": "none", "pad": 0.3} if HATCH.get(kind) else None
        ax.text((start + seconds / 2) / scale, low + height / 2, text, color=look["texts"][chunk], fontsize=FONT,
                ha="center", va="center_baseline", bbox=box, clip_on=True)


def _legend(drawings: list[dict]) -> list[Patch]:
    handles = {}
    chunks = 1
    for drawing in drawings:
        for kind, look in drawing["kinds"].items():
            chunks = max(chunks, len(look["fills"]))
            handles.setdefault(kind, Patch(facecolor=look["fills"][0], edgecolor="#000000", linewidth=0.25,
                                           hatch=HATCH.get(kind, ""), label=f"{kind}  {look['meaning']}"))
    order = [kind for kind in ("F", "B", "W", "BW", "R") if kind in handles]
    every = [handles[kind] for kind in order + [kind for kind in handles if kind not in order]]
    if chunks > 1:
        every.append(Patch(facecolor="none", label="light: first chunk, dark: last"))
    return every
