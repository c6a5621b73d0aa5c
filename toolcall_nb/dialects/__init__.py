"""Dialects: how a model without a tool API writes a call in its text. One file each.

A dialect can instruct the model, detect calls in the stream of its text, and write calls back for its next turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Protocol

from toolcall_nb.errors import UsageError

if TYPE_CHECKING:
    from toolcall_nb.events import Event
    from toolcall_nb.transcript import Message

__all__ = ["DIALECTS", "Detector", "ToolDescription", "detector", "instructions", "write_back"]

DIALECTS = ("callout",)
"""The names of the dialects."""


class Detector(Protocol):
    """Finds calls in text that comes in pieces, cut anywhere."""

    @property
    def held(self) -> int:
        """How many characters are withheld, because they may still become a call."""

    def feed(self, text: str) -> list[Event]:
        """Take in more text; return the events that are certain now."""

    def close(self) -> list[Event]:
        """The text is complete; return the rest."""


class ToolDescription(Protocol):
    """What a dialect needs to know of a tool."""

    @property
    def name(self) -> str:
        """Its name, by which the model calls it."""

    @property
    def description(self) -> str:
        """What it does, for the model."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of its input."""


def detector(name: str) -> Detector:
    """A new detector for the dialect ``name``. Raises `UsageError` for a name that is none."""
    made: Detector = _dialect(name).Detector()
    return made


def instructions(name: str, tools: Sequence[ToolDescription]) -> str:
    """What to tell a model, in its system prompt, so that it calls ``tools`` in the dialect ``name``."""
    tell: Callable[[Sequence[ToolDescription]], str] = _dialect(name).instructions
    return tell(tools)


def write_back(name: str, message: Message) -> str:
    """An assistant message with its calls and their results as text in the dialect ``name``, for the next request."""
    write: Callable[[Message], str] = _dialect(name).write_back
    return write(message)


def _dialect(name: str) -> Any:
    if name == "callout":
        from toolcall_nb.dialects import callout

        return callout
    near = get_close_matches(name, DIALECTS, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UsageError(f"There is no dialect {name!r}.{hint} The dialects are: {', '.join(DIALECTS)}.")
