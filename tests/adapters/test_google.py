"""Google's generateContent and its Interactions: streams, complete replies, lists of contents."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from tests.support.adapter_streams import broken_streams, prefixes, read_events, read_items, read_whole
from tests.support.strategies import json_values
from toolcall_nb.adapters import format_of_item, format_of_whole
from toolcall_nb.adapters.google.generate_content import GoogleAdapter
from toolcall_nb.adapters.google.parts import PartialArguments
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


def _chunk(*parts: Item, **candidate: Any) -> Item:
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, **candidate}], "modelVersion": "gemini-x", "responseId": "r1"}


def _end(reason: str = "STOP", **candidate: Any) -> Item:
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 3, "totalTokenCount": 18}
    return {**_chunk(finishReason=reason, **candidate), "usageMetadata": usage}


def _partial(path: str, continues: bool = False, **value: Any) -> Item:
    piece = {"jsonPath": path, **value, **({"willContinue": True} if continues else {})}
    return {"functionCall": {"partialArgs": [piece], "willContinue": True}}


_STREAM = [
    _chunk({"text": "I look. ", "thought": True}),
    _chunk({"text": "Cats "}),
    _chunk({"text": "sleep", "thoughtSignature": "a-_b"}),
    _chunk({"text": "."}),
    _chunk({"functionCall": {"name": "search", "args": {"q": "cats"}}, "thoughtSignature": "c2ln"}),
    _chunk({"functionCall": {"name": "search", "args": {"q": "dogs"}, "id": "g1"}}),
    _chunk({"functionCall": {"name": "write", "willContinue": True}}),
    _chunk(_partial("$.title", True, stringValue="Cats ")),
    _chunk(_partial("$.title", stringValue="asleep")),
    _chunk(_partial("$.tags[0].n", numberValue=1)),
    _chunk(_partial("$.tags[1].n", boolValue=True)),
    _chunk({"functionCall": {}}),
    _end(),
]


# What a stream amounts to -------------------------------------------------------------------------------------


def test_a_stream_becomes_thinking_text_and_calls() -> None:
    (message,) = read_items(_STREAM).messages
    thought, text, *_ = message.parts
    assert thought == ReasoningPart("I look. ")
    assert text == TextPart("Cats sleep.", {"google": {"thoughtSignature": "a+/b"}})
    assert [(call.id, call.name, call.input) for call in message.calls] == [
        ("call_1", "search", {"q": "cats"}),
        ("g1", "search", {"q": "dogs"}),
        ("call_2", "write", {"title": "Cats asleep", "tags": [{"n": 1}, {"n": True}]}),
    ]
    assert message.calls[0].provider_metadata == {"google": {"thoughtSignature": "c2ln"}}
    usage = {"inputTokens": 10, "outputTokens": 8, "totalTokens": 18, "reasoningTokens": 3}
    assert (message.id, message.metadata) == ("r1", {"model": "gemini-x", "usage": usage})


def test_arguments_at_paths_stream_as_json_text() -> None:
    events = read_events(_STREAM)
    written = "".join(event.input_text_delta for event in events if isinstance(event, ev.ToolInputDelta))
    assert written == '{"title":"Cats asleep","tags":[{"n":1},{"n":true'


def test_names_in_snake_case_as_the_sdk_dumps_them_are_read_too() -> None:
    call = types.FunctionCall(name="f", args={"a_b": {"cD": 1}}, id="x")
    part = types.Part(function_call=call, thought_signature=b"sig")
    candidate = types.Candidate(
        content=types.Content(role="model", parts=[part]), finish_reason=types.FinishReason.STOP
    )
    response = types.GenerateContentResponse(candidates=[candidate], model_version="gemini-x")
    dumped = response.model_dump(mode="json")
    assert read_whole(dumped) == read_whole(response)
    (found,) = read_whole(dumped).calls.values()
    assert (found.id, found.input) == ("x", {"a_b": {"cD": 1}})
    assert found.provider_metadata == {"google": {"thoughtSignature": "c2ln"}}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content-filter"),
        ("RECITATION", "content-filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("LANGUAGE", "other"),
    ],
)
def test_the_finish_reason_is_translated(theirs: str, ours: str) -> None:
    finish = read_events([_chunk({"text": "x"}), _end(theirs)])[-1]
    assert isinstance(finish, ev.Finish)
    assert finish.finish_reason == ours


def test_a_reply_with_calls_has_the_reason_tool_calls() -> None:
    finish = read_events(_STREAM)[-1]
    assert isinstance(finish, ev.Finish)
    assert finish.finish_reason == "tool-calls"


def test_a_malformed_call_is_an_error_with_googles_message() -> None:
    (message,) = read_items([_end("MALFORMED_FUNCTION_CALL", finishMessage="Malformed: print(f()")]).messages
    (part,) = message.parts
    assert isinstance(part, ErrorPart)
    assert "Malformed: print(f()" in part.text


def test_a_blocked_prompt_is_an_error() -> None:
    (message,) = read_items([{"promptFeedback": {"blockReason": "SAFETY"}}]).messages
    (part,) = message.parts
    assert isinstance(part, ErrorPart)
    assert "SAFETY" in part.text
    assert message.finish_reason == "content-filter"


def test_executed_code_is_a_call_with_its_result() -> None:
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "1+1", "id": "e1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2", "id": "e1"}},
        {"executableCode": {"language": "PYTHON", "code": "1/0"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError"}},
    ]
    good, bad = read_items([_chunk(part) for part in parts]).calls.values()
    assert (good.name, good.input, good.output) == ("code_execution", {"language": "PYTHON", "code": "1+1"}, "2")
    assert (bad.state, bad.error, bad.provider_executed) == (
        State.OUTPUT_ERROR,
        "OUTCOME_FAILED: ZeroDivisionError",
        True,
    )


def test_tools_that_google_ran_are_calls_with_results() -> None:
    parts: list[Item] = [
        {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s", "args": {"queries": ["x"]}}},
        {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s", "response": {"found": 1}}},
        {"toolResponse": {"id": "another"}},
    ]
    (message,) = read_items([_chunk(*parts)]).messages
    (call,) = message.calls
    assert (call.name, call.input, call.output) == ("google_search_web", {"queries": ["x"]}, {"found": 1})
    assert isinstance(message.parts[-1], CustomPart)


def test_files_are_files() -> None:
    parts: list[Item] = [
        {"inlineData": {"mimeType": "image/png", "data": "a-_b"}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "https://f.example/1"}},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}, "thought": True},
    ]
    (message,) = read_items([_chunk(*parts)]).messages
    assert message.parts == (
        FilePart("data:image/png;base64,a+/b", "image/png"),
        FilePart("https://f.example/1", "application/pdf"),
        FilePart("data:image/png;base64,aGk=", "image/png", None, True),
    )


def test_sources_follow_the_text_once() -> None:
    grounding = {
        "groundingChunks": [
            {"web": {"uri": "https://a.example", "title": "A"}},
            {"retrievedContext": {"title": "Notes", "text": "…"}},
        ],
        "webSearchQueries": ["cats"],
    }
    items = [
        _chunk({"text": "So "}, groundingMetadata=grounding),
        _chunk({"text": "it is."}, groundingMetadata=grounding),
        _end(citationMetadata={"citationSources": [{"uri": "https://b.example"}]}),
    ]
    (message,) = read_items(items).messages
    text, page, document, queries, cited = message.parts
    assert text == TextPart("So it is.")
    assert isinstance(page, SourceUrlPart)
    assert isinstance(document, SourceDocumentPart)
    assert isinstance(queries, CustomPart)
    assert isinstance(cited, SourceUrlPart)
    assert (page.url, document.title, cited.url) == ("https://a.example", "Notes", "https://b.example")


def test_further_candidates_follow_as_messages_of_their_own() -> None:
    def both(*texts: str, **end: str) -> Item:
        parts = [{"content": {"parts": [{"text": text}]}, "index": at, **end} for at, text in enumerate(texts)]
        return {"candidates": parts, "modelVersion": "gemini-x"}

    first, second = read_items([both("A", "B"), both("a", "b", finishReason="STOP")]).messages
    assert (first.text, second.text) == ("Aa", "Bb")
    assert (first.metadata, second.metadata) == ({"model": "gemini-x"}, {"model": "gemini-x", "choice": 1})


def test_calls_of_all_candidates_have_ids_of_their_own() -> None:
    call = {"content": {"parts": [{"functionCall": {"name": "f", "args": {}}}]}}
    transcript = read_items([{"candidates": [{**call, "index": 0}, {**call, "index": 1}]}])
    assert list(transcript.calls) == ["call_1", "call_2"]


def test_a_function_response_goes_to_its_call() -> None:
    """The SDK does the same for functions that it called itself: a further response follows."""
    items = [
        _chunk({"functionCall": {"name": "f", "args": {}}}, {"functionCall": {"name": "f", "args": {"n": 2}}}),
        _chunk({"functionResponse": {"name": "f", "response": {"result": 1}}}),
        _chunk({"functionResponse": {"name": "f", "response": {"error": "No."}}}),
        {**_chunk({"text": "Done."}), "responseId": "r2"},
    ]
    transcript = read_items(items)
    (message,) = transcript.messages
    first, second = message.calls
    assert (first.output, second.error) == ({"result": 1}, "No.")
    assert message.text == "Done."


# Streams that are not as they should be -----------------------------------------------------------------------


def test_content_before_an_error_is_kept() -> None:
    error = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    (message,) = read_items([_chunk({"text": "Half"}), error]).messages
    text, part = message.parts
    assert text == TextPart("Half")
    assert isinstance(part, ErrorPart)
    assert "The model is overloaded" in part.text
    assert message.finish_reason == "error"


def test_a_call_that_is_cut_off_keeps_its_arguments() -> None:
    (call,) = read_items(_STREAM[6:8]).calls.values()
    assert (call.state, call.input) == (State.OUTPUT_ERROR, '{"title":"Cats ')


@pytest.mark.parametrize("path", ["", "$", "title", "$.a[", "$[0]", "$.a[9999999]", "$.a[5000]", "$" + ".a" * 99, None])
def test_arguments_at_an_invalid_path_are_an_error(path: str | None) -> None:
    call = {"functionCall": {"name": "f", "willContinue": True}}
    (found,) = read_items([_chunk(call), _chunk(_partial(path, numberValue=1)), _end()]).calls.values()  # type: ignore[arg-type]
    assert found.state == State.OUTPUT_ERROR


def test_unknown_parts_are_kept() -> None:
    (message,) = read_items([_chunk({"hologram": {"depth": 3}}, {})]).messages
    assert message.parts == (CustomPart("google.hologram", {"google": {"hologram": {"depth": 3}}}),)


def test_a_stream_may_be_cut_off_after_any_item() -> None:
    whole = read_items(_STREAM)
    for items in prefixes(_STREAM):
        (message,) = read_items(items).messages
        assert whole.messages[0].text.startswith(message.text)
        assert list(whole.calls)[: len(message.calls)] == [call.id for call in message.calls]


@given(broken_streams(_STREAM))
def test_no_malformed_stream_raises(items: list[Any]) -> None:
    read_items(items, GoogleAdapter())


@given(st.dictionaries(st.sampled_from(["candidates", "promptFeedback", "usageMetadata", "error"]), json_values()))
def test_no_mapping_raises(item: Item) -> None:
    read_items([item, None], GoogleAdapter())


_NAMES = st.sampled_from(["a", "b", "c d", "é"])
_LEAVES = st.one_of(st.text(max_size=8), st.integers(-9, 9), st.booleans(), st.none())
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(_NAMES, inner, min_size=1, max_size=3),
    max_leaves=8,
)


def _leaves(value: Any, path: str = "$") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [found for name, inner in value.items() for found in _leaves(inner, f"{path}['{name}']")]
    if isinstance(value, list):
        return [found for place, inner in enumerate(value) for found in _leaves(inner, f"{path}[{place}]")]
    return [(path, value)]


def _pieces(path: str, value: Any) -> list[Item]:
    if isinstance(value, str):
        half = len(value) // 2
        first = {"jsonPath": path, "stringValue": value[:half], "willContinue": True}
        return [first, {"jsonPath": path, "stringValue": value[half:]}]
    if value is None:
        return [{"jsonPath": path, "nullValue": "NULL_VALUE"}]
    return [{"jsonPath": path, "boolValue" if isinstance(value, bool) else "numberValue": value}]


@given(st.dictionaries(_NAMES, _VALUES, min_size=1, max_size=3))
def test_partial_arguments_add_up_to_the_value_and_to_the_beginning_of_its_json(value: Item) -> None:
    arguments = PartialArguments()
    text = "".join(arguments.take(piece) for path, leaf in _leaves(value) for piece in _pieces(path, leaf))
    assert arguments.value == value
    assert json.dumps(value, ensure_ascii=False, separators=(",", ":")).startswith(text)


# Whole replies, and lists -------------------------------------------------------------------------------------


def test_a_list_of_responses_is_one_reply() -> None:
    assert read_whole(_STREAM) == read_items(_STREAM)


@pytest.mark.parametrize(
    "foreign",
    [
        {"candidates": "Ann, Bob"},
        {"error": "no"},
        [{"role": "user", "parts": [{"type": "text", "text": "Hi"}], "id": "1"}],
        [{"role": "user", "content": "Hi"}],
    ],
)
def test_formats_of_others_are_not_recognised_as_googles(foreign: Any) -> None:
    for found in (format_of_item(foreign), format_of_whole(foreign)):
        assert found is None or not found.name.startswith("google")
