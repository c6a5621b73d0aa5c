"""What a model is sent."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from toolcall_nb import dialects
from toolcall_nb.core.transcript import Message, TextPart, Transcript
from toolcall_nb.tools import Registry

__all__ = ["request"]


def request(transcript: Transcript, dialect: str, tools: Registry) -> Sequence[Message]:
    """The messages of the next request: the transcript; in a text dialect as text, with the instructions for it.

    The instructions are sent, not said: they stand at the end of the first system prompt.
    """
    messages = list(transcript.messages)
    if messages and messages[-1].role == "assistant" and not messages[-1].parts:
        del messages[-1]  # the answer that has just begun
    if dialect == "native":
        return messages
    messages = dialects.write_back(dialect, messages, tools)
    if tools:
        part = TextPart(dialects.instructions(dialect, tuple(tools.values())))
        place = next((n for n, message in enumerate(messages) if message.role == "system"), None)
        if place is None:
            messages.insert(0, Message("system", (part,)))
        else:
            messages[place] = replace(messages[place], parts=(*messages[place].parts, part))
    return messages
