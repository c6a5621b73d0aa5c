"""An error outside a call: its text is always visible, and its details are folded."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.render.samples import HOSTILE
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import ErrorPart, Message, Transcript
from toolcall_nb.render import LiveHtml, to_html, to_text

SAID = 'HTTP 429 from https://api.example.org\n\n{\n  "error": "slow <b>down</b>"\n}'


def saying(part: ErrorPart) -> Transcript:
    return Transcript((Message("assistant", (part,), finish_reason="error"),))


def live(part: ErrorPart) -> LiveHtml:
    html = LiveHtml()
    for event in (ev.Start(), ev.Error(part.text, part.details), ev.Finish(finish_reason="error")):
        html.apply(event)
    return html


def test_the_error_is_visible_and_its_details_are_folded_below_it() -> None:
    html = to_html(saying(ErrorPart("Try again in 4 s.", SAID)))
    assert html.index("Try again in 4 s.") < html.index('<details class="tc-fold"><summary>Details</summary><pre>')
    assert "slow &lt;b&gt;down&lt;/b&gt;" in html


def test_without_details_there_is_no_fold() -> None:
    html = to_html(saying(ErrorPart("Try again.")))
    assert '<pre class="tc-err"><b>Error</b> Try again.</pre>' in html
    assert "<details" not in html


def test_a_fold_that_the_reader_opened_stays_open_in_the_static_form() -> None:
    shown = live(ErrorPart("Try again.", SAID))
    (node,) = [patch[1] for patch in shown.snapshot() if patch[0] == "insert" and "Details" in patch[4]]
    name = shown.call_of(node)
    assert name is not None
    shown.set_open(name, True)
    assert '<details class="tc-fold" open><summary>Details' in to_html(shown.transcript, opened={name: True})
    assert shown.html == to_html(shown.transcript, opened={name: True})


@given(st.text(), st.none() | st.text())
def test_live_and_static_html_are_the_same(text: str, details: str | None) -> None:
    shown = live(ErrorPart(text, details))
    assert shown.html == to_html(shown.transcript)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_details_are_never_markup(text: str) -> None:
    html = re.sub(r"<style>.*?</style>", "", to_html(saying(ErrorPart(text, text))), flags=re.DOTALL)
    tags = set(re.findall(r"<(/?[a-zA-Z][\w-]*)", html))
    assert {tag.strip("/") for tag in tags} <= {"div", "b", "pre", "details", "summary", "p"}


def test_very_long_details_are_drawn_in_part_and_kept_whole() -> None:
    part = ErrorPart("Too much.", "x" * 1_000_000)
    html = to_html(saying(part))
    assert len(html) < 100_000
    assert "980,000 characters left out" in html
    assert Transcript.from_markdown(saying(part).to_markdown()) == saying(part)


def test_plain_text_has_the_first_lines_within_bounds() -> None:
    assert to_text(saying(ErrorPart("Try again.", SAID))) == (
        "AI\n  Error: Try again.\n    HTTP 429 from https://api.example.org\n\n    {\n"
        '      "error": "slow <b>down</b>"\n    }\n\n  (Ended with an error.)'
    )
    long = to_text(saying(ErrorPart("Try again.", "\n".join(["y" * 500] * 90))))
    assert long.count("y" * 200 + "…\n") == 20
    assert "… 70 more lines" in long
    assert "y" * 201 not in long
