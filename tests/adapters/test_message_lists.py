"""Lists of messages as Anthropic, Google and Bedrock take them: turns, with the results in their calls."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest
from google.genai import types

from tests.support.adapter_streams import read_whole
from toolcall_nb.core.transcript import FilePart, Message, SourceUrlPart, State, TextPart, Transcript

Item = dict[str, Any]


def test_a_list_of_anthropics_messages_becomes_turns_with_the_results_in_their_calls() -> None:
    said = [{"type": "text", "text": "No."}]
    refused = {"type": "tool_result", "tool_use_id": "b", "is_error": True, "content": said}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I ask."},
                {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "42"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "b", "name": "f", "input": {}}]},
        {
            "role": "user",
            "content": [refused, {"type": "text", "text": "And now?"}],
        },
        {"role": "assistant", "content": "Done."},
    ]
    transcript = read_whole(messages)
    assert [(message.role, message.text) for message in transcript.messages] == [
        ("user", "What is this?"),
        ("assistant", "I ask."),
        ("user", "And now?"),
        ("assistant", "Done."),
    ]
    assert not transcript.diagnostics
    first, second = transcript.calls.values()
    assert (first.input, first.output) == ({"x": 1}, "42")
    assert (second.state, second.error) == (State.OUTPUT_ERROR, "No.")


def test_a_list_may_hold_the_blocks_of_anthropics_sdk() -> None:
    block = anthropic.types.ToolUseBlock.construct(id="a", name="f", input={"x": 1}, type="tool_use")
    messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": [block]}]
    (call,) = read_whole(messages).calls.values()
    assert (call.id, call.input) == ("a", {"x": 1})


def test_a_list_of_contents_becomes_turns_with_the_results_in_their_calls() -> None:
    contents = [
        {"role": "user", "parts": [{"text": "Go."}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"x": 1}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": 42}}}]},
        {"role": "model", "parts": [{"text": "Done."}]},
        {"role": "user", "parts": [{"text": "Again."}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
    ]
    objects = [types.Content.model_validate(content) for content in contents]
    for given_list in (contents, objects):
        transcript = read_whole(given_list)
        assert [(one.role, one.text) for one in transcript.messages] == [
            ("user", "Go."),
            ("assistant", "Done."),
            ("user", "Again."),
            ("assistant", ""),
        ]
        first, second = transcript.calls.values()
        assert (first.id, first.output, second.id, second.state) == (
            "call_1",
            {"result": 42},
            "call_2",
            State.INPUT_AVAILABLE,
        )


def test_a_list_of_bedrocks_messages_becomes_turns_with_the_results_in_their_calls() -> None:
    def result(call_id: str, status: str, *content: Item) -> Item:
        return {"toolResult": {"toolUseId": call_id, "status": status, "content": list(content)}}

    messages = [
        {"role": "user", "content": [{"text": "Go."}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": call, "name": "f", "input": {}}} for call in "ab"]},
        {
            "role": "user",
            "content": [result("a", "success", {"json": {"n": 1}}), result("b", "error", {"text": "No."})],
        },
        {"role": "assistant", "content": [{"text": "Done."}]},
    ]
    transcript = read_whole(messages)
    assert [(one.role, one.text) for one in transcript.messages] == [("user", "Go."), ("assistant", "Done.")]
    first, second = transcript.calls.values()
    assert (first.output, second.error) == ({"n": 1}, "No.")


def test_a_list_with_cited_text_is_anthropics() -> None:
    cited = {"type": "web_search_result_location", "url": "https://h/a", "title": "A", "cited_text": "a"}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Go."}]},
        {"role": "assistant", "content": [{"type": "text", "text": "So.", "citations": [cited]}]},
    ]
    _, answer = read_whole(messages)
    text, source = answer.parts
    assert isinstance(source, SourceUrlPart)
    assert (text, source.url, source.title) == (TextPart("So."), "https://h/a", "A")


@pytest.mark.parametrize(
    ("block", "media_type", "name"),
    [
        ({"image": {"format": "png", "source": {"bytes": b"hi"}}}, "image/png", None),
        ({"document": {"format": "pdf", "name": "a", "source": {"bytes": b"hi"}}}, "application/pdf", "a"),
    ],
)
def test_a_list_with_files_in_bytes_is_bedrocks(block: Item, media_type: str, name: str | None) -> None:
    messages = [
        {"role": "user", "content": [{"text": "Go."}, block]},
        {"role": "assistant", "content": [{"text": "So."}]},
    ]
    question, answer = read_whole(messages)
    assert question.parts == (TextPart("Go."), FilePart(f"data:{media_type};base64,aGk=", media_type, filename=name))
    assert answer.text == "So."


@pytest.mark.parametrize("url", ["data:application/pdf;base64,aGk=", "https://h/a.pdf"])
def test_the_name_of_a_document_is_its_title_for_anthropic(url: str) -> None:
    question = Message("user", (TextPart("Go."), FilePart(url, "application/pdf", filename="a.pdf")))
    request = Transcript((question,)).to_anthropic()
    assert read_whole(request["messages"]).messages[0].parts == question.parts
