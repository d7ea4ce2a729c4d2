"""The exceptions of pipesim."""

from __future__ import annotations


class Error(Exception):
    """Every error that is not pipesim's own fault."""


class InputError(Error, ValueError):
    """Something that a person wrote is wrong; the message says what was expected and the nearest name.

    ``file`` is a path, ``<dict>`` for a scenario that was a dict (line and column are those of the text
    that the message shows), ``<change>`` for a change, or a schedule's name in brackets. ``line`` and
    ``column`` count from 1, 0 where they are not known. ``text`` is the line itself.
    """

    def __init__(self, message: str, file: str = "", line: int = 0, column: int = 0, text: str = "") -> None:
        super().__init__(message)
        self.file = file
        self.line = line
        self.column = column
        self.text = text


class InfeasibleError(Error):
    """The request is understood but cannot be met; the message says why and the nearest that can."""
