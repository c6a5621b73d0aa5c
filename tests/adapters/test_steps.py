"""Google's interactions and Mistral's conversations: streams of steps and complete replies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.conversation import _CONNECTOR, _REFERENCE, CONVERSATION, Item
from tests.support.adapter_streams import broken_streams, prefixes, read_events, read_items, read_whole
from tests.support.strategies import json_values
from toolcall_nb.adapters.google.interactions import InteractionsAdapter
from toolcall_nb.adapters.mistral import MistralAdapter
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import CustomPart, ErrorPart, ReasoningPart, SourceUrlPart, TextPart

# Google -------------------------------------------------------------------------------------------------------


def _reason(items: list[Any]) -> str | None:
    finish = read_events(items)[-1]
    assert isinstance(finish, ev.Finish)
    return finish.finish_reason


def _step(index: int, *deltas: Item, **step: Any) -> list[Item]:
    return [
        {"event_type": "step.start", "index": index, "step": step},
        *({"event_type": "step.delta", "index": index, "delta": delta} for delta in deltas),
        {"event_type": "step.stop", "index": index},
    ]


_ANNOTATION = {"type": "url_citation", "url": "https://a.example", "title": "A"}
_DONE = {
    "id": "i1",
    "status": "requires_action",
    "model": "gemini-x",
    "usage": {"total_input_tokens": 7, "total_output_tokens": 2, "total_thought_tokens": 1, "total_tokens": 10},
}
_INTERACTION = [
    {"event_type": "interaction.created", "interaction": {"id": "i1", "model": "gemini-x", "status": "in_progress"}},
    *_step(0, {"type": "thought_signature", "signature": "sig"}, type="thought"),
    *_step(1, {"type": "google_search_call", "arguments": {"queries": ["x"]}}, type="google_search_call", id="s"),
    *_step(2, {"type": "google_search_result", "result": [{"n": 1}]}, type="google_search_result", call_id="s"),
    *_step(
        3,
        {"type": "text", "text": "So "},
        {"type": "text_annotation_delta", "annotations": [_ANNOTATION]},
        {"type": "text", "text": "it is."},
        type="model_output",
    ),
    *_step(
        4,
        {"type": "arguments_delta", "arguments": '{"x"'},
        {"type": "arguments_delta", "arguments": ": 1}"},
        type="function_call",
        id="f1",
        name="f",
        arguments={},
    ),
    *_step(5, {"type": "sparkle", "glow": 3}, type="shine"),
    {"event_type": "interaction.completed", "interaction": _DONE},
]


def test_an_interaction_becomes_thinking_text_calls_and_results() -> None:
    (message,) = read_items(_INTERACTION).messages
    thought, search, text, source, call, other = message.parts
    assert thought == ReasoningPart("", {"google": {"thoughtSignature": "sig"}})
    assert (message.calls[0].name, message.calls[0].input) == ("google_search", {"queries": ["x"]})
    assert (message.calls[0].output, message.calls[0].provider_executed) == ([{"n": 1}], True)
    assert text == TextPart("So it is.")
    assert isinstance(source, SourceUrlPart)
    assert (search, call) == message.calls
    assert (message.calls[1].id, message.calls[1].input) == ("f1", {"x": 1})
    assert isinstance(other, CustomPart)
    assert other.kind == "google.shine"
    usage = {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10, "reasoningTokens": 1}
    assert (message.id, message.metadata) == ("i1", {"model": "gemini-x", "usage": usage})
    assert _reason(_INTERACTION) == "tool-calls"


def test_a_complete_interaction_reads_like_its_stream() -> None:
    steps = [
        {"type": "thought", "signature": "sig"},
        {"type": "google_search_call", "id": "s", "arguments": {"queries": ["x"]}},
        {"type": "google_search_result", "call_id": "s", "result": [{"n": 1}]},
        {"type": "model_output", "content": [{"type": "text", "text": "So it is.", "annotations": [_ANNOTATION]}]},
        {"type": "function_call", "id": "f1", "name": "f", "arguments": {"x": 1}},
        {"type": "shine", "glow": 3},
    ]
    assert read_whole({**_DONE, "object": "interaction", "steps": steps}) == read_items(_INTERACTION)


@given(broken_streams(_INTERACTION))
def test_no_malformed_interaction_raises(items: list[Any]) -> None:
    read_items(items, InteractionsAdapter())


# Mistral's conversations --------------------------------------------------------------------------------------


def test_a_stream_of_a_conversation_becomes_calls_results_text_and_sources() -> None:
    (message,) = read_items(CONVERSATION).messages
    search, text, source, call, handoff = message.parts
    assert (search, call) == message.calls
    theirs, ours = message.calls
    assert (theirs.name, theirs.input, theirs.output, theirs.provider_executed) == (
        "web_search",
        {"q": "cats"},
        {"found": 1},
        True,
    )
    assert text == TextPart("Cats sleep.")
    assert isinstance(source, SourceUrlPart)
    assert (ours.id, ours.name, ours.input) == ("c1", "f", {"q": 1})
    assert isinstance(handoff, CustomPart)
    usage = {"inputTokens": 9, "outputTokens": 2, "totalTokens": 11}
    assert message.metadata == {"model": "mistral-x", "usage": usage}
    assert _reason(CONVERSATION) == "tool-calls"


def test_a_whole_response_of_a_conversation_has_the_same_parts() -> None:
    outputs: list[Item] = [
        {"type": "tool.execution", **_CONNECTOR, "arguments": '{"q": "cats"}', "info": {"found": 1}},
        {"type": "message.output", "id": "m", "content": [{"type": "text", "text": "Cats sleep."}, _REFERENCE]},
        {"type": "function.call", "id": "f1", "name": "f", "tool_call_id": "c1", "arguments": {"q": 1}},
    ]
    found = read_whole({"object": "conversation.response", "conversation_id": "c", "outputs": outputs, "usage": {}})
    assert found.messages[0].parts == read_items(CONVERSATION).messages[0].parts[:-1]


def test_content_before_an_error_of_a_conversation_is_kept() -> None:
    error = {"type": "conversation.response.error", "message": "Overloaded", "code": 503}
    (message,) = read_items([*CONVERSATION[:5], error]).messages
    assert message.text == "Cats "
    assert isinstance(message.parts[-1], ErrorPart)
    assert "Overloaded" in message.parts[-1].text


@given(broken_streams(CONVERSATION))
def test_no_malformed_conversation_raises(items: list[Any]) -> None:
    read_items(items, MistralAdapter())


@pytest.mark.parametrize("items", [_INTERACTION, CONVERSATION], ids=["google", "mistral"])
def test_a_stream_may_be_cut_off_after_any_item(items: list[Item]) -> None:
    whole = read_items(items)
    for some in prefixes(items):
        (message,) = read_items(some).messages
        assert whole.messages[0].text.startswith(message.text)
        assert list(whole.calls)[: len(message.calls)] == [call.id for call in message.calls]


@given(st.dictionaries(st.sampled_from(["type", "event_type", "index", "delta", "step", "content"]), json_values()))
def test_no_mapping_raises(item: Item) -> None:
    read_items([item, None], InteractionsAdapter())
    read_items([item, None], MistralAdapter())
