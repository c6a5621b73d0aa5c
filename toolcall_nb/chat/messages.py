"""Small messages and pieces of them, as a turn needs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message, State, ToolCall

__all__ = ["said", "settled", "text_block"]


def said(role: str, text: str, files: Sequence[ev.File] = ()) -> Iterator[Event]:
    """A whole message of one text, and of files where there are any."""
    yield ev.Start(role=role)
    yield from text_block("text-1", text)
    yield from files
    yield ev.Finish(finish_reason="stop")


def text_block(block: str, text: str) -> Iterator[Event]:
    """A whole block of text."""
    yield ev.TextStart(block)
    yield ev.TextDelta(block, text)
    yield ev.TextEnd(block)


def settled(message: Message) -> Message:
    """The message with its open calls interrupted."""
    if all(call.is_final for call in message.calls):
        return message
    parts = (
        replace(part, state=State.INTERRUPTED) if isinstance(part, ToolCall) and not part.is_final else part
        for part in message.parts
    )
    return replace(message, parts=tuple(parts))
