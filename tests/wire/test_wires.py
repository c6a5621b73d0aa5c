"""The properties that all wires share, their recognition, and the provider envelopes as a wire."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from tests.support.strategies import streams, transcripts
from tests.support.wire_round_trips import CONVERSATION, decoded, decoded_bytewise, decoded_transcript, encoded, frames
from toolcall_nb.core import events as ev
from toolcall_nb.core.call_states import FINAL_STATES
from toolcall_nb.core.events import Event
from toolcall_nb.core.json_text import json_text
from toolcall_nb.core.transcript import State, TextPart, ToolCall, Transcript
from toolcall_nb.errors import UsageError, WireError
from toolcall_nb.wire import WIRE_NAMES, WIRES, content_type, decoder, encoder, headers, recognised
from toolcall_nb.wire.sse import MAX_EVENT_BYTES

every_wire = pytest.mark.parametrize("name", WIRE_NAMES)


def test_there_are_four_wires_and_each_names_its_losses() -> None:
    assert WIRE_NAMES == ("chat", "ui", "ag-ui", "provider")
    assert all(WIRES[name].losses for name in WIRE_NAMES)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    for ask in (decoder, encoder, headers, content_type):
        with pytest.raises(UsageError, match=r"no wire 'grpc'\. There are chat, ui, ag-ui, provider"):
            ask("grpc")


@every_wire
def test_the_headers_declare_an_event_stream_without_buffering(name: str) -> None:
    assert content_type(name) == headers(name)["content-type"] == "text/event-stream; charset=utf-8"
    assert "no-cache" in headers(name)["cache-control"]
    assert headers(name)["x-accel-buffering"] == "no"


@every_wire
def test_a_whole_response_is_over(name: str) -> None:
    reader = decoder(name)
    data = encoded(name, CONVERSATION)
    last = data.rindex(b"data: ")
    reader.feed(data[:last])
    assert reader.is_over is (name == "provider")  # whose chain may end with what completes the text
    reader.feed(data[last:])
    assert reader.is_over
    assert not [event for event in reader.close() if isinstance(event, ev.Error)]


@every_wire
def test_a_response_that_is_cut_off_ends_in_an_error_that_says_what_to_do(name: str) -> None:
    data = encoded(name, CONVERSATION)
    events = decoded(name, data[: data.index(b"look. ") + len("look. ")])
    transcript = Transcript.from_events(events)
    assert "I will " in transcript.messages[-1].text
    assert transcript.messages[-1].parts[-1].text.endswith("ask again for the rest.")
    assert transcript.messages[-1].finish_reason == "error"


@every_wire
def test_an_endless_line_is_refused_and_open_blocks_are_closed(name: str) -> None:
    reader = decoder(name)
    reader.feed(encoded(name, [ev.TextDelta("t", "Hel")]).split(b"\n\n")[0] + b"\n\n")
    with pytest.raises(WireError, match="more than 16,777,216 bytes"):
        reader.feed(b"data: " + b"x" * MAX_EVENT_BYTES)
    first, *rest = reader.close()
    assert isinstance(first, ev.Diagnostic)
    assert [event.error_text for event in rest if isinstance(event, ev.Error)]


@every_wire
@given(events=streams())
def test_any_stream_can_be_written_and_read_and_cuts_make_no_difference(name: str, events: list[Event]) -> None:
    data = encoded(name, events)
    assert decoded_bytewise(name, data) == decoded(name, data)
    assert not [event for event in decoded(name, data) if isinstance(event, ev.Diagnostic) and event not in events]


@every_wire
def test_optional_ids_are_counted_from_1(name: str) -> None:
    reader = decoder(name)
    data = encoded(name, CONVERSATION, numbered=True)
    reader.feed(data)
    assert reader.last_event_id == str(data.count(b"data: "))
    numbered = encoded(name, CONVERSATION, numbered=True).split(b"\n\n")[2]
    reader.feed(numbered + b"\n")
    assert reader.last_event_id == "3"  # it was read, so it is not asked for again, though its blank line is to come
    reader.feed(b"retry: 250\n\n")
    assert reader.retry == 250


def test_values_that_json_cannot_hold_are_mended() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for value in ("\ud83d", {"\udc00": 10**30}, float("nan"), deep, {1: object}, {"a": {1, 2}}):
        json.loads(json_text({"value": value}))
    assert json_text(["é", "\ud83d"]) == r'["\u00e9","\ud83d"]'
    assert json_text(["é"]) == '["é"]'


# Telling them apart -------------------------------------------------------------------------------------------


@every_wire
def test_a_wire_is_recognised_by_its_first_event_wherever_it_comes(name: str) -> None:
    data = b": hello\n\nretry: 1\n\n" + encoded(name, CONVERSATION)
    assert recognised("text/event-stream; charset=utf-8", {}, data) == name
    first = data.index(b"data: ")
    whole = data.index(b"\n", first) + 1
    assert {recognised("text/event-stream", {}, data[:place]) for place in range(whole)} == {None}


def test_the_ai_sdks_header_is_enough() -> None:
    assert recognised(None, {"X-Vercel-AI-UI-Message-Stream": "v1"}, b"") == "ui"


@pytest.mark.parametrize(
    ("content_type", "first"),
    [
        ("application/json", b'{"type":"chunk","content":"x"}'),
        ("text/html", b"<html>"),
        ("text/event-stream", b'data: {"error": {"message": "No such model"}}\n\n'),
        ("text/event-stream", b'data: {"id":"x","object":"chat.completion.chunk","choices":[]}\n\n'),
        ("text/event-stream", b'event: message_start\ndata: {"type":"message_start","message":{}}\n\n'),
        ("text/event-stream", b'data: {"type":"error","error":{"message":"Overloaded"}}\n\n'),
        ("text/event-stream", b'data: {"type":"response.created"}\n\n'),
        ("text/event-stream", b"data: [DONE]\n\n"),
        ("text/event-stream", b""),
    ],
    ids=repr,
)
def test_a_response_in_no_wire_is_not_recognised(content_type: str, first: bytes) -> None:
    assert recognised(content_type, {}, first) is None


@pytest.mark.parametrize(
    ("first", "name"),
    [
        (b'{"type":"error","message":"No"}', "chat"),
        (b'{"type":"error","errorText":"No"}', "ui"),
        (b'{"type":"RUN_ERROR","message":"No"}', "ag-ui"),
        (b'{"type":"data-x","data":1}', "ui"),
        (b'{"type":"latitude-event","data":{"type":"chain-started"}}', "provider"),
    ],
)
def test_wires_are_recognised_also_by_later_events(first: bytes, name: str) -> None:
    assert recognised("text/event-stream", {}, b"data: " + first + b"\n\n") == name
    assert recognised("text/event-stream", {}, b"data: " + first + b"\n") == name


# Provider envelopes -------------------------------------------------------------------------------------------


def test_envelopes_are_written_as_they_are_read() -> None:
    found = frames(encoded("provider", [*CONVERSATION[11:19], CONVERSATION[-1]]))
    assert [frame["data"]["type"] for frame in found] == [
        *("text-delta", "text-delta", "tools-started", "provider-completed", "chain-completed"),
    ]
    assert found[0] == {"type": "provider-event", "data": {"type": "text-delta", "textDelta": "I will "}}
    assert found[3]["data"]["tokenUsage"] == {"promptTokens": 10, "completionTokens": 5, "totalTokens": 15}


@given(transcripts())
def test_everything_that_envelopes_can_express_reads_back(transcript: Transcript) -> None:
    """Without what ran inside of calls, which is none of the assistant's text and calls."""
    messages = [message for message in transcript.messages if message.role == "assistant"]
    said = [part for message in messages for part in message.parts if part.parent is None]
    found = decoded_transcript("provider", transcript.events())
    texts = [part.text for part in said if isinstance(part, TextPart) and part.text]
    assert "".join(part.text for part in parts_of(found) if isinstance(part, TextPart)) == "".join(texts)
    calls = {call.id: call for call in said if isinstance(call, ToolCall) and call.input is not ev.MISSING}
    for call in (part for part in parts_of(found) if isinstance(part, ToolCall)):
        if call.id in calls and len([part for part in said if isinstance(part, ToolCall)]) == len(calls):
            same_end(call, calls[call.id])


@pytest.mark.parametrize("name", ["chat", "provider"])
def test_what_a_nested_run_says_is_not_what_the_assistant_says(name: str) -> None:
    inside: list[Event] = [
        *(ev.StartStep(parent="c"), ev.TextStart("t", parent="c"), ev.TextDelta("t", "I look.", parent="c")),
        ev.ToolInputAvailable("d", "look", {}, tool_metadata={"parent": "c"}),
        *(ev.ToolOutputAvailable("d", 1), ev.TextEnd("t", parent="c"), ev.Error("Nothing", parent="c")),
    ]
    events = [ev.TextStart("t"), ev.TextDelta("t", "Wait"), ev.ToolInputAvailable("c", "ask", {}), *inside]
    events += [ev.ToolOutputAvailable("c", 2), ev.TextDelta("u", "Done."), ev.Finish()]
    (message,) = decoded_transcript(name, events).messages
    assert (message.text.split(), message.error) == (["Wait", "Done."], None)
    assert [call.id for call in message.calls] == (["c"] if name == "provider" else [])


def parts_of(transcript: Transcript) -> list[object]:
    return [part for message in transcript.messages for part in message.parts]


def same_end(found: ToolCall, sent: ToolCall) -> None:
    """A result is a result, any other end an error, and a call without an end has none."""
    if sent.state is State.OUTPUT_AVAILABLE:
        assert (found.state, json_text(found.output)) == (sent.state, json_text(sent.output))
    else:
        assert (found.state in FINAL_STATES) == (sent.state in FINAL_STATES or isinstance(sent.input, str))


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (ev.ToolOutputError("c", "It broke"), "It broke"),
        (ev.ToolOutputDenied("c"), "The call was denied."),
        (ev.ToolInterrupted("c"), "The call was interrupted."),
        (ev.ToolInputError("c", "f", {}, "No a"), "No a"),
    ],
    ids=lambda value: getattr(value, "type", None),
)
def test_every_end_but_a_result_is_an_error(end: Event, text: str) -> None:
    (call,) = decoded_transcript("provider", [ev.ToolInputAvailable("c", "f", {}), end, ev.Finish()]).messages[0].calls
    assert (call.state, call.error) == (State.OUTPUT_ERROR, text)


def test_an_error_is_the_last_envelope() -> None:
    events: list[Event] = [ev.Error("No"), ev.TextDelta("t", "still said"), ev.Finish(finish_reason="error")]
    text, error = decoded_transcript("provider", events).messages[0].parts
    assert (text.text, error.text) == ("still said", "No")


def test_an_output_is_sent_as_it_is_and_not_as_text() -> None:
    output = {"high": 21, "é": [None]}
    events: list[Event] = [ev.ToolInputAvailable("c", "f", {}), ev.ToolOutputAvailable("c", output)]
    assert decoded_transcript("provider", events).calls["c"].output == output
