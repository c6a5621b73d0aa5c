"""Chat completions: deltas of many providers, complete replies, and malformed ones."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.adapter_streams import broken_streams, prefixes, read_items, read_whole
from tests.support.documents import in_pieces
from tests.support.openai_shapes import Item, chunk, piece, reply
from tests.support.strategies import json_values, texts
from toolcall_nb.adapters import format_of_item, format_of_whole
from toolcall_nb.adapters.openai.chat import CHAT_COMPLETIONS, OpenAIChatAdapter
from toolcall_nb.core.transcript import (
    CustomPart,
    ErrorPart,
    FilePart,
    ReasoningPart,
    SourceDocumentPart,
    SourceUrlPart,
    State,
    TextPart,
    Transcript,
)

_USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "total_tokens": 15,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
_STREAM = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "Cats"}),
    chunk({"reasoning_content": "?"}),
    chunk({"content": "I look. "}),
    chunk({"content": "Wait."}),
    chunk({"tool_calls": [piece("", "search", "call_a")]}),
    chunk({"tool_calls": [piece('{"q": ')]}),
    chunk({"tool_calls": [piece('"cats"}')]}),
    chunk({"tool_calls": [piece("", "now", "call_b", 1)]}),
    chunk(reason="tool_calls"),
    {"id": "c1", "model": "gpt-x", "choices": [], "usage": _USAGE},
]


def test_a_stream_becomes_reasoning_text_and_calls() -> None:
    message = read_items(_STREAM).messages[0]
    assert (message.id, message.finish_reason) == ("c1", None)
    assert message.parts[:2] == (ReasoningPart("Cats?"), TextPart("I look. Wait."))
    assert [(call.id, call.name, call.input, call.state) for call in message.calls] == [
        ("call_a", "search", {"q": "cats"}, State.INPUT_AVAILABLE),
        ("call_b", "now", {}, State.INPUT_AVAILABLE),
    ]
    counts = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "cachedInputTokens": 4, "reasoningTokens": 2}
    assert message.metadata == {"model": "gpt-x", "usage": counts}


def test_a_complete_reply_reads_like_its_stream() -> None:
    calls = [piece('{"q": "cats"}', "search", "call_a"), piece("", "now", "call_b", None)]
    message = {"role": "assistant", "content": "I look. Wait.", "reasoning_content": "Cats?", "tool_calls": calls}
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    whole = {"id": "c1", "object": "chat.completion", "model": "gpt-x", "choices": choices, "usage": _USAGE}
    assert read_whole(whole) == read_items(_STREAM)


@pytest.mark.parametrize(
    ("delta", "parts"),
    [
        ({"reasoning": "why", "content": "x"}, (ReasoningPart("why"), TextPart("x"))),
        ({"reasoning": "why", "reasoning_content": "why"}, (ReasoningPart("why"),)),
        ({"reasoning": "", "reasoning_content": None, "content": "x"}, (TextPart("x"),)),
        ({"reasoning_details": [{"type": "reasoning.text", "text": "why"}]}, (ReasoningPart("why"),)),
        ({"reasoning_details": [{"type": "reasoning.summary", "summary": "so"}]}, (ReasoningPart("so"),)),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "why"}]},
                    {"type": "text", "text": "x"},
                ]
            },
            (ReasoningPart("why"), TextPart("x")),
        ),
        ({"content": [{"type": "odd", "x": 1}]}, (CustomPart("openai.odd", {"openai": {"type": "odd", "x": 1}}),)),
        ({"audio": {"transcript": "said"}}, (TextPart("said"),)),
        (
            {"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
            (FilePart("data:image/png;base64,AA==", "image/png"),),
        ),
        (
            {
                "content": "x",
                "annotations": [{"type": "url_citation", "url_citation": {"url": "https://a", "title": "A"}}],
            },
            (TextPart("x"), SourceUrlPart("source-1", "https://a", "A")),
        ),
        (
            {
                "content": "x",
                "annotations": [{"type": "file_citation", "file_citation": {"file_id": "f", "filename": "n"}}],
            },
            (TextPart("x"), SourceDocumentPart("source-1", "text/plain", "n", None, {"openai": {"fileId": "f"}})),
        ),
    ],
)
def test_each_field_of_a_delta_is_read(delta: Item, parts: tuple[Any, ...]) -> None:
    assert read_items([chunk(delta)]).messages[0].parts == parts
    assert read_whole(reply(delta)).messages[0].parts == parts


def test_openrouters_reasoning_details_are_kept_for_the_next_request() -> None:
    details: list[Item] = [
        {"type": "reasoning.text", "index": 0, "text": "wh", "format": "f"},
        {"type": "reasoning.text", "index": 0, "text": "y", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "data": "e"},
    ]
    chunks = [
        chunk({"reasoning": text, "reasoning_details": [detail]})
        for text, detail in zip(["wh", "y", ""], details, strict=True)
    ]
    merged = [{**details[0], "text": "why", "signature": "s"}, details[2]]
    kept = {"openrouter": {"reasoningDetails": merged}}
    assert read_items([*chunks, chunk({"content": "x"})]).messages[0].parts == (
        ReasoningPart("why", kept),
        TextPart("x"),
    )
    late = read_items([chunks[0], chunk({"content": "x"}), chunks[2]]).messages[0].parts
    assert late == (
        ReasoningPart("wh"),
        TextPart("x"),
        ReasoningPart("", {"openrouter": {"reasoningDetails": [details[2]]}}),
    )


def test_sound_in_pieces_is_one_file() -> None:
    wav = b"RIFF" + bytes(range(20))
    pieces = [base64.b64encode(part).decode() for part in (wav[:4], wav[4:11], wav[11:])]
    found = read_items([chunk({"audio": {"data": part}}) for part in pieces])
    url = f"data:audio/wav;base64,{base64.b64encode(wav).decode()}"
    assert found.messages[0].parts == (FilePart(url, "audio/wav"),)
    assert read_items([chunk({"audio": {"data": "?"}})]).messages[0].parts == (
        FilePart("data:audio/pcm;base64,?", "audio/pcm"),
    )


def test_pages_listed_outside_the_text_follow_it_once() -> None:
    results = [{"url": "https://b", "title": "B"}]
    chunks = [chunk({"content": text}, citations=["https://a", "https://b"], search_results=results) for text in "xy"]
    assert read_items(chunks).messages[0].parts == (
        TextPart("xy"),
        SourceUrlPart("source-1", "https://b", "B"),
        SourceUrlPart("source-2", "https://a"),
    )


@pytest.mark.parametrize(
    "message", [{"refusal": "I can't."}, {"content": [{"type": "refusal", "refusal": "I can't."}]}]
)
def test_a_refusal_is_text_with_its_reason(message: Item) -> None:
    for found in (read_whole(reply(message)), read_items([chunk(message), chunk(reason="stop")])):
        assert (found.messages[0].text, found.messages[0].finish_reason) == ("I can't.", "content-filter")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        *[(reason, None) for reason in ("stop", "tool_calls", "function_call", "eos", "STOP")],
        *[("length", "length"), ("content_filter", "content-filter"), ("error", "error"), ("network_error", "error")],
        ("something new", "other"),
    ],
)
def test_the_finish_reason_is_translated(theirs: str, ours: str | None) -> None:
    assert read_items([chunk({"content": "x"}, theirs)]).messages[0].finish_reason == ours


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 8}, (9, 1, None, 8, None)),
        (
            {
                "prompt_tokens": 3,
                "completion_tokens": 1,
                "total_tokens": 9,
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
            (3, 6, 9, None, 5),  # xAI counts reasoning beside the rest
        ),
        ({"prompt_tokens": None, "completion_tokens": "x", "total_tokens": 4}, (None, None, 4, None, None)),
    ],
)
def test_token_counts_have_our_names(usage: Item, counts: tuple[int | None, ...]) -> None:
    names = ("inputTokens", "outputTokens", "totalTokens", "cachedInputTokens", "reasoningTokens")
    told = {name: count for name, count in zip(names, counts, strict=True) if count is not None}
    for one in (chunk(usage=usage), chunk(x_groq={"usage": usage}), {"choices": [{"delta": {}, "usage": usage}]}):
        assert read_items([one]).messages[0].metadata["usage"] == told


@pytest.mark.parametrize(
    "item",
    [
        {"error": {"message": "Too long", "code": 400}},
        chunk({"content": ""}, error={"message": "Too long"}),
        chunk(x_groq={"error": "Too long"}),
        {"choices": [{"delta": {}, "finish_reason": "error", "error": {"message": "Too long"}}]},
    ],
)
def test_content_before_an_error_is_kept(item: Item) -> None:
    message = read_items([chunk({"content": "Once"}), item]).messages[0]
    assert (message.text, message.finish_reason) == ("Once", "error")
    (error,) = [part for part in message.parts if isinstance(part, ErrorPart)]
    assert "Too long. What came before" in error.text
    assert "Too long" in (error.details or "")


def test_further_choices_follow_as_messages_of_their_own() -> None:
    chunks = [
        *[chunk({"content": text}, index=index) for text in "ab" for index in (0, 1, 2)],
        chunk({"tool_calls": [piece("{}", "t", "x")]}, "tool_calls", 1),
        chunk(reason="length", index=2),
    ]
    found = read_items(chunks).messages
    assert [message.text for message in found] == ["ab", "ab", "ab"]
    assert [message.metadata.get("choice") for message in found] == [None, 1, 2]
    assert [message.finish_reason for message in found] == [None, None, "length"]
    assert [call.id for message in found for call in message.calls] == ["x"]


def test_the_older_completions_api_gives_text() -> None:
    chunks = [{"object": "text_completion", "choices": [{"text": text, "index": 0}]} for text in "ab"]
    assert read_items(chunks).messages[0].text == "ab"
    assert read_whole({"object": "text_completion", "choices": [{"text": "ab"}]}).messages[0].text == "ab"


def test_events_that_the_sdks_helper_derives_are_skipped() -> None:
    derived = [{"type": "content.delta", "delta": "x", "snapshot": "x"}, {"type": "content.done", "content": "x"}]
    found = read_items([{"type": "chunk", "chunk": chunk({"content": "x"}), "snapshot": {}}, *derived])
    assert found.messages[0].parts == (TextPart("x"),)


def test_the_chunk_within_an_event_of_mistrals_sdk_is_read() -> None:
    found = read_items([chunk({"content": "a"}), {"event": "x", "data": chunk({"content": "b"})}])
    assert found.messages[0].text == "ab"


def test_an_item_that_is_no_chunk_gives_a_diagnostic() -> None:
    found = read_items([chunk({"content": "x"}), {"some": "thing"}, 5, None], OpenAIChatAdapter())
    assert found.messages[0].text == "x"
    assert [diagnostic.message for diagnostic in found.diagnostics] == [
        "A mapping with 'some' is no item of an OpenAI chat completion or its stream.",
        *(
            f"Something of the type {name} is no item of an OpenAI chat completion or its stream."
            for name in ("int", "NoneType")
        ),
    ]


def test_a_stream_may_be_cut_off_after_any_item() -> None:
    for items in prefixes(_STREAM):
        found = read_items(items)
        assert len(found.messages) == 1
        assert [call.id for call in found.calls.values()] == ["call_a", "call_b"][: len(found.calls)]
        assert not found.diagnostics


@given(st.data(), texts(), texts())
def test_cuts_in_texts_and_arguments_do_not_matter(data: st.DataObject, said: str, thought: str) -> None:
    def read(cuts: list[int]) -> Transcript:
        deltas: list[Item] = [{"reasoning": piece} for piece in in_pieces(thought, cuts)]
        deltas += [{"content": piece} for piece in in_pieces(said, cuts)]
        deltas += [{"tool_calls": [piece("", "t", "a")]}]
        deltas += [{"tool_calls": [piece(part)]} for part in in_pieces('{"q": "\\ud83d\\ude00 é"}', cuts)]
        return read_items([chunk(delta) for delta in deltas])

    cut = read(data.draw(st.lists(st.integers(0, 24), max_size=8).map(sorted)))
    assert cut == read([])
    assert cut.messages[0].text == said
    assert cut.calls["a"].input == {"q": "😀 é"}


_STRANGE = [
    *_STREAM,
    chunk({"images": [{"image_url": {"url": "x"}}], "annotations": [{"type": "url_citation", "url": "u"}]}),
    chunk({"function_call": {"name": "f"}, "audio": {"data": "x"}, "reasoning_details": [{"text": "x", "data": "y"}]}),
    chunk({"executed_tools": [{"index": 0, "type": "x", "arguments": "{}", "output": 1}], "refusal": "no"}),
    chunk({"content": [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "file", "file": {"file_id": "x"}}]}),
    chunk(error={"message": "x"}, citations=["u"], search_results=[{"url": "u"}]),
]


@given(broken_streams(_STRANGE))
def test_no_malformed_stream_raises(items: list[Any]) -> None:
    found = read_items(items, OpenAIChatAdapter())
    assert all(call.id for call in found.calls.values())


@given(st.dictionaries(st.sampled_from(["choices", "error", "usage", "type", "chunk", "data"]), json_values()))
def test_no_mapping_raises(item: Item) -> None:
    CHAT_COMPLETIONS.is_item(item), CHAT_COMPLETIONS.is_whole(item)
    read_items([_STREAM[0], item])


@pytest.mark.parametrize(
    "foreign",
    [{}, [], "text", 5, None, {"type": "message_start"}, {"object": "response", "output": []}],
)
def test_only_chat_completions_are_recognised(foreign: Any) -> None:
    assert format_of_item(foreign) is not CHAT_COMPLETIONS
    assert format_of_whole(foreign) is not CHAT_COMPLETIONS
