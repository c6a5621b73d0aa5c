"""The marks that a paragraph leaves open, and what may close them."""

from __future__ import annotations

import pytest
from markdown_it.token import Token

from toolcall_nb.incremental_markdown.link_definitions import Definitions, parse_inline
from toolcall_nb.incremental_markdown.open_marks import closes, live_marks, may_close


def texts(content: str) -> list[str]:
    """Returns what the parser leaves as text."""
    token = Token("inline", "", 0, content=content.strip())
    parse_inline([token], Definitions({}))
    left: list[str] = token.meta.get("texts", [])
    return left


@pytest.mark.parametrize(
    ("content", "marks"),
    [
        ("plain words", ""),
        ("*a", "*"),
        ("a*", "*"),
        ("d*(x", ""),
        ("2 * 3", ""),
        ("**a** b", ""),
        ("_a", "_"),
        ("snake_case", ""),
        ("~~a", "~~"),
        ("~/home", ""),
        ("`a", "`"),
        ("a ``b `c`", "``"),
        ("[a", "["),
        ("[a]", "["),
        ("[a] b", ""),
        ("[a](b", "[ ("),
        ("[a](b c", "["),
        ('[a](b "c', "[ ("),
        ("[a [b](c)", "["),
        ("it costs $5", "$"),
        ("$5 or $6", "$"),
        ("$5 or a 6$ b", ""),
        ("$ run", ""),
        ("a$", "$"),
        ("$$a", "$"),
        (r"\(a", r"\("),
        (r"\(a\) b", ""),
        (r"\(a \(b", r"\("),
        (r"\[1\]", ""),
    ],
)
def test_the_marks_that_later_text_may_close(content: str, marks: str) -> None:
    assert live_marks(texts(content), content) == set(marks.split())


def test_a_dollar_is_closed_by_the_next_one_or_never() -> None:
    assert live_marks(texts("a $5 b"), "a $5 b", " c $6 d") == set()


@pytest.mark.parametrize(
    ("mark", "closing", "others"),
    [
        ("`", ["b` c"], ["b ``c`` d", "b"]),
        ("``", ["b`` c"], ["`b` c"]),
        ("$", ["b$"], ["b"]),
        ("(", ["b)"], ["b"]),
        (r"\(", [r"b\) c"], [r"\(b\) c", r"b\\)", "b)"]),
        (r"\[", [r"b\]"], [r"\[b\]"]),
        ("[", ["b]", "[b]]"], ["[b]", "[b](u", "`]`", r"\]"]),
        ("*", ["b*", "b* c", "d*e", "(*)"], ["* b", "*b*", "(*b", "*b"]),
        ("_", ["b_ c", "b_"], ["a_b", "_b_", "_b"]),
        ("~~", ["b~~"], ["~~b~~", "~b~", "~~b"]),
    ],
)
def test_what_may_close_a_mark_before_it(mark: str, closing: list[str], others: list[str]) -> None:
    def is_closed_by(content: str) -> bool:
        return bool(closes(content, {mark}) | may_close(texts(content), content, {mark}))

    assert [content for content in [*closing, *others] if is_closed_by(content)] == closing
