"""A result of several pieces in its card: each piece in order, live as saved, in HTML and as text."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest

from toolcall_nb.core import events as ev
from toolcall_nb.core.call_display import MAX_DISPLAYS
from toolcall_nb.core.contents import contents_text, file_piece, json_piece, text_piece
from toolcall_nb.core.events import MISSING, Object
from toolcall_nb.core.transcript import Message, State, ToolCall, Transcript
from toolcall_nb.render import LiveHtml, to_html, to_text
from toolcall_nb.render.value_lines import MAX_ROWS

DATA = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(8)).decode()
PICTURE: Any = file_piece("image/png", DATA, filename="plot.png")
PIECES = [text_piece("before"), PICTURE, json_piece([{"a": 1}, {"a": 2}]), PICTURE, text_piece("after")]


def transcript(contents: list[Object], **fields: Any) -> Transcript:
    fields = {"state": State.OUTPUT_AVAILABLE, "output": contents_text(contents), **fields}
    return Transcript((Message("assistant", (ToolCall(id="c", name="look", input={}, contents=contents, **fields),)),))


def failed(contents: list[Object], error: str) -> Transcript:
    return transcript(contents, state=State.OUTPUT_ERROR, output=MISSING, error=error)


def order(html: str) -> list[str]:
    """The pieces in the HTML of a card, by what they show."""
    body = html[html.index("<details") :]
    return re.findall(r'before|<img src="data:image/png|<table|after|<b class="tc-word">Error|it broke', body)


def test_the_pieces_stand_in_order() -> None:
    image = '<img src="data:image/png'
    assert order(to_html(transcript(PIECES))) == ["before", image, "<table", image, "after"]


def test_a_card_with_pictures_stays_open() -> None:
    assert "<details open>" in to_html(transcript(PIECES))
    assert "<details open>" not in to_html(transcript([text_piece("a"), text_piece("b")]))


def test_an_output_that_says_more_comes_first() -> None:
    text = to_text(transcript([PICTURE], output={"sum": 3}))
    assert text.index("sum: 3") < text.index("(plot.png: image/png, 16 bytes)")


def test_in_plain_text_each_piece_is_numbered() -> None:
    words = ["before", "(plot.png:", "a", "(plot.png:", "after"]
    found = re.findall(r"Output \((\d of 5)\)\n +(\S+)", to_text(transcript(PIECES)))
    assert found == [(f"{number} of 5", word) for number, word in enumerate(words, 1)]


@pytest.mark.parametrize("error", [contents_text([text_piece("it broke"), PICTURE]), "it broke"])
def test_an_error_shows_its_text_once_and_then_its_picture_in_a_closed_card_too(error: str) -> None:
    contents = [text_piece("it broke"), PICTURE] if "png" in error else [PICTURE]
    html = to_html(failed(contents, error), opened={"c": False})
    assert order(html[html.index("</details>") :].join(["<details", ""])) == [
        '<b class="tc-word">Error',
        "it broke",
        '<img src="data:image/png',
    ]


def test_an_error_of_pictures_alone_names_them() -> None:
    text = to_text(failed([PICTURE], contents_text([PICTURE])))
    assert "Error\n      <plot.png: image/png, 16 bytes>" in text


@pytest.mark.parametrize("run", [transcript(PIECES), transcript([PICTURE], output=[1]), failed(PIECES, "it broke")])
def test_the_live_card_equals_the_saved_one(run: Transcript) -> None:
    live = LiveHtml()
    for event in run.events():
        live.apply(event)
    live.close()
    assert live.html == to_html(run)


def test_a_preliminary_result_is_replaced_piece_by_piece() -> None:
    live = LiveHtml()
    live.apply(ev.ToolInputAvailable("c", "look", {}))
    for contents in ([text_piece("before")], PIECES[:2], PIECES):
        live.apply(ev.ToolOutputAvailable("c", contents_text(contents), preliminary=True, contents=contents))
        assert order(live.html) == order(to_html(live.transcript))
    assert len(order(live.html)) == len(PIECES)


def test_a_long_text_is_folded_and_more_pieces_than_are_shown_are_counted() -> None:
    contents = [text_piece("line\n" * (MAX_ROWS + 5)), *[PICTURE] * (MAX_DISPLAYS + 2)]
    html = to_html(transcript(contents))
    assert '<details class="tc-more"><summary>5 more lines' in html
    assert html.count("<img") == MAX_DISPLAYS - 1
    assert "3 more: chat.calls[&#39;c&#39;].contents" in html


def test_a_picture_elsewhere_is_loaded_only_from_an_allowed_host() -> None:
    address = "https://example.org/plot.png"
    run = transcript([file_piece("image/png", url=address) or {}])
    assert f'<a href="{address}"' in to_html(run)
    assert "<img" not in to_html(run)
    assert f'<img src="{address}"' in to_html(run, images=["example.org"])


def test_a_file_that_is_no_picture_can_be_downloaded() -> None:
    run = transcript([file_piece("application/pdf", b"%PDF", filename="plan.pdf") or {}])
    assert 'download="plan.pdf"' in to_html(run)
    markup = transcript([file_piece("text/html", b"<b>bold</b>", filename="a.html") or {}])
    assert "<b>bold" not in to_html(markup)
    assert "a.html" in to_html(markup)


def test_a_drawing_is_shown_and_a_broken_one_is_named() -> None:
    assert "<img" in to_html(transcript([file_piece("image/svg+xml", b"<svg></svg>") or {}]))
    for broken in ("image/svg+xml", "image/png"):
        html = to_html(transcript([file_piece(broken, "no base64") or {}]))
        assert "<img" not in html
        assert broken in html


def test_a_resource_is_shown_with_its_address() -> None:
    text = to_text(transcript([{"type": "resource", "uri": "file:///a", "name": "A", "text": "inside"}]))
    assert "Output (A, file:///a)\n      inside" in text


def test_contents_of_any_form_can_be_shown() -> None:
    odd: list[Object] = [{}, {"type": 3}, {"type": "file", "url": 3, "filename": 4}, {"type": "resource", "uri": [1]}]
    assert to_html(transcript(odd))
    assert to_text(transcript(odd))
