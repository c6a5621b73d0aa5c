"""The Responses API: its events, items of every kind, complete responses, and malformed ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.adapter_streams import broken_streams, prefixes, read_events, read_items, read_whole
from tests.support.documents import in_pieces
from tests.support.openai_shapes import (
    CREATED,
    REASONING,
    Item,
    call_item,
    items_done,
    message_item,
    news,
    whole_response,
)
from tests.support.recordings import items_of
from tests.support.signed_bodies import SECRETS, SIGNED
from tests.support.strategies import json_values, texts
from toolcall_nb.adapters import format_of_item, format_of_whole
from toolcall_nb.adapters.assembler import NO_JSON
from toolcall_nb.adapters.openai.responses import OPENAI_RESPONSES, OpenAIResponsesAdapter
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
    Transcript,
)

_STREAM = [
    CREATED,
    news("in_progress", response={"id": "r1"}),
    news("output_item.added", output_index=0, item={"type": "reasoning", "id": "rs1", "summary": []}),
    news("reasoning_summary_part.added", output_index=0, summary_index=0),
    news("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="Ca"),
    news("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="ts?"),
    news("reasoning_summary_text.done", output_index=0, summary_index=0, text="Cats?"),
    news("output_item.done", output_index=0, item=REASONING),
    news("output_item.added", output_index=1, item=message_item("", content=[])),
    news("content_part.added", output_index=1, content_index=0),
    news("output_text.delta", output_index=1, content_index=0, delta="Do"),
    news("output_text.delta", output_index=1, content_index=0, delta="ne."),
    news("output_text.done", output_index=1, content_index=0, text="Done."),
    news("output_item.done", output_index=1, item=message_item()),
    news("output_item.added", output_index=2, item=call_item("")),
    news("function_call_arguments.delta", output_index=2, delta='{"q": '),
    news("function_call_arguments.delta", output_index=2, delta='"cats"}'),
    news("function_call_arguments.done", output_index=2, arguments='{"q": "cats"}'),
    news("output_item.done", output_index=2, item=call_item()),
    news("completed", response=whole_response(REASONING, message_item(), call_item())),
]


def test_a_stream_becomes_reasoning_text_and_calls() -> None:
    message = read_items(_STREAM).messages[0]
    assert (message.id, message.finish_reason) == ("r1", None)
    assert message.parts[:2] == (ReasoningPart("Cats?", {"openai": {"itemId": "rs1"}}), TextPart("Done."))
    (call,) = message.calls
    assert (call.id, call.name, call.input, call.state) == ("call_a", "search", {"q": "cats"}, State.INPUT_AVAILABLE)
    assert (call.provider_executed, call.provider_metadata) == (None, {"openai": {"itemId": "fc_call_a"}})
    counts = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "cachedInputTokens": 4, "reasoningTokens": 2}
    assert message.metadata == {"model": "gpt-x", "usage": counts}
    assert read_events(_STREAM)[-1].finish_reason == "tool-calls"


def test_a_complete_response_reads_like_its_stream() -> None:
    assert read_whole(_STREAM[-1]["response"]) == read_items(_STREAM)


def test_a_response_of_which_only_the_end_arrives_is_read() -> None:
    assert read_items([CREATED, _STREAM[-1]]) == read_items(_STREAM)


def test_items_whose_ids_change_are_identified_by_their_index() -> None:
    rotated = [{**item, **({"item_id": f"x{n}"} if "output_index" in item else {})} for n, item in enumerate(_STREAM)]
    assert read_items(rotated) == read_items(_STREAM)


def test_several_responses_in_sequence_are_steps_of_one_message() -> None:
    second = [
        news("created", response={"id": "r2"}),
        *_STREAM[8:14],
        news("completed", response=whole_response(message_item(), id="r2")),
    ]
    (message,) = read_items([*_STREAM, *second]).messages
    assert [type(part).__name__ for part in message.parts] == ["ReasoningPart", "TextPart", "ToolCall", "TextPart"]
    assert [(step.response_id, (step.usage or {})["inputTokens"]) for step in message.steps] == [("r1", 10), ("r2", 10)]


@pytest.mark.parametrize(
    ("item", "kind", "written"),
    [
        (
            {"type": "code_interpreter_call", "id": "i", "code": ""},
            "code_interpreter_call_code.delta",
            '{"code": "a\\n\\""}',
        ),
        (
            {"type": "apply_patch_call", "call_id": "i", "operation": {"diff": ""}},
            "apply_patch_call_operation_diff.delta",
            '{"diff": "a\\n\\""}',
        ),
        (
            {"type": "shell_call", "call_id": "i", "action": {"commands": []}},
            "shell_call_command.delta",
            '{"commands": ["a\\n\\""]}',
        ),
        (
            {"type": "custom_tool_call", "call_id": "i", "name": "sql", "input": ""},
            "custom_tool_call_input.delta",
            'a\n"',
        ),
        ({"type": "mcp_call", "id": "i", "name": "ask", "arguments": ""}, "mcp_call_arguments.delta", 'a\n"'),
    ],
)
def test_the_input_of_each_tool_streams_as_it_is_written(item: Item, kind: str, written: str) -> None:
    stream = [CREATED, news("output_item.added", output_index=0, item=item)]
    stream += [news(kind, output_index=0, command_index=0, delta=delta) for delta in ("a", '\n"')]
    shown = "".join(event.input_text_delta for event in read_events(stream) if isinstance(event, ev.ToolInputDelta))
    assert written.startswith(shown)
    assert len(shown) >= 3


def test_commands_of_a_shell_call_are_separate() -> None:
    events = [("added", ""), ("delta", "ls"), ("done", "ls"), ("added", ""), ("delta", "pwd"), ("done", "pwd")]
    call = {"type": "shell_call", "call_id": "i", "action": {"commands": []}}
    stream = [CREATED, news("output_item.added", output_index=0, item=call)]
    stream += [news(f"shell_call_command.{kind}", output_index=0, delta=text) for kind, text in events]
    shown = "".join(event.input_text_delta for event in read_events(stream) if isinstance(event, ev.ToolInputDelta))
    assert json.loads(shown + '"]}') == {"commands": ["ls", "pwd"]}


def test_parallel_calls_are_kept_apart() -> None:
    names = ("call_a", "call_b")
    stream = [
        news("output_item.added", output_index=place, item=call_item("", name)) for place, name in enumerate(names)
    ]
    for part in ('{"q": ', '"ca', 'ts"}'):
        stream += [news("function_call_arguments.delta", output_index=place, delta=part) for place in (1, 0)]
    ends = [news("output_item.done", output_index=place, item=call_item(call_id=names[place])) for place in (1, 0)]
    for items in ([CREATED, *stream], [CREATED, *stream, *ends]):
        found = read_items(items).messages[0].calls
        assert [(call.id, call.input) for call in found] == [(name, {"q": "cats"}) for name in names]


def test_a_custom_call_that_is_cut_off_keeps_its_text() -> None:
    item = {"type": "custom_tool_call", "call_id": "i", "name": "sql", "input": ""}
    stream = [CREATED, news("output_item.added", output_index=0, item=item)]
    found = read_items([*stream, news("custom_tool_call_input.delta", output_index=0, delta="SEL")])
    assert (found.calls["i"].input, found.calls["i"].state) == ("SEL", State.OUTPUT_ERROR)


def test_arguments_that_are_cut_off_are_an_error_with_what_was_written() -> None:
    call = read_items(_STREAM[:16]).calls["call_a"]
    assert (call.state, call.input, call.error) == (State.OUTPUT_ERROR, '{"q": ', NO_JSON)


def test_the_complete_item_overrides_its_deltas() -> None:
    """Deltas that were missed, an id that was another: as a stream that was taken up again, and as one recording."""
    added = news("output_item.added", output_index=0, item=call_item("", "first"))
    delta = news("function_call_arguments.delta", output_index=0, delta='cats"}')
    found = read_items([CREATED, added, delta, news("output_item.done", output_index=0, item=call_item())])
    assert [(call.id, call.input) for call in found.messages[0].calls] == [("call_a", {"q": "cats"})]
    text = news("output_text.delta", output_index=0, content_index=0, delta="Do")
    found = read_items([CREATED, text, news("output_item.done", output_index=0, item=message_item(phase="final"))])
    assert found.messages[0].parts == (TextPart("Done.", {"openai": {"phase": "final"}}),)


def test_reasoning_keeps_what_the_next_request_needs() -> None:
    secret = {"itemId": "rs1", "encryptedContent": "x"}
    for item, text in (({**REASONING, "summary": []}, ""), (REASONING, "Cats?")):
        parts = read_items(items_done({**item, "encrypted_content": "x"}, message_item())).messages[0].parts
        assert parts == (ReasoningPart(text, {"openai": secret}), TextPart("Done."))
    assert read_items(items_done({**REASONING, "summary": []})).messages[0].parts == ()
    raw = {"type": "reasoning", "id": "rs1", "content": [{"type": "reasoning_text", "text": "why"}]}
    told = {"openai": {"itemId": "rs1", "raw_content": True}}
    assert read_items(items_done(raw)).messages[0].parts == (ReasoningPart("why", told),)


def test_each_summary_names_its_item_and_the_first_has_the_encrypted_content() -> None:
    items = items_of(SIGNED["openai several summaries"][1])
    assert [part.provider_metadata for part in read_items(items).messages[0].parts[:3]] == [
        {"openai": {"itemId": "rs_1", "encryptedContent": SECRETS[0]}},
        {"openai": {"itemId": "rs_1"}},
        {"openai": {"itemId": "rs_1"}},
    ]


def test_sources_follow_the_text_once() -> None:
    page = {"type": "url_citation", "url": "https://a", "title": "A"}
    files = [
        {"type": "file_citation", "file_id": "f", "filename": "n"},
        {"type": "container_file_citation", "file_id": "g"},
    ]
    content = [{"type": "output_text", "text": "x", "annotations": [page, *files, page]}]
    text = news("output_text.delta", output_index=0, content_index=0, delta="x")
    added = news("output_text.annotation.added", output_index=0, content_index=0, annotation=page)
    stream = [CREATED, text, added, news("output_item.done", output_index=0, item=message_item(content=content))]
    assert read_items(stream).messages[0].parts == (
        TextPart("x"),
        SourceUrlPart("source-1", "https://a", "A"),
        SourceDocumentPart("source-2", "text/plain", "n", None, {"openai": {"fileId": "f"}}),
        SourceDocumentPart("source-3", "text/plain", "g", None, {"openai": {"fileId": "g"}}),
    )
    assert (
        read_whole(whole_response(message_item(content=content))).messages[0].parts
        == read_items(stream).messages[0].parts
    )


def test_a_refusal_is_text_with_its_reason() -> None:
    refused = message_item(content=[{"type": "refusal", "refusal": "I can't."}])
    delta = news("refusal.delta", output_index=0, content_index=0, delta="I can't.")
    for found in (read_items(items_done(refused)), read_items([CREATED, delta, *items_done(refused)[1:]])):
        assert found.messages[0].parts == (TextPart("I can't."),)
        assert found.messages[0].finish_reason == "content-filter"


def test_sound_is_a_file_and_its_transcript_is_text() -> None:
    spoken = [news("audio.delta", delta="UklGRg=="), news("audio.transcript.delta", delta="Hi")]
    found = read_items([CREATED, *spoken]).messages[0].parts
    assert found == (TextPart("Hi"), FilePart("data:audio/wav;base64,UklGRg==", "audio/wav"))


@pytest.mark.parametrize(
    ("status", "more", "reason"),
    [
        ("completed", {}, None),
        ("incomplete", {"incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ("incomplete", {"incomplete_details": {"reason": "content_filter"}}, "content-filter"),
        ("incomplete", {"incomplete_details": None}, "other"),
        ("failed", {"error": None}, "error"),
        ("cancelled", {}, "other"),
        ("in_progress", {}, None),
    ],
)
def test_the_finish_reason_is_translated(status: str, more: Item, reason: str | None) -> None:
    assert read_whole(whole_response(message_item(), status=status, **more)).messages[0].finish_reason == reason


def test_an_error_is_reported_once_and_content_before_it_is_kept() -> None:
    error = {"code": "quota", "message": "You exceeded your quota."}
    failed = news("failed", response=whole_response(status="failed", error=error))
    for events in ([news("error", error=error), failed], [news("error", **error), failed], [failed]):
        message = read_items([*_STREAM[:12], *events]).messages[0]
        (told,) = [part for part in message.parts if isinstance(part, ErrorPart)]
        assert "You exceeded your quota. What came before" in told.text
        assert "quota" in (told.details or "")
        assert (message.text, message.finish_reason) == ("Done.", "error")


def test_an_unknown_event_is_kept_and_other_items_give_a_diagnostic() -> None:
    new = news("poem.written", x=1)
    found = read_items([*_STREAM[:12], new, {"type": "pong"}, 5])
    assert CustomPart("openai.response.poem.written", {"openai": new}) in found.messages[0].parts
    assert len(found.diagnostics) == 2


def test_a_stream_may_be_cut_off_after_any_item() -> None:
    for items in prefixes(_STREAM):
        found = read_items(items)
        assert len(found.messages) == 1
        assert [call.id for call in found.calls.values()] == ["call_a"][: len(found.calls)]
        assert not found.diagnostics


def test_a_repeated_item_is_read_once() -> None:
    twice = [item for item in _STREAM for _ in range(2) if "delta" not in item["type"]]
    assert read_items(twice).messages[0].parts == read_items(_STREAM).messages[0].parts


@given(st.data(), texts(), texts())
def test_cuts_in_texts_and_arguments_do_not_matter(data: st.DataObject, said: str, thought: str) -> None:
    def read(cuts: list[int]) -> Transcript:
        items = [
            news("reasoning_text.delta", output_index=0, content_index=0, delta=part)
            for part in in_pieces(thought, cuts)
        ]
        items += [
            news("output_text.delta", output_index=1, content_index=0, delta=part) for part in in_pieces(said, cuts)
        ]
        items += [news("output_item.added", output_index=2, item=call_item(""))]
        written = in_pieces('{"q": "\\ud83d\\ude00 é"}', cuts)
        items += [news("function_call_arguments.delta", output_index=2, delta=part) for part in written]
        return read_items([CREATED, *items])

    cut = read(data.draw(st.lists(st.integers(0, 24), max_size=8).map(sorted)))
    assert cut == read([])
    assert cut.messages[0].text == said
    assert cut.calls["call_a"].input == {"q": "😀 é"}


_ODD: list[Item] = [
    {
        "type": "mcp_call",
        "id": "i",
        "name": "ask",
        "arguments": "{}",
        "error": {"message": "x"},
        "approval_request_id": "z",
    },
    {"type": "mcp_approval_request", "id": "ap", "name": "ask", "arguments": "{}"},
    {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}, "environment": {"type": "container"}},
    {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a"}]},
    {"type": "tool_search_call", "id": "t", "arguments": {}},
    {"type": "tool_search_output", "tools": []},
    {"type": "web_search_call", "id": "w", "action": {"sources": [1]}, "status": "failed"},
    {"type": "image_generation_call", "id": "g", "result": "x", "output_format": "png"},
    {**REASONING, "encrypted_content": "x"},
    message_item(phase="x", content=[{"type": "refusal", "refusal": "x"}, {"type": "input_image", "image_url": "u"}]),
]
_STRANGE = [
    *_STREAM,
    *(news("output_item.added", output_index=place + 3, item=item) for place, item in enumerate(_ODD)),
    *(news("output_item.done", output_index=place + 3, item=item) for place, item in enumerate(_ODD)),
    news("code_interpreter_call_code.delta", output_index=3, delta="x"),
    news("code_interpreter_call_code.done", output_index=3, code="x"),
    news("custom_tool_call_input.done", output_index=3, input="x"),
    news("output_text.annotation.added", annotation={"type": "url_citation", "url": "u"}),
    news("error", error={"message": "x"}),
    news("failed", response=whole_response(status="failed", error={"message": "x"})),
    news("audio.delta", delta="x"),
]


@given(broken_streams(_STRANGE))
def test_no_malformed_stream_raises(items: list[Any]) -> None:
    found = read_items(items, OpenAIResponsesAdapter())
    assert all(call.id for call in found.calls.values())


@given(st.dictionaries(st.sampled_from(["type", "response", "item", "output_index", "delta", "error"]), json_values()))
def test_no_mapping_raises(item: Item) -> None:
    OPENAI_RESPONSES.is_item(item), OPENAI_RESPONSES.is_whole(item)
    read_items([CREATED, item])


@pytest.mark.parametrize(
    "foreign",
    [
        *(
            {},
            [],
            "text",
            5,
            None,
            {"type": "message_start"},
            {"type": "error", "error": {"type": "x", "message": "y"}},
        ),
        *({"choices": []}, {"object": "chat.completion", "choices": []}, {"output": {"message": {}}}, {"output": []}),
    ],
)
def test_only_responses_are_recognised(foreign: Any) -> None:
    assert format_of_item(foreign) is not OPENAI_RESPONSES
    assert format_of_whole(foreign) is not OPENAI_RESPONSES
