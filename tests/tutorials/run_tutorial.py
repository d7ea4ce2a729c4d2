#!/usr/bin/env python3
"""Does what a page of the docs says, and fails where something else comes out.

  run_tutorial.py --root SOURCE --pipesim EXECUTABLE PAGE...

A block ```console holds commands (`$ command`; a line that ends with a backslash goes on) with what they print, both
streams: these lines must come, in this order and without others between; a line `...` stands for any others. A command
must end with exit code 0. A block with a name behind its language (```yaml mine.yaml) is saved under that name first.
Everything else on the page is for people. Each page runs in an empty folder that has `scenarios`; `pipesim` is
EXECUTABLE.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OTHERS = "..."


def commands_of(text):
    """The commands of a console block, each with the lines that it prints."""
    found = []
    going_on = False
    for line in text.splitlines():
        if going_on:
            found[-1][0] += "\n" + line
        elif line.startswith("$ "):
            found.append([line[2:], []])
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError(f"no command stands before '{line}'")
        going_on = not found[-1][1] and line.endswith("\\")
    return found


def missing_line(expected, printed):
    """The first expected line that does not come where it must; None where all do."""
    at, free = 0, False
    for line in expected:
        if line == OTHERS:
            free = True
            continue
        places = range(at, len(printed)) if free else range(at, min(at + 1, len(printed)))
        found = next((i for i in places if printed[i].rstrip() == line.rstrip()), None)
        if found is None:
            return line
        at, free = found + 1, False
    if expected and not free and at < len(printed):
        return f"nothing more, but '{printed[at]}' came"
    return None


def faults_of(page, root, executable):
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(root / "scenarios", pathlib.Path(folder) / "scenarios")
        commands = pathlib.Path(folder) / ".commands"
        commands.mkdir()
        os.symlink(executable, commands / "pipesim")
        environment = {**os.environ, "PATH": f"{commands}:{os.environ['PATH']}", "NO_COLOR": "1"}
        for language, name, text in BLOCK.findall(page.read_text()):
            if name:
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            if language != "console":
                continue
            for command, expected in commands_of(text):
                done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                missing = missing_line(expected, done.stdout.splitlines())
                if done.returncode == 0 and missing is None:
                    continue
                why = f"exit code {done.returncode}" if done.returncode else f"expected: {missing}"
                yield f"{page.name}: $ {command}\n{why}\nit printed:\n{done.stdout}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--pipesim", type=pathlib.Path, required=True)
    parser.add_argument("pages", type=pathlib.Path, nargs="+")
    asked = parser.parse_args()
    faults = [fault for page in asked.pages
              for fault in faults_of(page, asked.root.resolve(), asked.pipesim.resolve())]
    print("\n\n".join(faults) if faults else f"{len(asked.pages)} pages say what comes out")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
