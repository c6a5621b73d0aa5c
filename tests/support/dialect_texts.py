"""Helpers of the dialect tests: detect calls, compare events, generate texts with calls and with almost-calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event
from toolcall_nb.core.transcript import TextPart, ToolCall, Transcript
from toolcall_nb.dialects import detector

__all__ = ["all_text", "cut_everywhere", "detect", "dialect_texts", "event_summary", "steps"]


def detect(dialect: str, *pieces: str) -> list[Event]:
    """Returns the events of a text that arrives in these pieces."""
    found = detector(dialect)
    return [event for piece in pieces for event in found.feed(piece)] + found.close()


def cut_everywhere(text: str) -> Iterator[list[str]]:
    """Yields the text whole, one character at a time, and split in two at every position."""
    yield [text]
    yield list(text)
    yield from ([text[:place], text[place:]] for place in range(1, len(text)))


def steps(events: list[Event]) -> list[Event]:
    """Joins successive deltas of the same block or call; leaves out diagnostics."""
    joined: list[Event] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, ev.TextDelta) and isinstance(last, ev.TextDelta) and last.id == event.id:
            joined[-1] = ev.TextDelta(event.id, last.delta + event.delta)
        elif isinstance(event, ev.ToolInputDelta) and isinstance(last, ev.ToolInputDelta):
            joined[-1] = ev.ToolInputDelta(event.tool_call_id, last.input_text_delta + event.input_text_delta)
        elif not isinstance(event, ev.Diagnostic):
            joined.append(event)
    return joined


def all_text(events: list[Event]) -> str:
    """Returns all text deltas, joined."""
    return "".join(event.delta for event in events if isinstance(event, ev.TextDelta))


def event_summary(events: list[Event]) -> list[Any]:
    """Returns the parts of the events' transcript in the form that the fixtures use."""
    transcript = Transcript.from_events(events)
    parts: list[Any] = []
    for part in transcript.messages[0].parts if transcript.messages else ():
        if isinstance(part, TextPart):
            parts.append(part.text)
        elif isinstance(part, ToolCall):
            given = None if part.input is MISSING else part.input
            parts.append([part.id, part.name, given, *([part.error] if part.error is not None else [])])
    return parts + [{"diagnostic": diagnostic.message} for diagnostic in transcript.diagnostics]


_COMMON = ["{", "}", '"', '\\"', "\\", ",", ":", "[", "]", "1", "-", "null", " ", "\n", "\r\n", "\r", "text ", "é😀"]
_FENCES = ["```json\n", "```\n", "\n```\n", "```", "~~~JSON\n", "~~~\n", "```py\n", "````\n", "   ```json"]
_SIGNATURE = [
    *("###", "###:", " ###: ", "\n###: {", "# H", '"toolName"', '"toolName": "x"', '"parameters": {', '"id": "q"'),
    '###: {"toolName":"a","parameters":{"b":[1,{"c":"}"}]}}',
    '\n###: {"toolName":"b"}\n',
    '\n\n###: {"toolName": "c", "parameters": 3}\n\n',
    '\n###: {"signature": "no", "params": {"x": "\n"}, "toolName": "d", "id": "q"}',
]
_JSON = [
    *('"tool": "x"', '"params": {', '"id": "q"', '{"a":1}', '{"tool": 5, "params": {}}'),
    '{"tool":"a","params":{"b":[1,{"c":"}"}]}}',
    '\n```json\n{"params":{"z":"```"},"tool":"f"}\n```\n',
    '{"a": {"tool":"q","params":{}}}',
    '{"tool":"a","params":{"b":"\n```\n',
]
_CALLOUT = ["> [!tool a b]\n", "> input:\n", ">   x: 1\n", "> : : broken\n", "\n\n> [!tool c]\n> input: 1\n\n"]


def dialect_texts(dialect: str) -> st.SearchStrategy[str]:
    """Generates texts with calls of the dialect: complete, malformed and truncated."""
    own = {"signature": _SIGNATURE, "json": _JSON, "callout": _CALLOUT}[dialect]
    return st.lists(st.sampled_from([*_COMMON, *_FENCES, *own, *own, *own]), max_size=14).map("".join)
