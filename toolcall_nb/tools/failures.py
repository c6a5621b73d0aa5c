"""Failures that a tool tells in its own words.

    ToolFailed                   its text is shown as it is, without the name of a Python class
    ├── InvalidInput             "Invalid input: …": the call asks for what cannot be
    ├── InputOutputFailed        "IO error: …": the file system refused
    └── ExecutionFailed          "Tool execution failed: …": what was started did not end well

Any tool may raise them. The three texts are those of seed 004.
"""

from __future__ import annotations

from typing import Any

__all__ = ["ExecutionFailed", "InputOutputFailed", "InvalidInput", "ToolFailed"]


class ToolFailed(Exception):
    """A tool could not do what it was called for; the text says why, for the person and for the model.

    ``output`` is what it has given nevertheless, any value; None for nothing.
    """

    opening = ""
    """What the text begins with."""

    def __init__(self, *texts: object, output: Any = None) -> None:
        super().__init__(*texts)
        self.output = output

    def __str__(self) -> str:
        return self.opening + super().__str__()


class InvalidInput(ToolFailed):
    """The arguments are well formed, but ask for what cannot be done."""

    opening = "Invalid input: "


class InputOutputFailed(ToolFailed):
    """A file could not be read or written."""

    opening = "IO error: "


class ExecutionFailed(ToolFailed):
    """A command or a server did not do its work."""

    opening = "Tool execution failed: "
