"""Provider envelopes (seed 001), read as events, and through a model by a chat that finds the calls in the text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from toolcall_nb import Chat
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message, State, Transcript
from toolcall_nb.errors import WireError
from toolcall_nb.live_runs.status import RunStatus
from toolcall_nb.models import EnvelopeModel
from toolcall_nb.wire import Envelopes

STREAM = ["###", ": {", '"signature"', ': "CLIENT_TOOL_CALL"', ",", '"toolName"', ': "add_random_item_to_shop"', "}"]
CALL = "".join(STREAM)
LAID_OUT = '###: {\n  "signature": "CLIENT_TOOL_CALL",\n  "toolName": "add_random_item_to_shop"\n}'


def delta(text: str) -> dict[str, Any]:
    return {"type": "provider-event", "data": {"type": "text-delta", "textDelta": text}}


def about(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": "latitude-event", "data": {"type": kind, "uuid": "u", **data}}


def completed(text: Any = None, calls: Any = None, **more: Any) -> dict[str, Any]:
    return about("provider-completed", response={"text": text, "toolCalls": calls}, **more)


def read(*envelopes: Any) -> list[Event]:
    found = Envelopes()
    return [event for envelope in envelopes for event in found.take(envelope)] + found.close()


def text_of(events: list[Event]) -> str:
    return "".join(event.delta for event in events if isinstance(event, ev.TextDelta))


def test_text_deltas_are_one_block() -> None:
    assert read(delta("Hel"), delta("lo"), completed("Hello")) == [
        *(ev.TextStart("text-1"), ev.TextDelta("text-1", "Hel"), ev.TextDelta("text-1", "lo"), ev.TextEnd("text-1")),
        ev.Finish(),
    ]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("streamed", range(len(CALL) + 1))
def test_the_completed_text_brings_what_was_not_streamed_and_nothing_twice(streamed: int) -> None:
    assert text_of(read(*map(delta, CALL[:streamed]), completed(CALL))) == CALL


def test_a_completed_text_that_differs_is_reported() -> None:
    events = read(delta("One"), completed("Two"))
    assert text_of(events) == "One"
    (found,) = [event for event in events if isinstance(event, ev.Diagnostic)]
    assert (found.message, found.action) == (
        "the text of provider-completed is not the text that was streamed, but 'Two'",
        "What was streamed was kept.",
    )


def test_each_completed_ends_a_block_of_its_own() -> None:
    events = read(delta("One"), completed("One"), delta("One"), completed("One and two"))
    assert [event.id for event in events if isinstance(event, ev.TextStart)] == ["text-1", "text-2"]
    assert text_of(events) == "OneOne and two"


def test_usage_and_reason_are_in_the_finish() -> None:
    one = {"promptTokens": 10, "completionTokens": 2, "totalTokens": 12}
    events = read(completed("a", tokenUsage=one, finishReason="tool-calls"), completed("b", tokenUsage=one))
    usage = {"inputTokens": 20, "outputTokens": 4, "totalTokens": 24}
    assert events[-1] == ev.Finish(finish_reason="tool-calls", message_metadata={"usage": usage})
    assert read(completed("a", finishReason="unknown"))[-1] == ev.Finish(finish_reason="other")
    odd = {"promptTokens": None, "completionTokens": True, "totalTokens": float("inf")}
    assert read(completed("a", tokenUsage=odd))[-1] == ev.Finish()


def test_native_calls_are_emitted_once_and_get_their_results() -> None:
    calls = [{"id": "1", "name": "f", "arguments": {"a": 1}}, {"id": "2", "name": "g", "arguments": '{"b": 2}'}]
    result = {"type": "tool-result", "toolCallId": "1", "toolName": "f", "result": 3}
    bad = {"type": "tool-result", "toolCallId": "2", "toolName": "g", "result": "no", "isError": True}
    events = read(
        *(completed("", calls), about("tools-started", tools=calls)),
        about("tool-completed", messages=[{"role": "user", "content": "x"}, {"role": "tool", "content": [result]}]),
        about("tool-completed", messages=[{"role": "tool", "content": [result, bad]}]),
        about("tool-completed", messages=[]),
    )
    assert events == [
        *(ev.ToolInputAvailable("1", "f", {"a": 1}), ev.ToolInputAvailable("2", "g", {"b": 2})),
        *(ev.ToolOutputAvailable("1", 3), ev.ToolOutputError("2", "no"), ev.Finish()),
    ]


def test_a_call_may_lack_id_and_arguments_or_have_broken_ones() -> None:
    calls = [{"name": "f"}, {"id": "x", "name": "g", "arguments": '{"b": '}, {"id": "y"}, "no", None]
    assert read(about("tools-started", tools=calls))[:-1] == [
        ev.ToolInputAvailable("call-1", "f", {}),
        ev.ToolInputError("x", "g", '{"b": ', "The arguments of a tool call are no valid JSON."),
    ]


def test_a_chain_error_ends_the_stream() -> None:
    events = read(delta("One"), about("chain-error", error={"message": "Rate limit", "code": "x"}), delta("more"))
    assert events == [
        *(ev.TextStart("text-1"), ev.TextDelta("text-1", "One"), ev.TextEnd("text-1"), ev.Error("Rate limit")),
        ev.Finish(finish_reason="error"),
    ]
    assert isinstance(read(about("chain-error"))[0], ev.Error)
    assert read(about("chain-completed"), delta("more")) == [ev.Finish()]


def test_other_types_are_ignored() -> None:
    kinds = ("chain-started", "step-started", "provider-started", "step-completed", "tools-requested", "anything")
    assert read(*map(about, kinds)) == [ev.Finish()]


@pytest.mark.parametrize(
    "wrong",
    [None, 3, "text", [], {}, {"data": None}, {"data": {}}, {"type": 1}, {"data": {"type": "text-delta"}}],
)
def test_anything_but_an_envelope_is_a_wire_error(wrong: Any) -> None:
    with pytest.raises(WireError, match="Check who sends it"):
        read(wrong)


# In a chat --------------------------------------------------------------------------------------------------


def add_random_item_to_shop() -> dict[str, Any]:
    """Add a random item."""
    return {"success": True, "item": "lamp", "message": "Added random item: lamp to inventory"}


class Service:
    """Answers once with a call and then with text, and keeps what it was sent."""

    def __init__(self, *replies: list[Any]) -> None:
        self.replies = [*replies, [delta("Done."), completed("Done.")]]
        self.requests: list[list[Message]] = []

    def __call__(self, messages: Sequence[Message], tools: Any) -> Iterator[Any]:
        self.requests.append(list(messages))
        return iter(self.replies[len(self.requests) - 1])


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param([*map(delta, STREAM), completed(CALL)], id="as in the document"),
        pytest.param([completed(CALL)], id="only completed"),
        pytest.param([delta("###"), completed(CALL)], id="streamed in part"),
        pytest.param([*map(delta, STREAM[:-1]), completed("".join(STREAM))], id="the last brace is only in the text"),
        pytest.param([*map(delta, STREAM[:-1]), completed(LAID_OUT)], id="and the text is laid out anew"),
        pytest.param([*map(delta, STREAM), completed(LAID_OUT)], id="the whole is laid out anew"),
        pytest.param([json.dumps(delta("I will. \n" + CALL)), "", b"\n", json.dumps(completed())], id="lines of JSON"),
    ],
)
def test_the_signature_dialect_finds_the_call_in_the_envelopes(reply: list[Any]) -> None:
    service = Service(reply)
    chat = Chat(EnvelopeModel(service), tools=[add_random_item_to_shop], dialect="signature")
    message = chat.send("Add something")
    (call,) = message.calls
    assert (call.name, call.input, call.state) == ("add_random_item_to_shop", {}, State.OUTPUT_AVAILABLE)
    assert call.output == add_random_item_to_shop()
    assert message.text.endswith("Done.")
    assert "###" not in message.text
    assert len(service.requests) == 2


def test_texts_that_differ_only_in_blanks_are_the_same() -> None:
    events = read(*map(delta, STREAM), completed(f"{LAID_OUT}\n"))
    assert text_of(events) == "".join(STREAM)
    assert not [event for event in events if isinstance(event, ev.Diagnostic)]


@pytest.mark.parametrize("streamed", range(len(STREAM) + 1))
def test_a_function_is_a_model_whose_envelopes_are_read(streamed: int) -> None:
    asked = 0

    def service(messages: Any) -> Iterator[Any]:
        nonlocal asked
        asked += 1
        if asked == 1:
            yield from (delta("I will.\n"), *map(delta, STREAM[:streamed]), completed("I will.\n" + LAID_OUT))
        else:
            yield from (delta("Done."), completed("Done."))

    message = Chat(service, tools=[add_random_item_to_shop], dialect="signature").send("Add something")
    assert [call.state for call in message.calls] == [State.OUTPUT_AVAILABLE]
    assert message.text.startswith("I will.")
    assert message.text.endswith("Done.")


@pytest.mark.parametrize("before", ["", "I will.\n", "I will.\n\n"])
def test_each_status_of_the_document_is_shown_at_its_time(before: str) -> None:
    """What a page shows after each delta of the document's stream, also below a text."""
    chat = Chat(
        EnvelopeModel(Service([*([delta(before)] if before else []), *map(delta, STREAM), completed(before + CALL)])),
        tools=[add_random_item_to_shop],
        dialect="signature",
    )
    progress, seen = RunStatus(), [""]
    for event in chat.stream("Add something"):
        progress.apply(event)
        if progress.text != seen[-1]:
            seen.append(progress.text)
    first = seen.index("🔧 Waiting for tool call completion...")
    assert seen[first + 1] == "🔧 Tool call in progress..."
    executing = seen.index("🔧 Executing tool: add_random_item_to_shop...")
    assert "Writing…" not in seen[first:executing]


def test_native_calls_of_the_service_are_run_by_the_chat() -> None:
    calls = [{"id": "1", "name": "add_random_item_to_shop", "arguments": {}}]
    chat = Chat(EnvelopeModel(Service([completed("", calls)])), tools=[add_random_item_to_shop])
    assert [call.state for call in chat.send("?").calls] == [State.OUTPUT_AVAILABLE]


def test_calls_that_the_service_has_run_are_not_run_again() -> None:
    calls = [{"id": "1", "name": "lookup", "arguments": {}}]
    done = about("tool-completed", messages=[{"role": "tool", "content": [{"toolCallId": "1", "result": "found"}]}])
    chat = Chat(EnvelopeModel(Service([about("tools-started", tools=calls), done, delta("Yes.")])), tools=[])
    (call,) = chat.send("?").calls
    assert (call.state, call.output) == (State.OUTPUT_AVAILABLE, "found")


def test_a_line_that_is_no_json_is_an_error_in_the_transcript() -> None:
    chat = Chat(EnvelopeModel(Service(["{nope"])), tools=[])
    chat.send("?")
    assert isinstance(chat.last_error, WireError)
    assert Transcript.from_markdown(chat.transcript.to_markdown()) == chat.transcript
