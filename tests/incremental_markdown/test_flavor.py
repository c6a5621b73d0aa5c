"""The Markdown of model text: its HTML is right and safe, and any text can be rendered."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.utils import read_fixture_file

from tests.support.corpora import corpus
from toolcall_nb.incremental_markdown.flavor import parser, render_markdown
from toolcall_nb.incremental_markdown.formulas import to_mathml
from toolcall_nb.incremental_markdown.highlight import CLASSES, highlight
from toolcall_nb.incremental_markdown.incremental import markdown_blocks

FIXTURES = read_fixture_file(Path(__file__).parents[1] / "fixtures" / "flavor.md")

VOID = {"br", "hr", "img", "input"}
HTML = {
    *VOID, *("h1", "h2", "h3", "h4", "h5", "h6"), "p", "a", "em", "strong", "s", "code", "pre", "span", "div",
    "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
HTML_ATTRIBUTES = {
    "a": {"href", "title", "class", "target", "rel"},
    "img": {"src", "alt", "title"},
    "input": {"type", "disabled", "checked", "aria-label"},
    "ol": {"start"},
    "span": {"hidden"},
    "th": {"style"},
    "td": {"style"},
}
PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp);", re.IGNORECASE)
MATHML = {
    *("math", "menclose", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom", "mroot", "mrow", "mspace"),
    *("msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover"),
}
MATHML_REFUSED = {"href", "style", "class", "id", "xlink:href", "src", "actiontype"}

# fmt: off
PIECES = [
    "a", "b ", "1", "\n", "\n\n", "  ", "    ", "\t", "# ", "- ", "1. ", "> ", "> [!NOTE]\n", "- [ ] ", "- [x] ",
    "```", "```python\n", "~~~", "|", "|a|b|\n|-|-|\n", "---", "[a]", "[a]: /u\n", "](", "](javascript:x)",
    "](http://x)", "![", "![a](x)", "<", "<a onclick=x>", "<script>", "</p>", "<!--", "<http://x>", ">", "&lt;",
    "&#x6a;", "*", "**", "_", "`", "~~", "\\", "$", "$$", "\\(", "\\)", "\\[", "\\]", "\\frac{1}", "\\text{<b>}",
    "\\href{javascript:x}", "\\style{x}{y}", "{", "}", "^", "\"", "'", "(", ")", "\r", "\r\n", "\x00", "\ud83d",
    "\ude00", "\xe9", "\xa0", "\u2028", "data:image/png;base64,\"", " onerror=x ", "javascript:",
]
TEX = [
    "\\frac", "\\sqrt", "\\text{<i>}", "\\left(", "\\right)", "\\begin{matrix}", "\\end{matrix}", "\\color{red}",
    "\\href{x}", "\\class{a}", "\\hspace{9em}", "\\rule{1em}{2em}", "\\unicode{x3c}", "\\not", "\\over",
    "\\limits", "\\verb|", "\\genfrac", "\\mathbb{R}", "\\raise 3em", "\\fcolorbox{red}", "{", "}", "[", "]", "_",
    "^", "&", "\\\\", "'", "a", "1", "+", "<", ">", "\"", " ", "%", "#", "&lt;", "&#x3c;",
]
FLOODS = [
    ">", "> ", "- ", "1. ", "*", "_a", "`", "~~a ", "[]", "[a](b", "![a", "$a ", "$$ ", "\\$", "\\(",
    "x\\( \\\\) ", "\\[\n", "$$a\n", "<a:", "&", "\\", "|", "> a\n", "[a]: /u\n", "\x00", "\ud800", "\r",
]
# fmt: on
DOCUMENTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=40).map("".join)


@pytest.mark.parametrize(("line", "title", "text", "expected"), FIXTURES, ids=[case[1] for case in FIXTURES])
def test_fixture(line: int, title: str, text: str, expected: str) -> None:
    assert render_markdown(text) == expected


class Reader(HTMLParser):
    """Reads what was rendered as a browser would; fails on anything that is not on the lists above."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        if "math" in self.open:
            assert tag in MATHML
            assert not {name for name, _ in attrs} & MATHML_REFUSED
            return
        assert tag in HTML
        for name, value in attrs:
            assert name in HTML_ATTRIBUTES.get(tag, set()) | {"class"}
            self.check(name, value or "")

    def check(self, name: str, value: str) -> None:
        if name == "href":
            scheme = re.match(r"\s*([a-zA-Z][a-zA-Z0-9+.-]*):", value)
            assert scheme is None or scheme[1].lower() in ("http", "https", "mailto", "tel") or PICTURE.match(value)
        if name == "src":
            assert PICTURE.match(value)
        if name == "style":
            assert value in ("text-align:left", "text-align:right", "text-align:center")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "math" not in self.open:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"a declaration: {decl!r}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data!r}")

    @property
    def text(self) -> str:
        """What is left where a host drops the tags, and ``math`` with its contents."""
        return "".join(self.texts)


@settings(max_examples=400)
@given(DOCUMENTS)
def test_any_text_gives_only_allowed_html(text: str) -> None:
    Reader(render_markdown(text)).text.encode()


def test_known_attacks_give_only_allowed_html() -> None:
    for path in sorted(corpus("xss").glob("*.json")):
        for payload in strings(json.loads(path.read_text())):
            Reader(render_markdown(payload))
            Reader(render_markdown(f"[a]({payload}) ![b](<{payload}>) ${payload}$ `{payload}`\n\n```{payload}\n```"))


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in strings(item)]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("so $E = mc^2$ holds", "so E = mc^2 holds\n"),
        ("$$\n\\frac{a}{b}\n$$", "\\frac{a}{b}\n"),
        ("- [x] done\n- [ ] open", "\n[x] done\n[ ] open\n\n"),
        ("> [!WARNING]\n> hot", "\nWarning\nhot\n\n"),
        ("![the chart](https://example.org/c.png)", "the chart\n"),
        ("```python\ndef f(): ...\n```", "def f(): ...\n\n"),
    ],
)
def test_the_text_is_complete_without_tags_and_formulas(text: str, left: str) -> None:
    assert Reader(render_markdown(text)).text == left


@settings(max_examples=150)
@given(st.lists(st.sampled_from(TEX), max_size=25).map("".join))
def test_any_tex_gives_only_allowed_html_and_does_not_raise(tex: str) -> None:
    html = to_mathml(tex)
    assert html == "" or html.startswith("<math ")
    Reader(html)


@pytest.mark.parametrize(
    "tex",
    [
        "{" * 1900 + "x" + "}" * 1900,
        "\\sqrt" * 700 + "x",
        "x^{" * 900 + "y" + "}" * 900,
        "\\left(" * 500,
        "a" * 10_000,
        "\\def\\a{xx}\\def\\b{\\a\\a\\a}\\b",
        "\\newcommand{\\a}{\\a\\a}\\a",
    ],
    ids=["braces", "roots", "powers", "delimiters", "long", "def", "newcommand"],
)
def test_tex_that_is_too_deep_too_long_or_has_macros_stays_tex(tex: str) -> None:
    assert to_mathml(tex) == ""
    assert Reader(render_markdown(f"${tex}$")).text == f"{tex.strip()}\n"


@pytest.mark.parametrize("unit", FLOODS)
def test_very_long_repetitions_are_rendered(unit: str) -> None:
    Reader(render_markdown(unit * (8_000 // len(unit))))
    Reader(render_markdown("a" + unit * (8_000 // len(unit)) + "b"))


def test_blocks_nested_too_deep_are_shown_as_text() -> None:
    deep = "".join(f"{'  ' * level}- item {level}\n" for level in range(60))
    text = Reader(render_markdown(f"{deep}\nafter\n\n{'>' * 200} quoted")).text
    assert all(f"item {level}\n" in text for level in range(60))
    assert "after" in text
    assert "quoted" in text


def test_text_is_shown_as_it_is_if_the_parser_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*_: object) -> str:
        raise RecursionError

    monkeypatch.setattr(MarkdownIt, "render", give_up)
    assert render_markdown("*a* <b>") == '<pre class="tc-code"><code>*a* &lt;b&gt;</code></pre>\n'


def test_a_lone_surrogate_is_shown_as_a_replacement_character() -> None:
    assert render_markdown("a\ud83d") == "<p>a\ufffd</p>\n"
    assert render_markdown("a\ud83d\ude00") == "<p>a\U0001f600</p>\n"


def test_the_parser_is_made_once() -> None:
    assert parser() is parser()


@settings(max_examples=150)
@given(
    st.sampled_from(["python", "json", "yaml", "bash", "html", "diff", "js", "sql", "c", "pycon"]),
    st.text() | DOCUMENTS,
)
def test_highlighting_changes_no_character_and_uses_only_the_listed_classes(language: str, code: str) -> None:
    html = highlight(code, language)
    if html is not None:
        assert set(re.findall(r'<span class="tc-h-(\w+)">', html)) <= set(CLASSES)
        assert re.sub(r"</?span[^>]*>", "", html) == escapeHtml(code)


def test_code_that_is_too_long_or_of_no_known_language_is_plain() -> None:
    assert highlight("x = 1", "no such language") is None
    assert highlight("x = 1", "nolanguage") is None
    assert highlight("x = 1\n" * 10_000, "python") is None
    assert highlight("x", "PYTHON") == "x"


MARKED = st.sampled_from(
    ["*", "**", "_", "`", "~~", "[", "](/u)", "<b>", "&amp;", "$x$", "$$", "\\(", "\\", "  \n", "\n=", "\n|-|"]
)
STARTS = [
    "a",
    "é",
    "漢",
    "ª",
    "*a",
    "`b",
    "[c](d)",
    "[e]",
    "1.5 ",
    "2. f",
    "- g",
    "-h",
    "#i",
    "# j",
    "> k",
    "=l",
    ":m",
    "(",
    "$$",
]
ODD = st.sampled_from(" \t\n\r\0\x0b\x1c\x85\xa0\u200b\u2028\u202e\ufe0f\ud83d-+#>|:.1)'\"é漢\U0001f680")


@settings(max_examples=400)
@given(st.sampled_from(STARTS), st.lists(st.sampled_from("ab ") | MARKED | ODD, max_size=14))
def test_a_single_line_is_drawn_as_the_parser_draws_it(start: str, pieces: list[str]) -> None:
    text = start + "".join(pieces)
    assert "".join(markdown_blocks(text)) == render_markdown(text)
