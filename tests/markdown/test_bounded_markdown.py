"""Markdown of hostile sizes: nested, and growing, without end. Work is counted; no clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from toolcall_nb.core.transcript import Message, TextPart, Transcript
from toolcall_nb.incremental_markdown import flavor
from toolcall_nb.incremental_markdown.flavor import MOST_MARKS, marks_in, parser, render_markdown
from toolcall_nb.incremental_markdown.incremental import IncrementalMarkdown

# Nested ---------------------------------------------------------------------------------------------------------

NESTED = {
    "quotes": "> " * 2000 + "a",
    "lists": "".join("  " * level + "- a\n" for level in range(300)),
    "dashes": "- " * 2000 + "a",
    "emphasis": "*a " * 5000,
    "emphasis in emphasis": "*" * 5000 + "a" + "*" * 5000,
    "brackets": "[" * 5000 + "a" + "]" * 5000,
    "links": "[a](" * 5000,
    "pictures": "![" * 5000,
    "code": "".join("`" * ticks + " " for ticks in range(1, 120)),
    "autolinks": "<a" * 5000,
    "entities": "&a" * 5000,
    "formulas": "$a" * 5000,
    "environments": "$" + "{" * 3000 + "$ " + "$" + "\\frac" * 3000 + "$",
    "columns": "|".join("a" * 500) + "\n" + "|".join("-" * 500) + "\n" + "|a\n" * 200,
    "definitions": "[a]: /u\n" * 2000,
    "titles": '[a]: /u "\n' * 1500,
}


CELLS = 65_536 * 12
"""As many cells as the parser adds to rows that lack them, and their tags."""


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_very_deep_nesting_is_shown_and_reads_back(text: str) -> None:
    html = render_markdown(text)
    assert len(html) < 120 * len(text) + CELLS
    transcript = Transcript((Message("assistant", (TextPart(text),)),))
    assert Transcript.from_markdown(transcript.to_markdown()) == transcript


def executed(run: Callable[[], object]) -> int:
    """How many lines of code run, of the parser of Markdown and of this package's."""
    count = 0

    def local(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    def begin(frame: Any, event: str, _: Any) -> Any:
        return local if "markdown" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(begin)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


TWICE = 2.3
"""What twice the text may be at most, in work."""

COUNTED = {name: text for name, text in NESTED.items() if name not in ("columns", "lists", "environments")}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", COUNTED)
def test_nesting_twice_as_long_is_twice_the_work(name: str) -> None:
    text = COUNTED[name]

    def lines(part: str) -> int:
        return executed(lambda: render_markdown(part))

    half = min(len(text) // 2, 600)
    assert lines(text[: 2 * half]) <= TWICE * lines(text[:half]) + 2000


# Markdown that grows ----------------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "unit", ["*a ", "[", "[a](b) ", "`a` ", "**a** b, ", "<a ", "$a ", "a\n", "~~a~~ ", "![a] ", "\\a", "a& \f\n\u2003"]
)
@pytest.mark.parametrize("size", [1, 3, 50, 700])
def test_inline_content_with_too_many_marks_is_text_from_then_on_in_any_pieces(
    unit: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The law of the live view, across the limit."""
    monkeypatch.setattr(flavor, "MOST_MARKS", 60)
    text = unit * (60 // marks_in(unit) + 3) + "and **more** of it.\n\nThe *next* one."
    stream, fed = IncrementalMarkdown(), ""
    for at in range(0, len(text), size):
        stream.feed(text[at : at + size])
        fed += text[at : at + size]
        assert stream.html == render_markdown(fed)
    assert "<em>next</em>" in stream.html
    assert "**more**" in stream.html


def test_a_long_paragraph_with_few_marks_is_read_and_so_is_a_large_picture() -> None:
    assert "<strong>b</strong>" in render_markdown("word " * 100_000 + "**b**")
    assert f'src="data:image/png;base64,{"A" * 400_000}"' in render_markdown(
        f"![a](data:image/png;base64,{'A' * 400_000})"
    )


def test_a_delta_behind_too_many_marks_parses_no_inline_content(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = 0
    parse = parser().inline.parse

    def counting(source: str, *rest: Any) -> Any:
        nonlocal parsed
        parsed += len(source)
        return parse(source, *rest)

    monkeypatch.setattr(parser().inline, "parse", counting)
    stream = IncrementalMarkdown()
    stream.feed("[" * (MOST_MARKS + 1))
    for _ in range(50):
        stream.feed("[x")
    assert parsed == 0


def test_blanks_that_come_in_pieces_parse_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = 0
    parse = parser().parse

    def counting(source: str, *rest: Any) -> Any:
        nonlocal parsed
        parsed += len(source)
        return parse(source, *rest)

    monkeypatch.setattr(parser(), "parse", counting)
    for before in ("", "a"):
        stream = IncrementalMarkdown()
        stream.feed(before)
        parsed = 0
        for _ in range(500):
            stream.feed("\n \n\n")
        assert parsed == 0
        stream.feed("b")
        assert stream.html == render_markdown(before + "\n \n\n" * 500 + "b")


def test_text_behind_too_many_marks_parses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for marks in (MOST_MARKS + 1, MOST_MARKS):  # the second goes beyond the limit without a parse
        stream = IncrementalMarkdown()
        stream.feed("a " + "*b " * marks)
        with monkeypatch.context() as patch:
            patch.setattr(parser(), "parse", None)
            for _ in range(20):
                stream.feed("*b ")
        assert stream.html == render_markdown("a " + "*b " * (marks + 20))
