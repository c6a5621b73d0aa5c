"""What a model is to the rest: something that streams one reply as events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message
from toolcall_nb.tools import Tool

__all__ = ["Model", "model_name"]


@runtime_checkable
class Model(Protocol):
    """A source of replies.

    `stream` gives the events of ONE reply: text and reasoning blocks, ``tool-input-*``, sources, files, and at
    the end perhaps ``finish`` with the reason and, in its metadata, the ``usage``. It does not run tools. What
    cannot be answered raises `toolcall_nb.errors.ModelError`. An optional attribute ``name`` is shown to people.
    With an attribute ``asks_permission`` that is True it may leave calls with an approval request, and is asked again
    with the answer, which brings them to their ends.
    """

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        """Answer the last message; the tools are those that may be called."""
        ...


def model_name(model: Model | Callable[..., Any]) -> str:
    """The model's ``name``, or a function's, or that of its class."""
    for name in (getattr(model, "name", None), getattr(model, "__name__", None)):
        if isinstance(name, str) and name:
            return name
    return type(model).__name__
