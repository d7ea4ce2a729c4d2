"""Rows of tables as values with attributes, and tables of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, Union, overload

from . import _tables


class Row(Mapping[str, Any]):
    """A row of a table or a document: its keys are attributes too. Times are seconds, memory is bytes.

    A number that does not apply is None. Rows are equal where their keys and values are, and can be pickled.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._row = dict(row)

    def _keys(self) -> Mapping[str, Any]:
        return self._row

    def __getitem__(self, key: str) -> Any:
        return self._keys()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys())

    def __len__(self) -> int:
        return len(self._keys())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            near = difflib.get_close_matches(name, dir(self), 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"{type(self).__name__} has no {name!r}{hint}") from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(key for key in self if key.isidentifier())})

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def to_dict(self) -> dict[str, Any]:
        """The keys and values as a dict of its own."""
        return dict(self._keys())

    def _repr_html_(self) -> str:
        return _tables.html_of([self], [key for key, value in self.items() if not isinstance(value, (list, dict))])

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={_tables.text_of(key, value)}" for key, value in self.items()
                          if value is not None and not isinstance(value, (list, dict)))
        return f"<pipesim.{type(self).__name__} {shown}>"


RowT = TypeVar("RowT", bound=Mapping[str, Any])


class Rows(Sequence[RowT], Generic[RowT]):
    """Rows of one table in their order: a sequence that a notebook shows and pandas takes."""

    def __init__(self, rows: Sequence[RowT], columns: Sequence[str], notes: Sequence[str] = ()) -> None:
        self._rows = list(rows)
        self._columns = tuple(columns)
        self.left_out = list(notes)  # "name: reason", of a search

    @overload
    def __getitem__(self, which: int) -> RowT: ...
    @overload
    def __getitem__(self, which: slice) -> Sequence[RowT]: ...

    def __getitem__(self, which: Union[int, slice]) -> Union[RowT, Sequence[RowT]]:
        return self._rows[which]

    def __len__(self) -> int:
        return len(self._rows)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row each: numbers are numbers, what does not apply is missing; needs pandas."""
        return _tables.frame_of(self._rows)

    def _repr_html_(self) -> str:
        return _tables.html_of(self._rows, self._columns)

    def __repr__(self) -> str:
        return _tables.plain_of(self._rows, self._columns)


class Document(Rows[RowT]):
    """The rows of a command's document: ``json`` is that of the command, byte for byte, ``text`` what it prints."""

    def __init__(self, json: str, text: str, rows: Sequence[RowT], columns: Sequence[str],
                 refused: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(rows, columns)
        self.json = json
        self.text = text
        self.refused = list(refused)  # schedules that cannot be met, and why: (label, reason)

    def to_dict(self) -> Any:
        """The document as a value."""
        import json

        return json.loads(self.json)

    def __repr__(self) -> str:
        return self.text.rstrip("\n")
