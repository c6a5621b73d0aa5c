"""The interface of a model: `Model`; its name, and the end of its streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message
from toolcall_nb.tools import Tool

__all__ = ["Model", "close_quietly", "model_name", "own_name"]


@runtime_checkable
class Model(Protocol):
    """A source of replies.

    `stream` yields the events of one reply: text and reasoning blocks, ``tool-input-*``, sources, files, and at the
    end usually ``finish`` with the reason and, in its metadata, the ``usage``. It does not run tools. It raises
    `toolcall_nb.errors.ModelError` if it cannot answer. The optional attribute ``name`` is shown to users. If the
    optional attribute ``asks_permission`` is True, a reply may leave calls with an approval request; the model is
    then asked again with the answers, and ends those calls itself. If the optional attribute ``takes_tools`` is False,
    the tools do not reach the model, and it is asked for a typed answer in the prompt. If ``has_price`` is True, its
    replies report what they cost. If ``may_run_calls`` is True, a reply may bring the results of its calls, so that a
    chat with ``eager=True`` starts none of them before the reply has ended.
    """

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        """Answers the last message; ``tools`` are those that may be called."""
        ...


def model_name(model: Model | Callable[..., Any]) -> str:
    """Returns the model's ``name``, a function's name, or the name of its class, for errors and the names of runs."""
    return own_name(model) or type(model).__name__


def own_name(model: Model | Callable[..., Any]) -> str:
    """Returns the model's ``name``, or a function's name; empty for an object without either."""
    names = (getattr(model, "name", None), getattr(model, "__name__", None))
    return next((name for name in names if isinstance(name, str) and name), "")


def close_quietly(stream: Any) -> None:
    """Closes a stream if it can be closed. Errors are ignored, since its items have been read."""
    with suppress(Exception):
        getattr(stream, "close", lambda: None)()
