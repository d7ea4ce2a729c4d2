"""Runs the code cells of a notebook, or the Python blocks of a page, in order and without Jupyter.

    run_notebook.py PAGE            a cell that raises fails the run, as does one that shows other kinds of things than
                                    the notebook has stored
    run_notebook.py --store PAGE    stores what the cells show in the notebook
    run_notebook.py --code PAGE     prints the cells as one program

They run in a folder of their own that has scenarios/.
"""
import ast
import contextlib
import io
import json
import os
import pathlib
import re
import sys
import tempfile


def shown(value):
    """Jupyter's output for a value, by kind."""
    data = {"text/plain": repr(value)}
    for kind, name in (("text/html", "_repr_html_"), ("image/svg+xml", "_repr_svg_")):
        method = getattr(value, name, None)
        if method is not None:
            data[kind] = method()
            break
    return data


def cells_of(path):
    text = path.read_text()
    if path.suffix == ".md":
        return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def run(cell, number, names):
    """The outputs of a cell as a notebook stores them."""
    tree = ast.parse(cell, f"cell {number}")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, outputs = io.StringIO(), []
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(True)})
    if value is not None:
        data = {kind: text.splitlines(True) for kind, text in shown(value).items()}
        outputs.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs


def kinds_of(outputs):
    return [sorted(each.get("data", [each["output_type"]])) for each in outputs]


def outputs_of(cells):
    names = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(pathlib.Path(os.environ["PIPESIM_SOURCE_DIR"], "scenarios"), pathlib.Path(folder, "scenarios"))
        os.chdir(folder)
        outputs = [run(cell, number, names) for number, cell in enumerate(cells, 1)]
        os.chdir("/")
    return outputs


def main(arguments):
    path = pathlib.Path(arguments[-1]).resolve()
    cells = cells_of(path)
    if "--code" in arguments:
        print("\n".join(cells))
        return 0
    outputs = outputs_of(cells)
    faults = []
    if path.suffix == ".ipynb":
        notebook = json.loads(path.read_text())
        stored = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for number, (cell, ran) in enumerate(zip(stored, outputs), 1):
            if kinds_of(cell["outputs"]) != kinds_of(ran):
                faults.append(f"cell {number} shows {kinds_of(ran)}, and {kinds_of(cell['outputs'])} are stored")
            cell.update(execution_count=number, outputs=ran)
        if "--store" in arguments:
            path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
            faults = []
    print("\n".join([*faults, f"{len(cells)} cells"]))
    return 1 if faults or not cells else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
