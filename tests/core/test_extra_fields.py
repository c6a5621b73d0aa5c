"""Fields that the vocabulary does not name: kept by every form that can hold them, whatever they are called."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import json_values
from toolcall_nb import Transcript, create_stream_chunks
from toolcall_nb.adapters.ai_sdk.messages import from_tool_part, to_tool_part
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import from_dict, to_dict
from toolcall_nb.core.transcript import Message, State, ToolCall
from toolcall_nb.wire import decoder, encoder

NAMES = sorted({field.encode_name for cls in ev.CHUNK_TYPES.values() for field in msgspec.structs.fields(cls)})
NAMES += ["type", "id", "name", "data", "transient", "stepName", "rawInput", "state", "toolcall", "standIn", "note"]
CALLS = [
    ToolCall(id="a", name="t", state=State.OUTPUT_AVAILABLE, input={"a": 1}, output=2),
    ToolCall(id="a", name="t", state=State.OUTPUT_ERROR, input={}, error="no"),
    ToolCall(id="a", name="t", state=State.OUTPUT_DENIED, input={}),
    ToolCall(id="a", name="t", state=State.INTERRUPTED, input_text="{"),
]
EVENTS = [
    ev.Start(),
    ev.TextStart("t"),
    ev.StartStep(),
    ev.ToolInputStart("a", "t"),
    ev.ToolInputAvailable("a", "t", {}),
    ev.ToolOutputError("a", "no"),
    ev.ToolLog("a", "x"),
    ev.ToolInterrupted("a"),
    ev.Data("weather", 1),
    ev.Data("weather", 1, id="x", transient=True),
    ev.Other("steering"),
]
EXTRA = st.dictionaries(
    st.sampled_from([*NAMES, "extra"]), json_values() | st.fixed_dictionaries({"type": json_values()}), max_size=4
)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
@given(extra=EXTRA)
def test_a_chunk_keeps_every_extra_field_under_any_name(event: ev.Event, extra: ev.Object) -> None:
    event = msgspec.structs.replace(event, extra=extra)
    assert from_dict(to_dict(event)) == event
    assert to_dict(from_dict(to_dict(event))) == to_dict(event)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wire", ["ui", "ag-ui"])
@pytest.mark.parametrize("value", ["text", {"a": [1]}, None, 5, True])
def test_a_wire_keeps_an_extra_field_of_a_call_under_any_name(wire: str, name: str, value: Any) -> None:
    for call in CALLS:
        transcript = Transcript((Message("assistant", (msgspec.structs.replace(call, extra={name: value}),)),))
        to, of = encoder(wire), decoder(wire)
        sent = b"".join(map(to.encode, transcript.events())) + to.close()
        assert Transcript.from_events(of.feed(sent) + of.close()).messages[0].parts == transcript.messages[0].parts


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", [*NAMES, "extra"])
@pytest.mark.parametrize("value", ["text", {"a": [1]}, {"type": 1}, None, 5, []])
def test_markdown_and_ui_messages_keep_an_extra_field_of_a_call_under_any_name(name: str, value: Any) -> None:
    for call in CALLS:
        call = msgspec.structs.replace(call, extra={name: value})
        transcript = Transcript((Message("assistant", (call,)),))
        assert Transcript.from_markdown(transcript.to_markdown()) == transcript
        assert from_tool_part(to_tool_part(call)) == call


def test_a_callout_field_with_the_name_of_a_chunk_field_is_kept_on_the_chunk() -> None:
    chunks = create_stream_chunks("> [!tool t a]\n> type: x\n> toolName: y\n> delta: 3\n> output: 1\n")
    for chunk in chunks[1:3]:
        assert (chunk["delta"], chunk["toolCallId"]) == (3, "a")
        assert chunk["extra"]["type"] == "x"
    assert [chunk["type"] for chunk in chunks[1:3]] == ["tool-input-available", "tool-output-available"]
    assert (chunks[1]["extra"]["toolName"], chunks[2]["toolName"]) == ("y", "y")
