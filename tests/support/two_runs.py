"""Two runs that differ: `BEFORE` and `AFTER`."""

from __future__ import annotations

from toolcall_nb.core.calls import CallRecord
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall, Transcript


def call(id: str, name: str, arguments: object, output: object = "ok", seconds: float | None = None) -> ToolCall:
    record = CallRecord(seconds=seconds)
    return ToolCall(id=id, name=name, input=arguments, output=output, state=State.OUTPUT_AVAILABLE, record=record)


def run(*parts: TextPart | ToolCall) -> Transcript:
    return Transcript((Message("user", (TextPart("Plan a trip."),)), Message("assistant", parts)))


BEFORE = run(
    call("1", "weather", {"city": "Lyon", "days": 7}, {"sky": "clear", "high": 18}, 0.4),
    call("2", "search", {"query": "hotels"}),
    call("3", "mail", {"to": "me"}),
    call("4", "notes", {"text": "x"}),
    TextPart("It will be clear.\n\nHave a good trip!"),
)


AFTER = run(
    call("4", "notes", {"text": "x"}),
    call("1", "weather", {"city": "Lyon", "days": 5}, {"sky": "rain", "high": 18}, 2.4),
    call("2", "search", {"query": "hotels"}),
    call("5", "book_bus", {"to": "Lyon"}),
    TextPart("It will rain.\n\nHave a good trip!"),
)
