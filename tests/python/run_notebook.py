"""Runs the code cells of a notebook, or the Python blocks of a page, in order and without Jupyter.

What a cell ends with is shown as Jupyter would show it. They run in a folder of their own that has scenarios/.

A cell that raises fails the run, as does a value whose drawing or table cannot be made.
"""
import ast
import json
import os
import pathlib
import re
import sys
import tempfile


def shown(value):
    """What Jupyter would show: the richest of its representations."""
    for name in ("_repr_html_", "_repr_svg_"):
        method = getattr(value, name, None)
        if method is not None:
            return method()
    return repr(value)


def cells_of(path):
    text = path.read_text()
    if path.suffix == ".md":
        return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def run(cell, number, names):
    tree = ast.parse(cell, f"cell {number}")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, f"cell {number}", "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
        if value is not None and not shown(value):
            raise ValueError(f"cell {number} shows nothing")


def main(path):
    cells = cells_of(pathlib.Path(path))
    names = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(pathlib.Path(os.environ["PIPESIM_SOURCE_DIR"], "scenarios"), pathlib.Path(folder, "scenarios"))
        os.chdir(folder)
        for number, cell in enumerate(cells, 1):
            run(cell, number, names)
        os.chdir("/")
    print(f"{len(cells)} cells")
    return 0 if cells else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
