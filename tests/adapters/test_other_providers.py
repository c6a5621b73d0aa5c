"""Bedrock's Converse, Cohere's chat and Ollama's own API: streams, complete replies, lists of messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.adapter_streams import broken_streams, prefixes, read_events, read_items, read_whole
from tests.support.strategies import json_values
from toolcall_nb.adapters import format_of_item, format_of_whole
from toolcall_nb.adapters.base import Adapter
from toolcall_nb.adapters.bedrock import BedrockAdapter
from toolcall_nb.adapters.cohere import CohereAdapter
from toolcall_nb.adapters.ollama import OllamaAdapter
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import (
    CustomPart,
    ErrorPart,
    FilePart,
    ReasoningPart,
    SourceDocumentPart,
    SourceUrlPart,
    State,
    TextPart,
)

Item = dict[str, Any]


def _reason(items: list[Any]) -> str | None:
    finish = read_events(items)[-1]
    assert isinstance(finish, ev.Finish)
    return finish.finish_reason


# Bedrock ------------------------------------------------------------------------------------------------------


def _grow(index: int, **delta: Any) -> Item:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}


def _use(index: int, *pieces: str, **more: Any) -> list[Item]:
    use = {"toolUseId": f"t{index}", "name": "search", **more}
    return [
        {"contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": use}}},
        *(_grow(index, toolUse={"input": piece}) for piece in pieces),
        {"contentBlockStop": {"contentBlockIndex": index}},
    ]


_CITED = {"title": "A", "location": {"web": {"url": "https://a.example"}}}
_RESULT = {"toolUseId": "t2", "type": "nova_grounding_result", "status": "success"}
_BEDROCK: list[Item] = [
    {"messageStart": {"role": "assistant"}},
    _grow(0, reasoningContent={"text": "Let me see."}),
    _grow(0, reasoningContent={"signature": "sig"}),
    {"contentBlockStop": {"contentBlockIndex": 0}},
    _grow(1, text="Cats "),
    _grow(1, citation=_CITED),
    _grow(1, text="sleep."),
    {"contentBlockStop": {"contentBlockIndex": 1}},
    *_use(2, "{}", type="server_tool_use"),
    {"contentBlockStart": {"contentBlockIndex": 3, "start": {"toolResult": _RESULT}}},
    _grow(3, toolResult=[{"text": "Found."}]),
    {"contentBlockStop": {"contentBlockIndex": 3}},
    *_use(4, '{"q": "ca', 'ts"}'),
    {"messageStop": {"stopReason": "tool_use"}},
    {"metadata": {"usage": {"inputTokens": 5, "outputTokens": 2, "cacheReadInputTokens": 3, "totalTokens": 10}}},
]


def test_a_stream_of_bedrock_becomes_thinking_text_sources_calls_and_results() -> None:
    (message,) = read_items(_BEDROCK).messages
    thought, text, source, *_ = message.parts
    assert thought == ReasoningPart("Let me see.", {"bedrock": {"signature": "sig"}})
    assert text == TextPart("Cats sleep.")
    assert isinstance(source, SourceUrlPart)
    theirs, ours = message.calls
    assert (theirs.provider_executed, theirs.output, theirs.state) == (True, "Found.", State.OUTPUT_AVAILABLE)
    assert (ours.id, ours.input, ours.provider_executed) == ("t4", {"q": "cats"}, None)
    usage = {"inputTokens": 8, "outputTokens": 2, "totalTokens": 10, "cachedInputTokens": 3}
    assert message.metadata == {"usage": usage}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("end_turn", "stop"),
        ("tool_use", "tool-calls"),
        ("max_tokens", "length"),
        ("guardrail_intervened", "content-filter"),
        ("malformed_tool_use", "error"),
        ("new", "other"),
    ],
)
def test_bedrocks_stop_reason_is_translated(theirs: str, ours: str) -> None:
    assert _reason([_grow(0, text="x"), {"messageStop": {"stopReason": theirs}}]) == ours


def test_content_before_an_exception_of_bedrock_is_kept() -> None:
    items = [_grow(0, text="Half"), {"modelStreamErrorException": {"message": "Too busy."}}]
    (message,) = read_items(items).messages
    text, error = message.parts
    assert text == TextPart("Half")
    assert isinstance(error, ErrorPart)
    assert "Too busy" in error.text
    assert "modelStreamErrorException" in (error.details or "")


def test_a_whole_reply_of_bedrock_has_all_its_blocks() -> None:
    content: list[Item] = [
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "sig"}}},
        {"reasoningContent": {"redactedContent": b"hi"}},
        {"text": "Look:"},
        {"citationsContent": {"content": [{"text": "Cited."}], "citations": [{"title": "Doc", "location": {}}]}},
        {"image": {"format": "png", "source": {"bytes": b"hi"}}},
        {"document": {"format": "txt", "source": {"s3Location": {"uri": "s3://a/b"}}}},
        {"guardContent": {"text": {"text": "x"}}},
        {"toolUse": {"toolUseId": "t", "name": "search", "input": {"q": 1}}},
    ]
    reply = {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "tool_use", "usage": {}}
    (message,) = read_whole(reply).messages
    thought, hidden, text, cited, source, image, document, guard, call = message.parts
    assert thought == ReasoningPart("Hm.", {"bedrock": {"signature": "sig"}})
    assert hidden == ReasoningPart("", {"bedrock": {"redactedData": "aGk="}})
    assert (text, cited) == (TextPart("Look:"), TextPart("Cited."))
    assert isinstance(source, SourceDocumentPart)
    assert image == FilePart("data:image/png;base64,aGk=", "image/png")
    assert document == FilePart("s3://a/b", "text/plain")
    assert isinstance(guard, CustomPart)
    assert call == message.calls[0]
    assert message.calls[0].input == {"q": 1}


# Cohere -------------------------------------------------------------------------------------------------------


def _cohere(kind: str, index: int | None = None, **message: Any) -> Item:
    return {"type": kind, **({} if index is None else {"index": index}), "delta": {"message": message}}


_SOURCE = {"type": "document", "id": "doc:0", "document": {"id": "doc:0", "title": "Notes"}}
_COHERE: list[Item] = [
    {"type": "message-start", "id": "m", "delta": {"message": {"role": "assistant"}}},
    _cohere("tool-plan-delta", tool_plan="I "),
    _cohere("tool-plan-delta", tool_plan="search."),
    _cohere("tool-call-start", 0, tool_calls={"id": "a", "function": {"name": "f", "arguments": ""}}),
    _cohere("tool-call-delta", 0, tool_calls={"function": {"arguments": '{"q": 1}'}}),
    {"type": "tool-call-end", "index": 0},
    _cohere("tool-call-start", 1, tool_calls={"id": "b", "function": {"name": "g", "arguments": ""}}),
    {"type": "tool-call-end", "index": 1},
    _cohere("content-start", 0, content={"type": "text", "text": ""}),
    _cohere("content-delta", 0, content={"text": "Cats "}),
    _cohere("citation-start", 0, citations={"start": 0, "end": 4, "text": "Cats", "sources": [_SOURCE]}),
    _cohere("content-delta", 0, content={"text": "sleep."}),
    {"type": "content-end", "index": 0},
    {
        "type": "message-end",
        "delta": {"finish_reason": "TOOL_CALL", "usage": {"tokens": {"input_tokens": 9, "output_tokens": 2}}},
    },
]


def test_a_stream_of_cohere_becomes_a_plan_calls_text_and_sources() -> None:
    (message,) = read_items(_COHERE).messages
    plan, first, second, text, source = message.parts
    assert plan == ReasoningPart("I search.")
    assert (first, second) == message.calls
    assert [(call.id, call.name, call.input) for call in message.calls] == [("a", "f", {"q": 1}), ("b", "g", {})]
    assert text == TextPart("Cats sleep.")
    assert isinstance(source, SourceDocumentPart)
    assert source.title == "Notes"
    assert message.metadata == {"usage": {"inputTokens": 9, "outputTokens": 2, "totalTokens": 11}}
    assert _reason(_COHERE) == "tool-calls"


def test_a_whole_reply_of_cohere_has_the_same_parts() -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"q": 1}'}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": ""}},
    ]
    message = {"role": "assistant", "tool_plan": "I search.", "tool_calls": calls}
    usage = {"tokens": {"input_tokens": 9, "output_tokens": 2}}
    found = read_whole({"id": "m", "message": message, "finish_reason": "TOOL_CALL", "usage": usage})
    streamed = read_items([*_COHERE[:8], _COHERE[-1]])
    assert found == streamed


def test_content_before_an_error_of_cohere_is_kept() -> None:
    end = {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "Out of order."}}
    (message,) = read_items([*_COHERE[:3], end]).messages
    assert isinstance(message.parts[-1], ErrorPart)
    assert "Out of order" in message.parts[-1].text
    assert message.finish_reason == "error"


# Ollama -------------------------------------------------------------------------------------------------------


def _line(done: bool = False, **message: Any) -> Item:
    return {"model": "tiny", "created_at": "2026-01-01", "message": {"role": "assistant", **message}, "done": done}


_OLLAMA: list[Item] = [
    _line(content="", thinking="Hm."),
    _line(content="Cats "),
    _line(content="sleep."),
    _line(content="", tool_calls=[{"function": {"name": "f", "arguments": {"q": 1}}}, {"function": {"name": "g"}}]),
    {**_line(content="", done=True), "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 2},
]


def test_a_stream_of_ollama_becomes_thinking_text_and_calls_with_ids_of_their_own() -> None:
    (message,) = read_items(_OLLAMA).messages
    assert message.parts[:2] == (ReasoningPart("Hm."), TextPart("Cats sleep."))
    assert [(call.id, call.name, call.input) for call in message.calls] == [
        ("call_1", "f", {"q": 1}),
        ("call_2", "g", {}),
    ]
    usage = {"inputTokens": 9, "outputTokens": 2, "totalTokens": 11}
    assert message.metadata == {"model": "tiny", "usage": usage}
    assert _reason(_OLLAMA) == "tool-calls"


def test_complete_replies_of_ollamas_chat_and_generate_are_read() -> None:
    assert (
        read_whole({**_line(content="Hi.", done=True), "done_reason": "length"}).messages[0].finish_reason == "length"
    )
    assert read_whole({"model": "tiny", "response": "Hi.", "done": True}).messages[0].text == "Hi."


def test_content_before_an_error_of_ollama_is_kept() -> None:
    (message,) = read_items([_line(content="Half"), {"error": "out of memory"}]).messages
    assert message.text == "Half"
    assert isinstance(message.parts[-1], ErrorPart)
    assert "out of memory" in message.parts[-1].text


# All of them --------------------------------------------------------------------------------------------------

_STREAMS: dict[str, tuple[Callable[[], Adapter], list[Item]]] = {
    "bedrock": (BedrockAdapter, _BEDROCK),
    "cohere": (CohereAdapter, _COHERE),
    "ollama": (OllamaAdapter, _OLLAMA),
}
_each = pytest.mark.parametrize("name", list(_STREAMS))


@_each
def test_a_stream_may_be_cut_off_after_any_item(name: str) -> None:
    items = _STREAMS[name][1]
    whole = read_items(items)
    for some in prefixes(items):
        (message,) = read_items(some).messages
        assert whole.messages[0].text.startswith(message.text)
        assert list(whole.calls)[: len(message.calls)] == [call.id for call in message.calls]


@_each
def test_items_of_another_stream_give_a_diagnostic(name: str) -> None:
    adapter = _STREAMS[name][0]()
    transcript = read_items([*_STREAMS[name][1], {"foo": 1}, None, 3], adapter)
    assert len(transcript.diagnostics) == 3
    assert transcript.messages == read_items(_STREAMS[name][1]).messages


@_each
@given(data=st.data())
def test_no_malformed_stream_raises(name: str, data: st.DataObject) -> None:
    make, items = _STREAMS[name]
    read_items(data.draw(broken_streams(items)), make())


@_each
@given(item=st.dictionaries(st.sampled_from(["type", "delta", "message", "metadata", "done", "error"]), json_values()))
def test_no_mapping_raises(name: str, item: Item) -> None:
    read_items([item], _STREAMS[name][0]())


@pytest.mark.parametrize(
    "foreign",
    [
        {},
        {"metadata": "x"},
        {"message": "Hello", "done": "yes"},
        {"type": "message_start", "message": {}},
        {"message": {"role": "assistant"}, "finish_reason": "stop"},
        [{"role": "user", "content": [{"text": "Hi"}]}],
    ],
)
def test_formats_of_others_are_not_recognised(foreign: Any) -> None:
    for found in (format_of_item(foreign), format_of_whole(foreign)):
        assert found is None or found.name not in ("bedrock", "bedrock-messages", "cohere", "ollama")
