"""Draws one figure: python3 plots KIND --out FILE [options] -- NAME=FILE...

`pipesim plot` calls this with documents that it has made or was given. Returns 2 and says why when an
input cannot be drawn, and NO_MATPLOTLIB when this interpreter lacks it.
"""
import argparse
import sys

NO_MATPLOTLIB = 77

try:
    import matplotlib
except ImportError:
    sys.exit(NO_MATPLOTLIB)

matplotlib.use("Agg")

import importlib  # noqa: E402

import style  # noqa: E402
from tables import InputError  # noqa: E402

KINDS = ("timeline", "memory", "bubble", "pareto", "curves", "heatmap", "sensitivity")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="plots", allow_abbrev=False)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--out", required=True)
    for option in ("x", "y", "value", "panel", "series", "relative-to", "published", "title"):
        parser.add_argument("--" + option, default="")
    parser.add_argument("--where", action="append", default=[])
    parser.add_argument("--width", type=float, default=0)
    parser.add_argument("inputs", nargs="+")
    return parser.parse_args()


def main() -> int:
    asked = arguments()
    style.use()
    inputs = [tuple(each.split("=", 1)) for each in asked.inputs]
    try:
        figure = importlib.import_module(asked.kind).draw(inputs, asked)
        if asked.title:
            figure.suptitle(asked.title)
        style.save(figure, asked.out)
    except InputError as error:
        print(f"pipesim: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
