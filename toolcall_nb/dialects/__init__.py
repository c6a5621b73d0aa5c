"""Dialects: how a model without a tool API writes a call in its text. One file each.

A dialect instructs the model, detects calls in the stream of its text, and writes calls and their results back for
the next request. What it says to people beyond the card (a status, a line in the message) it says in the words of
its own document.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from toolcall_nb.core.dialect_names import DIALECTS
from toolcall_nb.core.events import Diagnostic, Event
from toolcall_nb.core.transcript import Message, ToolCall
from toolcall_nb.errors import UsageError

__all__ = [
    "DIALECTS",
    "Detector",
    "ToolDescription",
    "detector",
    "executing",
    "instructions",
    "remark",
    "report",
    "write",
    "write_back",
]

_MODULES = {"json": "json_call"}


class Detector(Protocol):
    """Finds calls in text that comes in pieces, cut anywhere."""

    @property
    def held(self) -> int:
        """How many characters are withheld, because they may still become a call."""

    def feed(self, text: str) -> list[Event]:
        """Take in more text; return the events that are certain now."""

    def close(self) -> list[Event]:
        """The text is complete; return the rest."""


@runtime_checkable
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


def instructions(name: str, tools: Any) -> str:
    """Returns what to tell a model in its system prompt, so that it calls ``tools`` in the dialect ``name``.

    ``tools`` is whatever a `Chat` takes, or a list of `ToolDescription`. Raises `UsageError` for a dialect that there
    is not, and for what is no tool.
    """
    tell: Callable[[Sequence[ToolDescription]], str] = _dialect(name).instructions
    if isinstance(tools, list | tuple) and all(isinstance(tool, ToolDescription) for tool in tools):
        return tell(tools)
    from toolcall_nb.tools import as_tools

    return tell(as_tools(tools))


def write(name: str, message: Message) -> str:
    """The text and the calls of a message as a model writes them in the dialect ``name``, without results."""
    written: Callable[[Message], str] = _dialect(name).write
    return written(message)


def write_back(name: str, messages: Iterable[Message], known: Container[str] | None = None) -> list[Message]:
    """Messages for the next request, those of the assistant as text in the dialect ``name``.

    One with calls is parted after each run of them, and a message of the user with their results follows. ``known``
    are the names of the tools that there are (None: not known). What `report` and `remark` added is left out, and so
    is what is neither text nor call. ``native`` leaves the messages as they are.
    """
    if name == "native":
        return list(messages)
    from toolcall_nb.dialects.request import turns

    return [*turns(_dialect(name), messages, known)]


def report(name: str, call: ToolCall, known: Container[str] | None = None) -> str | None:
    """What the dialect ``name`` adds to the message when ``call`` has ended, if anything, as Markdown."""
    said: str | None = _optional(name, "report")(call, known)
    return said


def executing(name: str, tool: str) -> str | None:
    """The status that the dialect ``name`` shows while ``tool`` runs, if any."""
    said: str | None = _optional(name, "executing")(tool)
    return said


def remark(name: str, diagnostic: Diagnostic) -> str | None:
    """What the dialect ``name`` adds to the message for a call that could not be read, if anything, as Markdown."""
    said: str | None = _optional(name, "remark")(diagnostic)
    return said


def _optional(name: str, ability: str) -> Callable[..., Any]:
    """An ability that most dialects lack: their cards say it all."""
    found: Callable[..., Any] = getattr(None if name == "native" else _dialect(name), ability, lambda *_: None)
    return found


def _dialect(name: str) -> Any:
    if name in DIALECTS:
        return import_module(f"toolcall_nb.dialects.{_MODULES.get(name, name)}")
    near = get_close_matches(name, DIALECTS, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UsageError(f"There is no dialect {name!r}.{hint} The dialects are: {', '.join(DIALECTS)}.")
