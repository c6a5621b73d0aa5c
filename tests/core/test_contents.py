"""The contents of a result: as text, beside an output, and as they are sent to a model."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from toolcall_nb.core.call_display import MAX_DISPLAYS, SENT_AS, sent_contents, sent_note
from toolcall_nb.core.contents import contents_text, file_piece, json_piece, piece_text, text_piece, value_beside
from toolcall_nb.core.events import MISSING, Object
from toolcall_nb.core.result_text import RESULT_LIMIT, format_result
from toolcall_nb.core.transcript import FilePart, Message, State, ToolCall, Transcript

PNG = base64.b64encode(b"png").decode()
URL = f"data:image/png;base64,{PNG}"


def piece(media_type: str = "image/png", **more: Any) -> Object:
    made = file_piece(media_type, **(more or {"data": b"png"}))
    assert made is not None
    return made


def call(*contents: Object, **fields: Any) -> ToolCall:
    fields = {"state": State.OUTPUT_AVAILABLE, "output": contents_text(contents), **fields}
    return ToolCall(id="c", name="look", input={}, contents=[*contents], **fields)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (text_piece("a\nb"), "a\nb"),
        (json_piece({"a": [1, float("nan")]}), '{"a":[1,"NaN"]}'),
        (json_piece("a text"), "a text"),
        (piece(), "<image/png, 3 bytes>"),
        (piece(data=b"1234", filename="plot.png"), "<plot.png: image/png, 4 bytes>"),
        (piece(url="https://example.org/a.png"), "<image/png: https://example.org/a.png>"),
        ({"type": "resource", "uri": "file:///a", "name": "A"}, "<A: file:///a>"),
        ({"type": "resource", "uri": "file:///a", "text": "inside"}, "inside"),
        ({"type": "new"}, ""),
        ({"type": "file", "url": 3}, "<data: >"),
    ],
)
def test_each_piece_has_a_text(made: Object, text: str) -> None:
    assert piece_text(made) == text


def test_an_output_that_its_contents_say_is_not_said_twice() -> None:
    contents = [text_piece("a"), piece()]
    assert value_beside("a\n<image/png, 3 bytes>", contents) is MISSING
    assert value_beside({"a": 1}, contents) == {"a": 1}
    mcp = [{"type": "text", "text": "a"}, {"type": "image", "data": PNG, "mimeType": "image/png"}]
    for output in (mcp, {"content": mcp}, {"type": "content", "value": mcp}):
        assert value_beside(output, contents) is MISSING


@pytest.mark.parametrize(
    ("output", "contents", "beside"),
    [
        ("a", [text_piece("a"), piece()], MISSING),
        ("a\n\nb", [text_piece("a"), piece(), text_piece("b")], MISSING),
        ("a b", [text_piece("a"), piece()], "a b"),
        ("a", [piece()], "a"),
        ({"a": 1}, [json_piece({"a": 1}), piece()], MISSING),
        (0, [piece()], 0),
        (None, [piece()], MISSING),
        ("", [piece()], MISSING),
    ],
)
def test_an_output_with_the_words_of_its_contents_says_no_more(
    output: Any, contents: list[Object], beside: Any
) -> None:
    """Some tools give the text alone as output, without the lines that name the files."""
    assert value_beside(output, contents) == beside


def test_a_model_that_sees_no_pictures_is_told_what_is_left_out() -> None:
    contents = (piece(), text_piece("between"), piece())
    assert format_result(call(*contents)) == "<image/png, 3 bytes>\nbetween\n<image/png, 3 bytes>"
    assert format_result(call(piece(), output={"sum": 3})) == '{"sum":3}\n<image/png, 3 bytes>'
    failed = call(piece(), state=State.OUTPUT_ERROR, output=MISSING, error="it broke")
    assert format_result(failed) == "it broke\n<image/png, 3 bytes>"


def test_the_text_of_an_error_with_contents_is_cut() -> None:
    failed = call(text_piece("x" * 2 * RESULT_LIMIT), state=State.OUTPUT_ERROR, output=MISSING, error="it broke")
    assert "characters left out" in format_result(failed)


PICTURE = FilePart(URL, "image/png")


def test_a_model_that_sees_is_sent_texts_and_pictures_in_order() -> None:
    contents = (piece(), text_piece("between"), json_piece([1]), piece(), piece("audio/wav"))
    assert sent_contents(call(*contents)) == [PICTURE, "between\n[1]", PICTURE, "<audio/wav, 3 bytes>"]
    assert sent_contents(call(piece(), output={"sum": 3})) == ['{"sum":3}', PICTURE]


def test_a_model_that_sees_is_sent_what_another_model_was_sent_as_text() -> None:
    displayed = {"text/plain": "3", "image/png": PNG}
    assert sent_contents(call(piece(), tool_metadata={SENT_AS: "text"}, display=displayed)) == [PICTURE]


def test_a_text_that_was_cut_for_the_model_comes_before_the_pictures() -> None:
    sent = sent_contents(call(piece(), text_piece("long"), model_text="cut"))
    assert sent == ["cut", PICTURE]


def test_of_an_error_the_model_is_sent_the_text_and_the_pictures_if_its_provider_takes_them() -> None:
    failed = call(text_piece("it broke"), piece(), state=State.OUTPUT_ERROR, output=MISSING, error="it broke")
    assert sent_contents(failed) == ["it broke\n<image/png, 3 bytes>"]
    assert sent_contents(failed, of_errors=True) == ["it broke", PICTURE]


def test_the_pictures_of_an_error_come_after_a_text_that_says_more() -> None:
    fields: dict[str, Any] = {"state": State.OUTPUT_ERROR, "error": "it broke"}
    begun = call(piece(), output="half of it", **fields)
    assert sent_contents(begun, of_errors=True) == [format_result(begun), PICTURE]
    long = call(text_piece("x" * 2 * RESULT_LIMIT), piece(), output=MISSING, **fields)
    text, picture = sent_contents(long, of_errors=True)
    assert picture == PICTURE
    assert "characters left out" in str(text)


def test_the_card_says_how_many_pictures_were_sent() -> None:
    many = [piece()] * (MAX_DISPLAYS + 1)
    assert sent_note(call(piece(), tool_metadata={SENT_AS: "picture"})) == "sent as a picture"
    assert sent_note(call(*many, tool_metadata={SENT_AS: "picture"})) == "sent as 20 pictures of 21"
    assert sent_note(call(*many, tool_metadata={SENT_AS: "text"})) == "sent as text"


def test_anthropic_gets_the_pictures_of_a_result_and_the_text_of_an_error() -> None:
    failed = call(piece(), state=State.OUTPUT_ERROR, output=MISSING, error="it broke")
    calls = [call(text_piece("see"), piece()), ToolCall(id="d", name="f", state=State.OUTPUT_AVAILABLE, output="text")]
    request = Transcript((Message("assistant", (*calls, failed)),)).to_anthropic()
    results = {block["tool_use_id"]: block["content"] for block in request["messages"][-1]["content"]}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    assert [*results.values()] == [
        [{"type": "text", "text": "see"}, image],
        "text",
        "it broke\n<image/png, 3 bytes>",
    ]
