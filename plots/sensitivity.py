"""Effects of multiplying each number of a scenario: a tornado, the longest bars on top."""
import argparse

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

import style
from tables import InputError, part, quantity, read_json

LEAST = 5e-4  # of the value: what moves less is named, not drawn


def draw(inputs: list[tuple[str, str]], asked: argparse.Namespace) -> Figure:
    analyses = []
    for _, path in inputs:
        analyses += [(path, each) for each in part(read_json(path), "sensitivity", path, "pipesim sensitivity --json")]
    if not analyses:
        raise InputError("no schedule to draw")
    metric = asked.value or "microbatches_per_second"
    for path, analysis in analyses:
        # An unknown value is null, and `fits` is no number.
        known = [key for key, value in analysis["base"].items() if type(value) in (int, float)]
        if metric not in known:
            raise InputError(f"{path}:1:1: no value '{metric}'; it has {', '.join(known)}")
    bars = [_bars(analysis, metric) for _, analysis in analyses]
    factors = sorted({effect["factor"] for _, analysis in analyses for effect in analysis["effects"]})
    most = max(len(each) for each in bars) or 1
    figure, axes = style.panels(len(bars), asked.width, 0.75 + 0.24 * most, columns=2 if len(bars) > 1 else 1,
                                sharex=True)
    changes = [100 * change for each in bars for effects in each.values() for _, change, _ in effects] or [-1, 1]
    low, high = min(0, *changes), max(0, *changes)
    room = (high - low) * (0.32 if len(bars) > 1 else 0.14)  # for the values at the bars' ends
    for ax, (_, analysis), each in zip(axes, analyses, bars):
        _panel(ax, analysis, each, factors)
        ax.set_xlim(low - room, high + room)
    name = quantity(metric).name
    for ax in axes[-2:] if len(axes) > 1 else axes:
        ax.set_xlabel(f"change of {name} (%)")
        ax.tick_params(labelbottom=True)
    style.legend_below(figure, [Patch(facecolor=style.colour(index), edgecolor="white", hatch=_hatch(index),
                                      label=f"value x {factor:g}") for index, factor in enumerate(factors)])
    return figure


Bars = dict[str, list[tuple[float, float, str]]]  # by what: factor asked for, change, the value after it


def _bars(analysis: dict, metric: str) -> Bars:
    base = analysis["base"][metric]
    bars: Bars = {}
    for effect in analysis["effects"]:
        if effect["outcome"] is None or not base or effect["outcome"][metric] is None:
            continue
        change = effect["outcome"][metric] / base - 1
        asked = effect["factor"]
        to = effect["to"] + (f" (x {effect['applied']:.3g})" if effect.get("applied", asked) != asked else "")
        bars.setdefault(effect["what"], []).append((asked, change, to))
    moved = {what: effects for what, effects in bars.items() if max(abs(each[1]) for each in effects) >= LEAST}
    return dict(sorted(moved.items(), key=lambda item: -max(abs(each[1]) for each in item[1])))


def _hatch(index: int) -> str:
    return ("", "/////", ".....", "xxxxx")[index % 4]


def _panel(ax: Axes, analysis: dict, bars: Bars, factors: list[float]) -> None:
    for row, effects in enumerate(bars.values()):
        sides = {effect[1] > 0 for effect in effects}
        height = 0.74 if len(sides) == len(effects) else 0.74 / len(effects)
        for index, (factor, change, to) in enumerate(effects):
            at = row if height == 0.74 else row + (index - (len(effects) - 1) / 2) * height
            look = factors.index(factor)
            ax.barh(at, 100 * change, height, color=style.colour(look), edgecolor="white", linewidth=0.4,
                    hatch=_hatch(look))
            right = change >= 0
            ax.annotate(to, (100 * change, at), (2 if right else -2, 0), textcoords="offset points", fontsize=6,
                        ha="left" if right else "right", va="center_baseline")
    ax.axvline(0, color="black", linewidth=0.7)
    ax.set_yticks(range(len(bars)), list(bars))
    ax.set_ylim(max(len(bars), 1) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    ax.set_title(analysis.get("label", analysis["schedule"]))
