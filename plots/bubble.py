"""Idle time by cause: a bar per schedule, the mean of its devices; of one schedule a bar per device."""
import argparse

from matplotlib.figure import Figure
from matplotlib.patches import Patch

import style
from tables import InputError, part, read_json

CAUSES = ("warm_up", "cool_down", "transfer", "collective", "host_copy", "imbalance", "order")


def draw(inputs: list[tuple[str, str]], asked: argparse.Namespace) -> Figure:
    results = []
    for name, path in inputs:
        prefix = f"{name}: " if len(inputs) > 1 else ""
        results += [(prefix + result.get("label", result["schedule"]), result)
                    for result in part(read_json(path), "results", path, "pipesim run --json")]
    if not results:
        raise InputError("no result to draw")
    if len(results) == 1:
        label, result = results[0]
        bars = [(str(device["device"]), _shares(result, [device])) for device in result["devices"]]
        title, what = f"{label}: idle time of every device", "device"
    else:
        bars = [(label, _shares(result, result["devices"])) for label, result in results]
        title, what = "Idle time by cause, mean of the devices", ""
    figure, (ax,) = style.panels(1, asked.width, 0.7 + 0.27 * len(bars))
    causes = [cause for cause in CAUSES if any(shares[cause] > 5e-5 for _, shares in bars)]
    totals = [sum(shares.values()) for _, shares in bars]
    room = 1.12 * max(totals) if max(totals) > 0 else 1
    for row, (_, shares) in enumerate(bars):
        left = 0.0
        for cause in causes:
            index = CAUSES.index(cause)
            ax.barh(row, 100 * shares[cause], 0.72, 100 * left, color=style.colour(index), edgecolor="white",
                    hatch=style.HATCHES[index], linewidth=0.4)
            if shares[cause] > 0.06 * room:
                ax.text(100 * (left + shares[cause] / 2), row, f"{100 * shares[cause]:.1f}", fontsize=6.5,
                        ha="center", va="center_baseline",
                        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})
            left += shares[cause]
        ax.text(100 * (left + 0.008 * room), row, f"{100 * left:.1f}%", va="center_baseline", fontsize=7.5)
    ax.set_yticks(range(len(bars)), [label for label, _ in bars])
    ax.set_ylabel(what)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(0, 100 * room)
    ax.set_xlabel("share of the iteration (%)")
    ax.set_title(title)
    style.legend_below(figure, [
        Patch(facecolor=style.colour(CAUSES.index(cause)), edgecolor="white", hatch=style.HATCHES[CAUSES.index(cause)],
              label=cause.replace("_", "-")) for cause in causes])
    return figure


def _shares(result: dict, devices: list[dict]) -> dict[str, float]:
    total = result["iteration_seconds"] * len(devices)
    return {cause: sum(device["idle_seconds_by_cause"][cause] for device in devices) / total for cause in CAUSES}
