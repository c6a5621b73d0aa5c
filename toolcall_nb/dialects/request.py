"""What the text dialects share in writing a transcript for the next request."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import groupby
from typing import Any

from msgspec.structs import replace

from toolcall_nb.core.events import MISSING, Json
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall

__all__ = ["input_of", "is_unknown", "turns", "written_parts"]


def written_parts(message: Message) -> Iterator[TextPart | ToolCall]:
    """The parts that a model writes: calls, and text that is not blank."""
    for part in message.parts:
        if isinstance(part, ToolCall) or (isinstance(part, TextPart) and part.text.strip()):
            yield part


def input_of(call: ToolCall) -> Json:
    """The input of a call; an empty object where it never became complete."""
    return {} if call.input is MISSING else call.input


def is_unknown(call: ToolCall, known: Container[str] | None) -> bool:
    """Whether a call failed because there is no such tool. ``known`` None: the tools are not known."""
    return call.state is State.OUTPUT_ERROR and known is not None and call.name not in known


def turns(dialect: Any, messages: Iterable[Message], known: Container[str] | None) -> Iterator[Message]:
    """The messages with those of the assistant as text, and the results of their calls after each run of calls.

    ``dialect`` is one of the modules here. An assistant's message without text and calls is left out.
    """
    is_report = getattr(dialect, "is_report", lambda _: False)
    for message in messages:
        if message.role != "assistant":
            yield message
            continue
        for run in _runs(written_parts(message)):
            parts = tuple(part for part in run if isinstance(part, ToolCall) or not is_report(part.text))
            if parts:
                yield replace(message, parts=(TextPart(dialect.write(replace(message, parts=parts))),))
            results = [dialect.write_result(part, known) for part in parts if isinstance(part, ToolCall)]
            if results:
                yield Message("user", (TextPart("\n\n".join(results)),))


def _runs(parts: Iterable[TextPart | ToolCall]) -> Iterator[list[TextPart | ToolCall]]:
    """The parts in runs: text, and the calls that follow it."""
    run: list[TextPart | ToolCall] = []
    for is_call, group in groupby(parts, key=lambda part: isinstance(part, ToolCall)):
        if not is_call and run:
            yield run
            run = []
        run += group
    if run:
        yield run
