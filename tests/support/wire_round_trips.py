"""Encodes events in a wire format and decodes them again, for the wire tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.wire import decoder, encoder

__all__ = ["CONVERSATION", "decoded", "decoded_bytewise", "decoded_transcript", "encoded", "frames"]

CONVERSATION: tuple[Event, ...] = (
    ev.Start(message_id="m1", role="user"),
    *(ev.TextStart("1"), ev.TextDelta("1", "Weather in Lyon? 天气"), ev.TextEnd("1"), ev.Finish(finish_reason="stop")),
    ev.Start(message_id="m2", message_metadata={"model": "mock"}),
    ev.StartStep(),
    *(ev.ReasoningStart("r"), ev.ReasoningDelta("r", "Look it "), ev.ReasoningDelta("r", "up."), ev.ReasoningEnd("r")),
    *(ev.TextStart("1"), ev.TextDelta("1", "I will "), ev.TextDelta("1", "look. 😀"), ev.TextEnd("1")),
    *(ev.ToolInputStart("c1", "forecast"), ev.ToolInputDelta("c1", '{"city": "Ly'), ev.ToolInputDelta("c1", 'on"}')),
    *(ev.ToolInputAvailable("c1", "forecast", {"city": "Lyon"}), ev.ToolInputAvailable("c2", "alerts", {})),
    *(ev.ToolLog("c1", "asking\n"), ev.ToolOutputAvailable("c1", {"high": 21, "days": [1, None]})),
    ev.ToolOutputError("c2", "No such service", traceback="line 1"),
    *(ev.FinishStep(), ev.StartStep()),
    *(ev.ToolInputAvailable("c3", "book", {"n": 1}), ev.ToolApprovalRequest("a1", "c3")),
    *(ev.ToolApprovalResponse("a1", approved=False, reason="Too dear"), ev.ToolOutputDenied("c3")),
    *(ev.TextStart("2"), ev.TextDelta("2", "21 degrees."), ev.TextEnd("2")),
    *(ev.SourceUrl("s", "https://example.org/", "Example"), ev.Data("chart", [1, 2], id="d"), ev.FinishStep()),
    ev.Finish(
        finish_reason="stop",
        message_metadata={"model": "mock", "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}},
    ),
)
"""A question and its answer, with every final state of a call except interrupted."""


def encoded(name: str, events: Iterable[Event], **options: Any) -> bytes:
    """Returns the response body with these events."""
    writer = encoder(name, **options)
    return b"".join(map(writer.encode, events)) + writer.close()


def decoded(name: str, *fed: bytes) -> list[Event]:
    """Returns the events of a response that arrives in these pieces."""
    reader = decoder(name)
    return [event for data in fed for event in reader.feed(data)] + reader.close()


def decoded_bytewise(name: str, data: bytes) -> list[Event]:
    """Returns the events of a response that arrives byte by byte."""
    return decoded(name, *(data[place : place + 1] for place in range(len(data))))


def decoded_transcript(name: str, events: Iterable[Event]) -> Transcript:
    """Encodes and decodes the events; returns the transcript."""
    return Transcript.from_events(decoded(name, encoded(name, events)))


def frames(data: bytes) -> list[Any]:
    """Returns the JSON object of each ``data:`` line of a response; ``[DONE]`` as text."""
    lines = [line.removeprefix("data: ") for line in data.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line) if line.startswith("{") else line for line in lines]
