"""pipesim from Python: the commands as functions, their documents as values (docs/how-to/python.md).

Times are seconds, memory is bytes, unless a name says otherwise. Quantities of scenarios are text with a
unit, as in files: "18.5 ms", "3.7 GiB", "400 Gbps".
"""

from __future__ import annotations

from ._commands import (Anchor, Improved, Orders, Page, Proof, anchor, compare, export, goodput, improve, prove, report,
                        sensitivity, workbench)
from ._errors import Error, InfeasibleError, InputError
from ._pipesim import __version__
from ._plan import Layout, Plan, plan
from ._program import Imported, import_, reproduce
from ._program import listed as list
from ._results import PASS_KINDS, TASK_KINDS, Comparison, Device, Result, Timeline, simulate
from ._rows import Document, Row, Rows
from ._scenario import Scenario, read, scenario
from ._schedules import Schedule, schedule
from ._search import Found, search
from ._sweep import Point, Sweep, sweep
from ._tables import METRICS
from ._validate import validate, validations

__all__ = ["Anchor", "Comparison", "Device", "Document", "Error", "Found", "Imported", "Improved", "InfeasibleError",
           "InputError", "Layout", "METRICS", "Orders", "PASS_KINDS", "Page", "Plan", "Point", "Proof", "Result", "Row",
           "Rows", "Scenario", "Schedule", "Sweep", "TASK_KINDS", "Timeline", "__version__", "anchor", "compare", "export",
           "goodput", "import_", "improve", "list", "plan", "prove", "read", "report", "reproduce", "scenario", "schedule",
           "search", "sensitivity", "simulate", "sweep", "validate", "validations", "workbench"]
