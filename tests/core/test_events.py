"""The vocabulary: every chunk type, JSON both ways."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from tests.support.corpora import corpus
from tests.support.strategies import events
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import CHUNK_TYPES, Event, from_dict, to_dict
from toolcall_nb.errors import WireError

CHUNKS: list[dict[str, Any]] = [
    {"type": "start"},
    {"type": "start", "messageId": "m", "messageMetadata": {"a": 1}, "role": "user"},
    {"type": "finish", "finishReason": "length", "messageMetadata": [1]},
    {"type": "abort", "reason": "stopped"},
    {"type": "message-metadata", "messageMetadata": None},
    {"type": "start-step"},
    {"type": "finish-step"},
    {"type": "reset-step"},
    {"type": "error", "errorText": "no"},
    {"type": "text-start", "id": "t", "providerMetadata": {"p": {"k": 1}}},
    {"type": "text-start", "id": "t", "seam": True},
    {"type": "text-delta", "id": "t", "delta": "x"},
    {"type": "text-end", "id": "t"},
    {"type": "reasoning-start", "id": "r"},
    {"type": "reasoning-delta", "id": "r", "delta": "x"},
    {"type": "reasoning-end", "id": "r", "providerMetadata": {}},
    {"type": "tool-input-start", "toolCallId": "c", "toolName": "t", "dynamic": False, "title": "T", "open": True},
    {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "{"},
    {"type": "tool-input-available", "toolCallId": "c", "toolName": "t", "input": None, "toolMetadata": {}},
    {"type": "tool-input-error", "toolCallId": "c", "toolName": "t", "input": "{", "errorText": "no"},
    {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c", "isAutomatic": True, "signature": "s"},
    {"type": "tool-approval-response", "approvalId": "a", "approved": False, "reason": "no"},
    {"type": "tool-output-available", "toolCallId": "c", "output": [1], "preliminary": True, "providerExecuted": True},
    {"type": "tool-output-error", "toolCallId": "c", "errorText": "no"},
    {"type": "tool-output-denied", "toolCallId": "c"},
    {"type": "custom", "kind": "p.t"},
    {"type": "source-url", "sourceId": "s", "url": "u", "title": "t"},
    {"type": "source-document", "sourceId": "s", "mediaType": "m", "title": "t", "filename": "f"},
    {"type": "file", "url": "u", "mediaType": "m"},
    {"type": "reasoning-file", "url": "u", "mediaType": "m"},
    {"type": "data-weather", "data": {"a": 1}, "id": "1", "transient": True},
    {"type": "data-diagnostic", "data": {"message": "m", "action": "a", "line": 3}, "transient": True},
    {"type": "data-tool-retracted", "data": {"toolCallId": "c", "successor": "d"}, "transient": True},
    {"type": "data-tool-retracted", "data": {"toolCallId": "c", "text": "{}"}, "transient": True},
    {"type": "data-tool-interrupted", "data": {"toolCallId": "c"}, "transient": True},
    {"type": "data-tool-times", "data": {"toolCallId": "c", "started": 0.5, "tokens": 3}, "transient": True},
    {"type": "data-tool-execution", "data": {"toolCallId": "c", "status": "queued"}, "transient": True},
    {"type": "data-tool-log", "data": {"toolCallId": "c", "text": "1%\r2%"}, "transient": True},
    {"type": "data-status", "data": {"text": "Searching…"}, "transient": True},
    {"type": "tool-output-available", "toolCallId": "c", "output": "f", "display": {"text/html": "f"}, "seen": "…"},
    {"type": "tool-output-error", "toolCallId": "c", "errorText": "no", "traceback": "line 1"},
]


@pytest.mark.parametrize("chunk", CHUNKS, ids=lambda chunk: chunk["type"])
def test_every_chunk_reads_back_from_its_mapping(chunk: dict[str, Any]) -> None:
    assert to_dict(from_dict(chunk)) == chunk


def test_every_chunk_type_has_an_example_here() -> None:
    shown = {type(from_dict(chunk)).type for chunk in CHUNKS}
    assert shown == set(CHUNK_TYPES)


@pytest.mark.parametrize("chunk", CHUNKS, ids=lambda chunk: chunk["type"])
def test_unknown_fields_are_kept(chunk: dict[str, Any]) -> None:
    more = {**chunk, "somethingNew": {"x": [1]}}
    assert to_dict(from_dict(more)) == more


@settings(max_examples=400)
@given(events())
def test_events_survive_json(event: Event) -> None:
    assert from_dict(json.loads(json.dumps(to_dict(event)))) == event


def test_an_unknown_type_is_kept_whole() -> None:
    chunk = {"type": "tool-hologram", "x": 1}
    assert isinstance(from_dict(chunk), ev.Other)
    assert to_dict(from_dict(chunk)) == chunk


@pytest.mark.parametrize(
    "chunk",
    [
        {},
        {"type": 1},
        {"type": ""},
        {"type": "text-delta", "id": 1, "delta": "x"},
        {"type": "text-delta", "delta": "x"},
        {"type": "tool-input-available", "toolCallId": "c", "toolName": "t"},
        {"type": "data-diagnostic", "data": 1},
        [],
    ],
)
def test_a_mapping_that_is_not_a_chunk_is_a_wire_error_that_quotes_it(chunk: Any) -> None:
    with pytest.raises(WireError):
        from_dict(chunk)


def test_a_field_named_type_cannot_replace_the_type() -> None:
    assert to_dict(ev.ToolInputAvailable("c", "t", 1, extra={"type": "function"}))["type"] == "tool-input-available"


def test_recorded_streams_are_read_and_written_back() -> None:
    for path in sorted(corpus("ui_message_stream").glob("vercel_langchain__*.json")):
        for chunk in json.loads(path.read_text(encoding="utf-8")):
            assert to_dict(from_dict(chunk)) == chunk, path.name


def test_texts_that_come_whole_are_well_formed_and_a_delta_keeps_half_a_character() -> None:
    half = "\ud83d"
    given: dict[Any, Any] = {half: {"a": [half]}, 1: "kept"}
    start = ev.ToolInputStart(half, f"a{half}", title=half, provider_metadata=given)
    mended = "\ufffd"
    assert (start.tool_call_id, start.tool_name, start.title) == (mended, f"a{mended}", mended)
    assert start.provider_metadata == {mended: {"a": [mended]}, "1": "kept"}
    for kind in (ev.SourceUrl, ev.File):
        assert ev.to_dict(kind(half, half))["url"] == mended
    read = ev.from_dict({"type": "data-tool-retracted", "data": {"toolCallId": half, "text": "\ud83d\ude00"}})
    assert read == ev.ToolRetracted(mended, text="😀")
    for delta in (ev.TextDelta(half, half), ev.ReasoningDelta(half, half), ev.ToolLog("c", half)):
        assert half in ev.to_dict(delta).get("data", ev.to_dict(delta)).values()
    assert ev.ToolInputDelta(half, half) == ev.ToolInputDelta(mended, half)
