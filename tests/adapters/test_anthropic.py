"""Anthropic's Messages API: raw streams, the SDK's helper, complete messages, lists of messages."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.adapter_streams import broken_streams, prefixes, read_events, read_items, read_whole
from tests.support.strategies import json_values
from toolcall_nb.adapters import format_of_item, format_of_whole
from toolcall_nb.adapters.anthropic.stream import AnthropicAdapter
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import (
    CustomPart,
    ErrorPart,
    ReasoningPart,
    SourceDocumentPart,
    SourceUrlPart,
    State,
    TextPart,
    ToolCall,
)
from toolcall_nb.sources.sdk_streams import ItemReader

Item = dict[str, Any]


def _start(message_id: str = "msg_1", **more: Any) -> Item:
    message = {"id": message_id, "type": "message", "role": "assistant", "model": "claude-x", "content": [], **more}
    return {"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}, **message}}


def _begin(index: int, kind: str, **block: Any) -> Item:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **block}}


def _delta(index: int, kind: str, **delta: Any) -> Item:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


def _stop(index: int) -> Item:
    return {"type": "content_block_stop", "index": index}


def _end(reason: str = "end_turn", usage: Item | None = None, **delta: Any) -> list[Item]:
    news = {"stop_reason": reason, "stop_sequence": None, **delta}
    return [{"type": "message_delta", "delta": news, "usage": usage or {"output_tokens": 7}}, {"type": "message_stop"}]


def _text(index: int, *pieces: str, **block: Any) -> list[Item]:
    return [
        _begin(index, "text", text="", **block),
        *(_delta(index, "text_delta", text=piece) for piece in pieces),
        _stop(index),
    ]


def _call(index: int, *pieces: str, kind: str = "tool_use", name: str = "search") -> list[Item]:
    return [
        _begin(index, kind, id=f"toolu_{index}", name=name, input={}),
        *(_delta(index, "input_json_delta", partial_json=piece) for piece in pieces),
        _stop(index),
    ]


_THINKING = [
    _begin(0, "thinking", thinking="", signature=""),
    _delta(0, "thinking_delta", thinking="Let me "),
    _delta(0, "thinking_delta", thinking="see."),
    _delta(0, "signature_delta", signature="sig"),
    _stop(0),
]
_SEARCHED = [{"type": "web_search_result", "url": "https://a.example", "title": "A"}]
_CITATION = {"type": "web_search_result_location", "url": "https://a.example", "title": "A", "cited_text": "a"}
_STREAM = [
    _start(),
    *_THINKING,
    {"type": "ping"},
    *_text(1, "I look ", "it up."),
    *_call(2, "", '{"query": "ca', 'ts"}', kind="server_tool_use", name="web_search"),
    _begin(3, "web_search_tool_result", tool_use_id="toolu_2", content=_SEARCHED),
    _stop(3),
    *_text(4, "Cats "),
    _begin(5, "text", text="", citations=[]),
    _delta(5, "citations_delta", citation=_CITATION),
    _delta(5, "text_delta", text="sleep"),
    _delta(5, "citations_delta", citation=_CITATION),
    _stop(5),
    *_text(6, "."),
    *_call(7, '{"a": 1}'),
    *_end("tool_use", {"output_tokens": 9, "cache_read_input_tokens": 4}),
]


# What a stream amounts to -------------------------------------------------------------------------------------


def test_a_stream_becomes_thinking_text_calls_results_and_sources_in_order() -> None:
    (message,) = read_items(_STREAM).messages
    thought, text, search, cited, source, call = message.parts
    assert thought == ReasoningPart("Let me see.", {"anthropic": {"signature": "sig"}})
    assert text == TextPart("I look it up.")
    assert isinstance(search, ToolCall)
    assert (search.id, search.name, search.input) == ("toolu_2", "web_search", {"query": "cats"})
    assert (search.state, search.output, search.provider_executed) == (State.OUTPUT_AVAILABLE, _SEARCHED, True)
    assert cited == TextPart("Cats sleep.")
    assert isinstance(source, SourceUrlPart)
    assert (source.url, source.title) == ("https://a.example", "A")
    assert isinstance(call, ToolCall)
    assert (call.id, call.input, call.state) == ("toolu_7", {"a": 1}, State.INPUT_AVAILABLE)
    assert call.provider_executed is None


def test_the_message_has_id_model_and_usage() -> None:
    (message,) = read_items(_STREAM).messages
    assert message.id == "msg_1"
    usage = {"inputTokens": 14, "outputTokens": 9, "totalTokens": 23, "cachedInputTokens": 4}
    assert message.metadata == {"model": "claude-x", "usage": usage}


def test_the_requests_that_compacted_the_context_count_too() -> None:
    iterations = [
        {"type": "compaction", "input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 50},
        {"type": "message", "input_tokens": 10, "output_tokens": 7},
        {"type": "advisor_message", "model": "claude-y", "input_tokens": 1_000, "output_tokens": 1_000},
    ]
    usage = {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 3}, "iterations": iterations}
    [message] = read_items([_start(), *_text(0, "Hi"), *_end("end_turn", usage)]).messages
    assert message.metadata["usage"] == {
        "inputTokens": 160,
        "outputTokens": 27,
        "totalTokens": 187,
        "cachedInputTokens": 50,
        "reasoningTokens": 3,
    }
    [step] = message.steps
    assert (step.start.provider_metadata or {})["anthropic"]["usage.iterations"] == iterations


def test_arguments_stream_as_they_are_written() -> None:
    deltas = [event for event in read_events(_STREAM) if isinstance(event, ev.ToolInputDelta)]
    assert [delta.input_text_delta for delta in deltas if delta.tool_call_id == "toolu_2"] == ['{"query": "ca', 'ts"}']


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool-calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content-filter"),
        ("pause_turn", "other"),
        ("what comes next year", "other"),
    ],
)
def test_the_finish_reason_is_translated(theirs: str, ours: str) -> None:
    finish = read_events([_start(), *_end(theirs)])[-1]
    assert isinstance(finish, ev.Finish)
    assert finish.finish_reason == ours


def test_the_explanation_of_a_refusal_is_text() -> None:
    details = {"type": "refusal", "explanation": "This may not be answered."}
    (message,) = read_items([_start(), *_end("refusal", stop_details=details)]).messages
    assert (message.text, message.finish_reason) == ("This may not be answered.", "content-filter")


def test_redacted_thinking_keeps_the_data_that_the_next_request_needs() -> None:
    (message,) = read_items([_start(), _begin(0, "redacted_thinking", data="xyz"), _stop(0), *_end()]).messages
    assert message.parts == (ReasoningPart("", {"anthropic": {"redactedData": "xyz"}}),)


def test_a_call_without_arguments_has_an_empty_input_and_one_that_starts_with_its_input_keeps_it() -> None:
    whole = _begin(1, "tool_use", id="b", name="roll", input={"sides": 6}, caller={"type": "code"})
    items = [_start(), *_call(0, ""), whole, _stop(1), *_end("tool_use")]
    first, second = read_items(items).calls.values()
    assert (first.input, second.input) == ({}, {"sides": 6})
    assert second.provider_metadata == {"anthropic": {"type": "tool_use", "caller": {"type": "code"}}}


def test_errors_of_anthropics_own_tools_are_failed_calls() -> None:
    error = {"type": "web_fetch_tool_result_error", "error_code": "unavailable"}
    items = [
        _start(),
        *_call(0, "{}", kind="server_tool_use", name="web_fetch"),
        _begin(1, "web_fetch_tool_result", tool_use_id="toolu_0", content=error),
        _stop(1),
        *_call(2, "{}", kind="mcp_tool_use", name="ask"),
        _begin(3, "mcp_tool_result", tool_use_id="toolu_2", is_error=True, content=[{"type": "text", "text": "No."}]),
        _stop(3),
        *_end(),
    ]
    fetch, ask = read_items(items).calls.values()
    assert (fetch.state, fetch.error) == (State.OUTPUT_ERROR, "unavailable")
    assert (ask.state, ask.error, ask.provider_executed) == (State.OUTPUT_ERROR, "No.", True)


def test_a_result_without_its_call_is_kept() -> None:
    block = {"tool_use_id": "srv_0", "content": _SEARCHED}
    (message,) = read_items([_start(), _begin(0, "web_search_tool_result", **block), _stop(0), *_end()]).messages
    (part,) = message.parts
    assert isinstance(part, CustomPart)
    assert part.kind == "anthropic.web_search_tool_result"


def test_blocks_of_unknown_types_are_kept() -> None:
    items = [
        _start(),
        _begin(0, "compaction", content=None),
        _delta(0, "compaction_delta", content="A sum"),
        _delta(0, "compaction_delta", content="mary."),
        _stop(0),
        _begin(1, "fallback", **{"from": {"model": "claude-x"}, "to": {"model": "claude-y"}}),
        _stop(1),
        *_end(),
    ]
    (message,) = read_items(items).messages
    compaction, fallback = message.parts
    assert compaction == CustomPart(
        "anthropic.compaction", {"anthropic": {"type": "compaction", "content": "A summary."}}
    )
    assert isinstance(fallback, CustomPart)
    assert message.metadata["model"] == "claude-y"


def test_a_citation_of_a_document_is_a_source_once() -> None:
    place = {"type": "page_location", "document_index": 0, "document_title": "Report", "start_page_number": 3}
    cited = _begin(0, "text", text="So.", citations=[place, {**place}])
    (message,) = read_items([_start(), cited, _stop(0), *_end()]).messages
    text, source = message.parts
    assert text == TextPart("So.")
    assert isinstance(source, SourceDocumentPart)
    assert (source.title, source.media_type) == ("Report", "application/pdf")


# Streams that are not as they should be -----------------------------------------------------------------------


def test_content_before_an_error_is_kept() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    (message,) = read_items([_start(), *_text(0, "Half ")[:2], error]).messages
    text, part = message.parts
    assert text == TextPart("Half ")
    assert isinstance(part, ErrorPart)
    assert "Overloaded" in part.text
    assert json.loads(part.details or "")["type"] == "overloaded_error"
    assert message.finish_reason == "error"


def test_a_repeated_message_start_is_ignored() -> None:
    once = [_start(), *_text(0, "Hi"), *_end()]
    assert read_items([_start(), *once]) == read_items(once)


def test_a_message_start_within_a_message_begins_a_step_and_loses_no_call() -> None:
    items = [_start("a"), *_call(0, '{"q": "Spark')[:2], _start("b"), *_call(0, '{"q": "Sparkle"}'), *_end("tool_use")]
    first, second = read_items(items).calls.values()
    assert (first.id, first.state, first.input) == ("toolu_0", State.OUTPUT_ERROR, '{"q": "Spark')
    assert (second.id, second.input) == ("toolu_0-2", {"q": "Sparkle"})
    assert sum(isinstance(event, ev.StartStep) for event in read_events(items)) == 1


def test_deltas_of_parallel_calls_go_to_their_calls() -> None:
    begins = [_begin(index, "tool_use", id=f"t{index}", name="f", input={}) for index in (0, 1)]
    pieces = ['{"a"', ': "', "é\\u00", "e9", '"}']
    deltas = [_delta(index, "input_json_delta", partial_json=piece) for piece in pieces for index in (0, 1)]
    first, second = read_items([_start(), *begins, *deltas, _stop(1), _stop(0), *_end("tool_use")]).calls.values()
    assert first.input == second.input == {"a": "éé"}


def test_arguments_that_are_not_json_are_kept_as_text() -> None:
    (call,) = read_items([_start(), *_call(0, '{"a": '), *_end("tool_use")]).calls.values()
    assert (call.state, call.input) == (State.OUTPUT_ERROR, '{"a": ')


def test_a_stream_may_be_cut_off_after_any_item() -> None:
    whole = read_items(_STREAM)
    for items in prefixes(_STREAM):
        (message,) = read_items(items).messages
        said = "".join(part.text for part in message.parts if isinstance(part, TextPart))
        assert "".join(part.text for part in whole.messages[0].parts if isinstance(part, TextPart)).startswith(said)
        assert list(whole.calls)[: len(message.calls)] == [call.id for call in message.calls]


def test_deltas_without_a_start_are_read_and_unrelated_items_give_a_diagnostic() -> None:
    transcript = read_items([_delta(0, "text_delta", text="Hi"), {"foo": 1}, None, *_end()], AnthropicAdapter())
    assert transcript.messages[0].text == "Hi"
    assert len(transcript.diagnostics) == 2


@given(broken_streams(_STREAM))
def test_no_malformed_stream_raises(items: list[Any]) -> None:
    read_items(items, AnthropicAdapter())


@given(st.lists(st.dictionaries(st.sampled_from(["type", "index", "delta", "message"]), json_values()), max_size=5))
def test_no_mapping_raises(items: list[Any]) -> None:
    read_items(items, AnthropicAdapter())


@given(st.lists(st.integers(0, 40), max_size=6))
def test_text_may_be_cut_anywhere(places: list[int]) -> None:
    said = "Straße 😀, \ud83d and more of it, **bold**."
    edges = sorted({0, len(said), *(place for place in places if place < len(said))})
    pieces = [said[start:end] for start, end in pairwise(edges)]
    whole = read_items([_start(), *_text(0, said), *_end()])
    assert read_items([_start(), *_text(0, *pieces), *_end()]) == whole


# Whole messages -----------------------------------------------------------------------------------------------


def test_a_complete_message_reads_like_its_stream() -> None:
    message: Item = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "model": "claude-x",
        "content": [
            {"type": "thinking", "thinking": "Let me see.", "signature": "sig"},
            {"type": "text", "text": "I look it up."},
            {"type": "server_tool_use", "id": "toolu_2", "name": "web_search", "input": {"query": "cats"}},
            {"type": "web_search_tool_result", "tool_use_id": "toolu_2", "content": _SEARCHED},
            {"type": "text", "text": "Cats "},
            {"type": "text", "text": "sleep", "citations": [_CITATION]},
            {"type": "text", "text": ".", "citations": None},
            {"type": "tool_use", "id": "toolu_7", "name": "search", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 10, "output_tokens": 9, "cache_read_input_tokens": 4},
    }
    assert read_whole(message) == read_items(_STREAM)
    assert read_whole(anthropic.types.Message.construct(**message)) == read_items(_STREAM)


@pytest.mark.parametrize(
    "foreign",
    [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
        {"type": "text", "text": "x"},
        [{"role": "user", "content": "Hi"}],
        [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
    ],
)
def test_formats_of_other_providers_are_not_recognised(foreign: Any) -> None:
    for found in (format_of_item(foreign), format_of_whole(foreign)):
        assert found is None or not found.name.startswith("anthropic")


def test_an_empty_stream_has_no_events() -> None:
    assert ItemReader().close() == []
