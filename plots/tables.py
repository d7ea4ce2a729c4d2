"""Documents and tables that figures are drawn from, read strictly: a fault is named with its place."""
import collections
import csv
import dataclasses
import difflib
import json
import math
import os
import re
from functools import partial


class InputError(Exception):
    """An input that cannot be drawn; the message says where, and what was expected."""


# How columns are called on axes: what they are, their unit, what a value is divided by.
@dataclasses.dataclass(frozen=True)
class Quantity:
    name: str
    unit: str = ""
    scale: float = 1.0
    higher_is_better: bool = False

    def label(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name


# Columns that are no metrics of pipesim: keys, and quantities that only papers have.
_OTHERS = {
    "memory_limit": Quantity("memory limit (x p microbatches)"),
    "num_microbatches": Quantity("microbatches"),
    "micro_batch_size": Quantity("micro batch size"),
    "vocab_size": Quantity("vocabulary size"),
    "seq_length": Quantity("sequence length"),
    "hidden_size": Quantity("hidden size"),
    "h": Quantity("hidden size"),
    "s": Quantity("sequence length"),
    "simulated": Quantity(""),
    "pipeline_model_parallel_size": Quantity("pipeline devices"),
    "fits": Quantity("fits", higher_is_better=True),
    "devices": Quantity("devices"),
    "peak_microbatches": Quantity("peak activations", "microbatches"),
    "copy_over_compute": Quantity("k, copies over passes"),
    "saved_activation": Quantity("activation memory saved", "%", 0.01, higher_is_better=True),
    "speedup": Quantity("throughput, post-validation over all-reduce", higher_is_better=True),
    "mfu_gain": Quantity("gain in MFU", "points", 0.01, higher_is_better=True),
    "share": Quantity("speed over a whole layer's share", "%", 0.01, higher_is_better=True),
    "output_flops_over_layer": Quantity("FLOPs", "layers"),
    "output_parameters_over_layer": Quantity("parameters", "layers"),
}

# How values of a metric's unit stand on an axis: the unit there, and what they are divided by.
_SCALES = {"s": ("s", 1.0), "share": ("%", 0.01), "B": ("GiB", 2.0**30)}

# The program's table (`pipesim list metrics`): by name its title, unit, better and band.
METRICS: dict[str, dict] = {}


def use_metrics(path: str) -> None:
    METRICS.update({each["name"]: each for each in read_json(path)})


# The columns of a choice besides its schedule (docs/how-to/sweep.md).
CHOICE = ("options", "recompute", "offload", "memory_limit")


def quantity(column: str) -> Quantity:
    metric = METRICS.get(column)
    if metric:
        unit, scale = _SCALES.get(metric["unit"], ("", 1.0))
        return Quantity(metric["title"], unit, scale, metric["better"] > 0)
    short = column.rsplit(".", 1)[-1]
    if short in _OTHERS:
        return _OTHERS[short]
    for suffix, unit in (("_seconds", "s"), ("_bytes", "B")):
        if column.endswith(suffix):
            return Quantity(column.removesuffix(suffix).replace("_", " "), *_SCALES[unit])
    return Quantity(short.replace("_", " "))


@dataclasses.dataclass
class Table:
    """Rows of text by column; `keys` are the columns that say which point a row is. `refused` are rows of points
    that have no result: their keys."""
    source: str
    columns: list[str]
    keys: list[str]
    rows: list[dict[str, str]]
    refused: list[dict[str, str]] = dataclasses.field(default_factory=list)
    # base and share of the band between schedules (docs/reference/model.md, "Bands"), where it is known
    differences: tuple[float, float] | None = None
    _fastest: dict[tuple[str, ...], dict[str, str]] = dataclasses.field(default_factory=dict, init=False, repr=False)

    def require(self, column: str) -> str:
        if column in self.columns:
            return column
        near = difflib.get_close_matches(column, self.columns, 1, 0.5)
        hint = f"did you mean '{near[0]}'?" if near else "it has " + ", ".join(self.columns)
        raise InputError(f"{self.source}:1:1: no column '{column}'; {hint}")

    def number(self, row: dict[str, str], column: str) -> float | None:
        """Nothing where the cell is empty; a number may carry a unit that all rows share."""
        text = row.get(column, "")
        if text in ("", "-"):
            return None
        try:
            return float(text.split(" ")[0])
        except ValueError:
            place = f"{self.source}:{row.get('', '1')}:1"
            raise InputError(f"{place}: expected a number in '{column}', not '{text}'") from None

    def band(self, row: dict[str, str], column: str) -> tuple[float, float] | None:
        """Where measured runs near this one say that its seconds, or what goes with their inverse, would lie: against
        the fastest, where other schedules were run in the same setting."""
        ends = [self.number(row, f"iteration{end}_seconds") for end in ("_low", "", "_high")]
        rule = METRICS.get(column, {}).get("band", "none")
        value = self.number(row, column) if rule != "none" else None
        if None in ends or value is None:
            return None
        low, seconds, high = ends
        if self.differences and (fastest := self._fastest_beside(row)):
            base, share = self.differences
            slower = math.log(seconds / self.number(fastest, "iteration_seconds"))
            off = 1 if row is fastest else math.exp(base + share * abs(slower))
            low, high = seconds / off, seconds * off
        factors = (low / seconds, high / seconds) if rule == "seconds" else (seconds / high, seconds / low)
        return factors[0] * value, factors[1] * value

    def _fastest_beside(self, row: dict[str, str]) -> dict[str, str] | None:
        """The fastest schedule of the row's setting that fits; nothing where it is the only one."""
        keys = [key for key in self.keys if key != "schedule" and key not in CHOICE]

        def setting(of: dict[str, str]) -> tuple[str, ...]:
            return tuple(of.get(key, "") for key in keys)

        if not self._fastest:
            settings = collections.defaultdict(list)
            for each in self.rows:
                if self.fits(each) and self.number(each, "iteration_seconds"):
                    settings[setting(each)].append(each)
            for of, rows in settings.items():
                if len(rows) > 1:
                    self._fastest[of] = min(rows, key=lambda each: self.number(each, "iteration_seconds"))
        return self._fastest.get(setting(row))

    def fits(self, row: dict[str, str]) -> bool:
        """True if the point's memory fits, as far as the table knows a capacity."""
        return row.get("fits", "") not in ("no", "False")

    def is_numeric(self, column: str) -> bool:
        try:
            return all(self.number(row, column) is not None for row in self.rows)
        except InputError:
            return False

    def has_values(self, column: str) -> bool:
        return column in self.columns and any(row.get(column, "") not in ("", "-") for row in self.rows)

    def values(self, column: str) -> list[str]:
        """Different ones, in the order of their number, or of their first appearance."""
        found = list(dict.fromkeys(row[column] for row in self.rows))
        return sorted(found, key=lambda text: float(text.split(" ")[0])) if self.is_numeric(column) else found

    def only(self, conditions: list[str]) -> "Table":
        """Rows that meet all COLUMN=VALUE."""
        rows, refused = self.rows, self.refused
        for condition in conditions:
            column, found, value = condition.partition("=")
            if not found:
                raise InputError(f"command line:1:1: expected COLUMN=VALUE, not '{condition}'")
            self.require(column)
            left = [row for row in rows if row[column] == value]
            if not left:
                known = ", ".join(dict.fromkeys(row[column] for row in rows))
                raise InputError(f"{self.source}:1:1: no row with {column} '{value}'; there are {known}")
            refused = [row for row in refused if row.get(column) == value]
            rows = left
        return dataclasses.replace(self, rows=rows, refused=refused)

    def with_refused(self) -> "Table":
        """Every point, whether it has a result or not."""
        return dataclasses.replace(self, rows=self.rows + self.refused)

    def relative_to(self, condition: str, metric: str) -> "Table":
        """`metric` as its change against the row that has the condition and else the same keys."""
        if not condition:
            return self
        column, _, value = condition.partition("=")
        keys = self.keys_besides(column)
        bases = {tuple(row[key] for key in keys): self.number(row, metric) for row in self.only([condition]).rows}
        rows = []
        for row in self.rows:
            base, now = bases.get(tuple(row[key] for key in keys)), self.number(row, metric)
            if row[column] != value and base and now is not None:
                rows.append(row | {metric: repr(now / base - 1)})
        if not rows:
            raise InputError(f"{self.source}:1:1: no row to compare with those of {column} '{value}'")
        return dataclasses.replace(self, rows=rows)

    def _count(self, *columns: str) -> int:
        return len({tuple(row.get(column, "") for column in columns) for row in self.rows})

    def together(self, a: str, b: str) -> bool:
        """True if two columns advance together, like a swept key and the choice that it makes."""
        return self._count(a) == self._count(a, b) == self._count(b)

    def keys_besides(self, column: str) -> list[str]:
        """Without the column, and without the key that makes its choice."""
        def is_same(key: str) -> bool:
            return key == column or (column in CHOICE or key in CHOICE) and self.together(key, column)

        return [key for key in self.keys if not is_same(key)]

    def varying(self, besides: list[str]) -> list[str]:
        """Keys of several values that a figure does not show; of keys that advance together the first."""
        shown = [column for column in besides if column in self.columns]
        free: list[str] = []
        for key in self.keys:
            if key not in besides and self._count(key) > 1 and not any(map(partial(self.together, key), shown + free)):
                free.append(key)
        return free

    def differs_within(self, column: str, group: list[str]) -> bool:
        return column in self.columns and self._count(column, *group) > self._count(*group)

    def named(self, column: str, more: list[str]) -> "Table":
        """With what stands in other columns as a part of the texts of one: "zb-v (full recompute)"."""
        if not more:
            return self

        def name(row: dict[str, str]) -> str:
            parts = [_words(each, row.get(each, "")) for each in more]
            text = ", ".join(part for part in parts if part)
            return f"{row[column]} ({text})" if text else row[column]

        rows, refused = ([row | {column: name(row)} for row in part] for part in (self.rows, self.refused))
        return dataclasses.replace(self, rows=rows, refused=refused, keys=[key for key in self.keys if key not in more])


def _words(column: str, value: str) -> str:
    if value in ("", "none"):
        return ""
    if column in ("recompute", "offload"):
        return column if value == "full" else f"{value} {column}" if column == "recompute" else f"{column} {value}"
    return value if column in ("schedule", "options") else f"{column.replace('_', ' ')} {value}"


# Choices follow from the keys, unless a scenario lists a schedule several times.
_NOT_KEYS = {"point", "", "note", "refined", "error", "relative_error", "label", *CHOICE}


def with_choices(table: Table) -> Table:
    """With those choices among the keys that tell rows apart."""
    for column in CHOICE:
        if table.differs_within(column, table.keys):
            table.keys.append(column)
    return table


def is_key(column: str) -> bool:
    if column in _NOT_KEYS or column in METRICS or column in _OTHERS and len(column) > 1:
        return False
    return "." in column or not re.search(r"(_seconds|_bytes|_rate|_per_gpu|simulated|published|families)$", column)


def read_json(path: str) -> dict | list:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, numbers and depths beyond any
        at = f"{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else "1:1"
        raise InputError(f"{path}:{at}: this is no JSON document") from None


def part(document: dict | list, name: str, path: str, made_by: str) -> list:
    found = document.get(name) if isinstance(document, dict) else None
    if not _are_maps(found):
        raise InputError(f"{path}:1:1: expected a document with '{name}', as {made_by} writes it")
    return found


def _are_maps(values) -> bool:
    return isinstance(values, list) and all(isinstance(each, dict) for each in values)


def read_table(path: str) -> Table:
    if not path.endswith(".csv"):
        return _of_document(path, read_json(path))
    table = with_choices(_read_csv(path))
    if not table.rows:
        raise InputError(f"{path}:1:1: no rows")
    # The table that a sweep leaves beside its results.
    folder, name = os.path.split(path)
    failed = os.path.join(folder, name.replace("results", "failed"))
    if name in ("results.csv", "results.partial.csv") and os.path.exists(failed):
        table.refused = _read_csv(failed).rows
    return table


def _read_csv(path: str) -> Table:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            lines = [(number, line) for number, line in enumerate(file, 1) if not line.startswith("#")]
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}:1:1: this is no UTF-8 text") from None
    reader = csv.reader(line for _, line in lines)
    rows = []
    try:
        columns = next(reader, [])
        if len(columns) < 2:
            raise InputError(f"{path}:1:1: expected a table with named columns")
        for cells in reader:
            number = lines[reader.line_num - 1][0]
            if len(cells) != len(columns):
                raise InputError(f"{path}:{number}:1: {len(cells)} cells, but {len(columns)} columns")
            rows.append(dict(zip(columns, cells)) | {"": str(number)})
    except csv.Error as error:
        raise InputError(f"{path}:{lines[reader.line_num - 1][0]}:1: {error}") from None
    return Table(path, columns, [column for column in columns if is_key(column)], rows)


def _of_document(path: str, document: dict | list) -> Table:
    if _are_maps(document):
        return _of_validation(path, document)
    results = part(document, "results", path, "pipesim run --json or sweep --json")
    failed = document.get("failed", [])
    if not _are_maps(failed) or not all(isinstance(each.get("values", {}), dict) for each in results + failed):
        raise InputError(f"{path}:1:1: expected points with 'values', as pipesim sweep --json writes them")
    rows = [_plain(result) for result in results]
    refused = [_plain(result) for result in failed]
    columns = list(rows[0]) if rows else []
    keys = [str(key) for key in results[0].get("values", {})] if results else []
    return with_choices(Table(path, columns, [_column_of(key) for key in keys] + ["schedule"], rows, refused))


def _column_of(key: str) -> str:
    return f"sweep.{key}" if key in CHOICE else key


def _plain(result: dict) -> dict[str, str]:
    """Cells as a CSV has them: of a sweep's point the swept values too."""
    cells = {_column_of(key): value for key, value in result.get("values", {}).items()} | result
    return {key: "" if value is None else str(value) for key, value in cells.items()
            if isinstance(value, (str, int, float, type(None)))}


def _of_validation(path: str, cells: list) -> Table:
    """The table of `pipesim validate --json`: key=value in a cell's name become columns."""
    rows = []
    for cell in cells:
        row = {key: str(cell[key]) for key in ("table", "cell", "published", "simulated") if cell.get(key) is not None}
        row |= dict(re.findall(r"(\w+)=(\S+)", row.get("cell", "")))
        rows.append(row)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    rows = [{column: row.get(column, "") for column in columns} for row in rows]
    keys = [column for column in columns if column not in ("cell", "published", "simulated")]
    return Table(path, columns, keys, rows)


def joined(inputs: list[tuple[str, str]]) -> Table:
    """All inputs as one table; of several, `input` says which."""
    tables = [(name, read_table(path)) for name, path in inputs]
    if len(tables) == 1:
        return tables[0][1]
    columns = list(dict.fromkeys(column for _, table in tables for column in table.columns))
    keys = ["input"] + list(dict.fromkeys(key for _, table in tables for key in table.keys))
    def of_all(part_of) -> list[dict[str, str]]:
        return [{column: row.get(column, "") for column in columns + [""]} | {"input": name}
                for name, table in tables for row in part_of(table)]

    return Table(tables[0][1].source, columns + ["input"], keys, of_all(lambda table: table.rows),
                 of_all(lambda table: table.refused))
