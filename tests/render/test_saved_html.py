"""The HTML that a notebook saves: how large it is, what it needs of the style, and how it reads as Markdown."""

from __future__ import annotations

import re
from typing import Any

import nbformat
import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt
from msgspec.structs import replace
from nbconvert import MarkdownExporter, RSTExporter
from traitlets.config import Config

from tests.fixtures.render.samples import EVERYTHING, call, saying
from tests.support.saved_runs import saved, short_run, size, usual_run
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import State, Transcript
from toolcall_nb.render import to_html
from toolcall_nb.render.html_output.saved_html import saved_html

_CSS = re.compile(r"[\w-]+:[^;{}<>]+;[\w-]+:|color-mix|\{[a-z-]+:")
_GFM_TAGS = re.compile(r"<(?=/?(?:title|textarea|style|xmp|iframe|noembed|noframes|script|plaintext)\b)", re.IGNORECASE)
"""What GitHub's Markdown writes as text (GFM 6.11)."""


def test_a_run_with_one_call_takes_at_most_4_kb() -> None:
    assert size(saved(short_run())["text/html"]) <= 4_000


def test_fifty_runs_take_at_most_four_times_their_markdown() -> None:
    bundles = [saved(usual_run(number)) for number in range(50)]
    html = sum(size(bundle["text/html"]) for bundle in bundles)
    assert html <= 4 * sum(size(bundle["text/markdown"]) for bundle in bundles)


def test_a_further_run_of_the_same_kind_in_one_output_takes_little() -> None:
    many = Transcript.from_events([event for number in range(50) for event in _events(number)])
    bundle = saved(many)
    assert size(bundle["text/html"]) <= 4 * size(bundle["text/markdown"])


def _events(number: int) -> list[ev.Event]:
    call = f"call_{number}"
    return [
        ev.Start(),
        ev.ToolInputAvailable(call, "weather", {"city": "Lisbon", "days": number}),
        ev.ToolOutputAvailable(call, {"temperature": 21, "sky": "clear"}),
        ev.TextDelta(f"u{number}", "It is **21 degrees** and clear in Lisbon."),
        ev.Finish(),
    ]


@pytest.mark.parametrize("transcript", [EVERYTHING, short_run()], ids=["everything", "run"])
def test_the_text_and_the_elements_are_those_of_the_renderer(transcript: Transcript) -> None:
    shown, whole = (
        BeautifulSoup(html, "html.parser") for html in (saved_html(to_html(transcript)), to_html(transcript))
    )
    for page in (shown, whole):
        page.style.decompose()
    assert shown.get_text() == whole.get_text()
    for tag in ("details", "summary", "pre", "table", "p", "a", "img", "li", "h1", "div"):
        assert len(shown.find_all(tag)) == len(whole.find_all(tag)), tag


def test_in_a_long_run_only_open_cards_have_colours_and_the_text_is_the_same() -> None:
    transcript = Transcript.from_events([event for number in range(201) for event in _events(number)])
    html = to_html(transcript, opened={"call_7": True})
    page, whole = BeautifulSoup(saved_html(html), "html.parser"), BeautifulSoup(html, "html.parser")
    for each in (page, whole):
        each.style.decompose()
    assert page.get_text() == whole.get_text()
    coloured = page.select("pre > b, pre > var")
    assert [part.get_text() for part in coloured] == ["city", "days", "7", "temperature", "21", "sky"]
    assert {part.find_parent("details") for part in coloured} == {page.select_one("details[open]")}


def test_saving_twice_changes_nothing() -> None:
    once = saved_html(to_html(EVERYTHING))
    assert saved_html(once) == once


def test_each_output_has_rules_for_itself_only() -> None:
    one, other = saved(short_run())["text/html"], saved(short_run(text="| a |\n|---|\n| 1 |"))["text/html"]
    keys = [re.findall(r'<div class="tc (t[0-9a-f]{4})"', html) for html in (one, other)]
    assert len(keys[0]) == len(keys[1]) == 1
    assert keys[0] != keys[1]
    assert ".tc.tc{" not in one + other
    assert "table{" in other
    assert "table{" not in one


def test_a_value_looks_the_same_as_text_without_its_style() -> None:
    html = saved(short_run())["text/html"]
    assert "<pre><b>city</b>: Lisbon\n<b>days</b>: <var>0</var></pre>" in html


def test_without_the_style_sheet_tags_say_state_depth_and_error() -> None:
    failed = call(State.OUTPUT_ERROR, error='x" style="color:red', tool_metadata={"parent": "call_1"})
    failed = replace(failed, id="inner")
    page = BeautifulSoup(saved_html(to_html(saying(call(), failed))), "html.parser")
    assert [card["style"] for card in page.select(".tc-call")] == [
        "border:2px solid green;padding:4px",
        "border:2px solid #d33;padding:4px;margin-left:22px",
    ]
    assert [error["style"] for error in page.select(".tc-err")] == ["border-left:3px solid #d33"]
    assert len(page.select("[style]")) == 3
    assert {each.name for each in page.select(".tc-args")} == {"samp"}


def notebook(*bundles: dict[str, str]) -> nbformat.NotebookNode:
    v4 = nbformat.v4
    outputs = [v4.new_output("display_data", bundle) for bundle in bundles]
    made: nbformat.NotebookNode = v4.new_notebook(cells=[v4.new_code_cell("1", outputs=[output]) for output in outputs])
    return made


BLANK = short_run(text="A:\n\n```\na\n\n\n    b\n \n[x]: y\n```\n\nEnd.")


def test_a_markdown_file_of_nbconvert_shows_the_run_to_its_end_and_no_css() -> None:
    text, _ = MarkdownExporter().from_notebook_node(notebook(saved(BLANK), saved(short_run())))  # type: ignore[no-untyped-call]
    html = MarkdownIt("commonmark", {"html": True}).render(text)
    plain = BeautifulSoup(_GFM_TAGS.sub("&lt;", html), "html.parser").get_text()  # as on GitHub, which drops comments
    assert _CSS.search(plain) is None
    assert "a\n\n\n    b\n \n[x]: y\n" in plain
    assert plain.count("mock · 1 tool call") == 2
    assert not re.search(r"</?(?:div|pre|details)", plain)


def test_a_markdown_file_of_nbconvert_that_prefers_markdown_holds_no_html() -> None:
    bundle = saved(short_run())
    priority = ["text/markdown", "image/png", "text/plain"]
    exporter: Any = MarkdownExporter(config=Config(NbConvertBase={"display_data_priority": priority}))  # type: ignore[no-untyped-call]
    text, _ = exporter.from_notebook_node(notebook(bundle))
    assert bundle["text/markdown"] in text
    assert "<" not in text


def test_a_restructured_text_file_of_nbconvert_holds_it_as_html() -> None:
    text, _ = RSTExporter().from_notebook_node(notebook(saved(BLANK)))  # type: ignore[no-untyped-call]
    assert ".. raw:: html" in text
    outside = re.sub(r"\.\. raw:: html\n\n(?: {4}.*\n)+", "", text)
    assert _CSS.search(outside) is None
    assert "mock · 1 tool call" not in outside
