"""Explains why two transcripts, messages or tool calls are not equal, as lines for pytest: `compare_values`."""

from __future__ import annotations

from difflib import unified_diff
from typing import Any

from toolcall_nb.core.escaping import visible
from toolcall_nb.core.transcript import Message, ToolCall, Transcript


def compare_values(left: object, right: object) -> list[str] | None:
    """Returns a heading and the lines that differ; None for values that are no transcripts, messages or calls."""
    if type(left) is not type(right) or not isinstance(left, Transcript | Message | ToolCall):
        return None
    one, other = _transcript_of(left), _transcript_of(right)
    right_text, left_text = (each.to_markdown().splitlines() for each in (other, one))
    lines = [*map(visible, unified_diff(right_text, left_text, n=2, lineterm=""))][2:]  # without the names of files
    kind = type(left).__name__.lower().replace("toolcall", "tool call")
    heading = f"The two {kind}s are not equal ({_count(one)} == {_count(other)})"
    return [heading, "+ is only on the left of ==, - only on the right", *lines]


def _transcript_of(value: Any) -> Transcript:
    if isinstance(value, ToolCall):
        value = Message("assistant", (value,))
    return Transcript((value,)) if isinstance(value, Message) else value


def _count(transcript: Transcript) -> str:
    calls = sum(len(message.calls) for message in transcript.messages)
    return f"{len(transcript.messages)} messages, {calls} tool calls"
