"""The fastest layouts of a model on a number of GPUs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional, Union

from . import _arguments, _pipesim
from ._metrics import PlannedMetrics
from ._rows import Document, Row
from ._scenario import Scenario, changes_of, texts_of

_COLUMNS = ("cluster", "schedule", "tensor_model_parallel_size", "pipeline_model_parallel_size", "data_parallel_size",
            "micro_batch_size", "recompute", "iteration_seconds", "iteration_low_seconds", "iteration_high_seconds", "mfu",
            "peak_memory_bytes", "fits")


class Layout(Row, PlannedMetrics):
    """A layout of a plan: the keys of `layouts` of `pipesim plan --json` (docs/reference/json.md), and ``cluster``.

    ``cluster`` names its plan among several, as the CSV does: "dgx-h100:64 fp8". Times are seconds, memory is bytes;
    a number that does not apply is None. `as_scenario` simulates it anew.
    """

    @property
    def schedule(self) -> str:
        """The schedule's name."""
        return str(self["schedule"])

    @property
    def scenario(self) -> str:
        """The text of a scenario that simulates it."""
        return str(self["scenario"])

    def as_scenario(self) -> Scenario:
        """The scenario that simulates it."""
        return Scenario("<plan>", self.scenario)


class Plan(Document[Layout]):
    """The fastest layouts, those of the first cluster first: rows with attributes, Layout."""

    def __init__(self, document: str, table: str) -> None:
        layouts = [Layout({"cluster": plan["label"], **layout})
                   for plan in json.loads(document)["plans"] for layout in plan["layouts"]]
        super().__init__(document, table, layouts, _COLUMNS)


def _command_line(options: Mapping[str, Any]) -> list[str]:
    """Keywords as the command line has them: max_gpus=8 is --max-gpus 8, a list has commas, True is a flag."""
    made: list[str] = []
    for key, value in options.items():
        name = "--" + key.replace("_", "-")
        if value is None or value is False:
            continue
        listed = isinstance(value, Sequence) and not isinstance(value, str)
        texts = map(str, _arguments.taken(key, "a list", value)) if listed else [str(value)]
        made += [name] if value is True else [name, ",".join(texts)]
    return made


def plan(model: Union[str, "os.PathLike[str]"], cluster: Union[str, Sequence[str]] = (), gpus: int = 0,
         global_batch_size: int = 0, seq_length: int = 0, changes: Mapping[str, Any] | None = None, *,
         progress: Optional[Callable[[str, int, int, Optional[float]], Any]] = None, **options: Any) -> Plan:
    """Finds the fastest layouts of a model on a number of GPUs, as `pipesim plan` does.

    model: a name of `pipesim.list("models")`, or the path of a Hugging Face config.json. Or the path of a scenario (.yaml),
      which then says what the other arguments do not; its layout is the baseline.
    cluster: a name of `pipesim.list("clusters")`, or several. global_batch_size: samples of an iteration. seq_length: tokens
      of a sample.
    changes: other scenario keys, {"cost.overlap_grad_reduce": True}.
    options: those of the command, underscores for dashes: tensor=[4, 8], memory_limit="72 GiB", best=3,
      tokens="15T", contention=0, no_offload=True (docs/how-to/plan.md). Options for files and text (json, export,
      wide) are refused.
    progress: called as progress(cluster, points decided, points, best seconds or None) some ten times a second.

    Mistakes are located in the command that it makes. Ctrl-C ends the search and raises KeyboardInterrupt;
    InfeasibleError says what would make a layout fit where none does.
    """
    start = os.fspath(model)
    starts = start.endswith((".yaml", ".yml"))
    given = {"model": "" if starts else start, "cluster": cluster, "gpus": gpus, "global_batch_size": global_batch_size,
             "seq_length": seq_length}
    asked = {name: value for name, value in given.items() if value} | options
    settings = [start] if starts else []
    settings += [f"{key}={value}" for key, value in texts_of(changes_of(changes, {}))]
    return Plan(*_pipesim.plan(_command_line(asked) + settings, progress))
