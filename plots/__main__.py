"""Draws one figure: python3 plots KIND --out FILE [options] -- NAME=FILE...

`pipesim plot` calls this with documents that it has made or was given. Returns 2 and says why when an
input cannot be drawn, and NO_MATPLOTLIB when this interpreter lacks it.
"""
import argparse
import os
import sys
import textwrap

NO_MATPLOTLIB = 77

try:
    import matplotlib
except ImportError:
    sys.exit(NO_MATPLOTLIB)

matplotlib.use("Agg")

import importlib  # noqa: E402

import style  # noqa: E402
from tables import InputError, use_metrics  # noqa: E402

KINDS = ("timeline", "memory", "bubble", "pareto", "curves", "heatmap", "sensitivity", "memory-scaling")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="plots", allow_abbrev=False)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--out", required=True)
    for option in ("x", "y", "value", "panel", "series", "relative-to", "published", "title"):
        parser.add_argument("--" + option, default="")
    parser.add_argument("--where", action="append", default=[])
    parser.add_argument("--band", action="store_true")
    parser.add_argument("--differences", default="")
    parser.add_argument("--width", type=float, default=0)
    parser.add_argument("--metrics", default="", help="what `pipesim list metrics --format json` writes")
    parser.add_argument("inputs", nargs="+")
    return parser.parse_args()


def main() -> int:
    asked = arguments()
    style.use()
    inputs = [tuple(each.split("=", 1)) for each in asked.inputs]
    try:
        if asked.metrics:
            use_metrics(asked.metrics)
        figure = importlib.import_module(asked.kind.replace("-", "_")).draw(inputs, asked)
        if asked.title:
            figure.suptitle(textwrap.fill(asked.title, int(figure.get_size_inches()[0] * 72 / 6.2)))
        style.save(figure, asked.out)
    except InputError as error:
        print(f"pipesim: {_named(str(error), inputs, asked.out)}", file=sys.stderr)
        return 2
    return 0


def _named(message: str, inputs: list[tuple[str, ...]], out: str) -> str:
    """A document made for this figure stands beside it, where nobody looks: it is called as its scenario."""
    for name, path in inputs:
        if os.path.dirname(path) == os.path.dirname(out):
            message = message.replace(f"{path}:1:1", name)
    return message


if __name__ == "__main__":
    sys.exit(main())
