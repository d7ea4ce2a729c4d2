"""Runs the code cells of a notebook in order, without Jupyter, and shows what each ends with as Jupyter would.

A cell that raises fails the run, as does a value whose drawing or table cannot be made.
"""
import ast
import json
import pathlib
import sys


def shown(value):
    """What Jupyter would show: the richest of its representations."""
    for name in ("_repr_html_", "_repr_svg_"):
        method = getattr(value, name, None)
        if method is not None:
            return method()
    return repr(value)


def run(cell, number, names):
    tree = ast.parse("".join(cell["source"]), f"cell {number}")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, f"cell {number}", "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
        if value is not None and not shown(value):
            raise ValueError(f"cell {number} shows nothing")


def main(path):
    notebook = json.loads(pathlib.Path(path).read_text())
    names = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        run(cell, number, names)
    print(f"{len(cells)} cells")
    return 0 if cells else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
