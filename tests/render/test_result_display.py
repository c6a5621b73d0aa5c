"""Outputs with a display of their own: the richest form is shown, and nothing in it runs or loads."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures.render.samples import PNG, TABLE, body, call, saying
from tests.support.html_reader import Reader
from tests.support.strategies import texts
from toolcall_nb.render.html_output.result_display import DisplayForm, adds_to_display, display_form
from toolcall_nb.render.html_output.sanitising import MAX_HTML, sanitise
from toolcall_nb.render.text import to_text

SVG = '<svg viewBox="0 0 9 9"><circle cx="4" cy="4" r="4"/></svg>'
HTML = "<b>bold</b>"
EVERY = {"text/plain": "p", "text/latex": "$x$", "text/markdown": "*m*", "text/html": HTML, "image/png": PNG}


def html_of(bundle: Any, output: Any = "text") -> str:
    return body(saying(call(output=output, display=bundle)))


def form_of(bundle: dict[str, Any], output: Any = "text") -> DisplayForm:
    form = display_form(bundle, output)
    assert form is not None
    return form


# Which form -----------------------------------------------------------------------------------------------------


def test_the_richest_form_is_shown_and_no_other() -> None:
    bundle: dict[str, Any] = {**EVERY, "image/svg+xml": SVG, "application/vnd.plotly.v1+json": {"data": []}}
    order = ["image/svg+xml", "image/png", "text/html", "text/markdown", "text/latex"]
    for kind in order:
        assert form_of(bundle).kind == kind
        del bundle[kind]
    assert display_form(bundle, "text") is None


def test_a_picture_is_its_data_and_says_in_words_what_it_is() -> None:
    html = html_of({"image/png": PNG, "text/plain": '<Figure "1">'})
    assert f'<img src="data:image/png;base64,{PNG}" alt="Picture, image/png: &lt;Figure &quot;1&quot;&gt;">' in html


def test_bytes_that_are_a_picture_are_shown_without_their_base64_text() -> None:
    html = body(saying(call(output=PNG, display={"image/png": PNG})))
    assert f'<img src="data:image/png;base64,{PNG}" alt="Picture, image/png">' in html
    assert html.count(PNG) == 1


def test_base64_in_lines_is_the_same_picture() -> None:
    assert form_of({"image/png": f"{PNG[:40]}\n{PNG[40:]}\n"}).html == form_of({"image/png": PNG}).html


def test_a_drawing_is_a_picture_too_and_never_part_of_the_page() -> None:
    html = form_of({"image/svg+xml": f"<?xml version='1.0'?>{SVG}"}).html
    assert "<svg" not in html
    data = html.partition("base64,")[2].partition('"')[0]
    assert b'<svg xmlns="http://www.w3.org/2000/svg" viewBox' in base64.b64decode(data)


def test_a_drawing_that_names_its_language_is_left_as_it_is() -> None:
    drawing = '<svg xmlns="http://www.w3.org/2000/svg" id="a"><svg/></svg>'
    data = form_of({"image/svg+xml": drawing}).html.partition("base64,")[2].partition('"')[0]
    assert base64.b64decode(data).decode() == drawing


@pytest.mark.parametrize(
    ("kind", "beginning"),
    [("image/jpeg", b"\xff\xd8\xff"), ("image/gif", b"GIF89a"), ("image/webp", b"RIFF\x00\x00\x00\x00WEBP")],
)
def test_pictures_of_the_other_types_are_shown(kind: str, beginning: bytes) -> None:
    data = base64.b64encode(beginning + bytes(30)).decode()
    assert f'src="data:{kind};base64,{data}"' in form_of({kind: data}).html


@pytest.mark.parametrize(
    "value",
    [
        *("", " ", "not base64!", "AAAA", PNG + "A", PNG[:-3], PNG + '" onerror="x', "é" * 8),
        *({"a": 1}, 7, None, True, ["a", 1], [], {"image/png": PNG}),
    ],
)
def test_data_that_is_not_a_picture_is_passed_over(value: Any) -> None:
    assert form_of({"image/png": value, "text/html": HTML}).kind == "text/html"
    assert "<img" not in html_of({"image/png": value})


def test_a_picture_of_another_type_than_it_claims_is_passed_over() -> None:
    assert display_form({"image/jpeg": PNG, "image/bmp": PNG, "image/x-icon": PNG}, "") is None


def test_a_picture_that_is_too_large_says_so() -> None:
    data = PNG[:40] + "A" * 12_000_000
    html = html_of({"image/png": data})
    assert "a picture of 12,000,040 characters is too large to be shown" in html
    assert len(html) < 5_000


def test_lists_of_lines_are_text_as_in_notebooks() -> None:
    assert form_of({"text/markdown": ["a\n", "*b*"]}).html == '<div class="tc-text"><p>a\n<em>b</em></p>\n</div>'


@pytest.mark.parametrize("display", [{}, {"text/plain": "x"}, {"x": 1}, {"text/html": ""}, {"text/html": 5}])
def test_a_display_without_a_usable_form_is_ignored(display: dict[str, Any]) -> None:
    assert html_of(display) == html_of(None)


# HTML -----------------------------------------------------------------------------------------------------------


def test_a_data_frame_is_a_table_that_scrolls_in_its_own_box() -> None:
    html = html_of({"text/html": TABLE})
    assert '<div class="tc-wide tc-html" tabindex="0"><div>' in html
    assert "<td>24.1</td>" in html
    assert "style" not in html
    assert "left out" not in html  # the scoped style that pandas puts before each table is no loss


@pytest.mark.parametrize(
    ("given", "clean", "left_out"),
    [
        ("<b>a</b><script>alert(1)</script>", "<b>a</b>", ("scripts",)),
        ("a<style>* { display: none }</style>", "a", ("styles",)),
        ('<p style="background: url(//h/x)" class="x" id="x" onclick="x">a</p>', "<p>a</p>", ()),
        (r'<p style="\62 ackground: \75rl(x)">a</p>', "<p>a</p>", ()),
        ("<iframe src=x>in</iframe>a<object data=x></object><embed src=x>", "a", ("embedded pages",)),
        ("<form action=//h><input name=x>f<button>b</button></form>", "fb", ("controls",)),
        ('<svg onload="alert(1)"><script>x</script></svg>a', "a", ("scripts", "drawings")),
        ("<meta http-equiv=refresh content=0><base href=//h/><link rel=stylesheet href=//h>a", "a", ()),
        ("<img src=x onerror=alert(1)>a", "<span></span>a", ("pictures from elsewhere",)),
        ('<img src="https://h/p.png" alt="A <map>">', "<span>A &lt;map&gt;</span>", ("pictures from elsewhere",)),
        ("<img src='data:image/svg+xml;base64,AAAA'>a", "<span></span>a", ("pictures from elsewhere",)),
        ("<img src='data:image/png;base64,AAAA'>", '<img alt="Picture" src="data:image/png;base64,AAAA">', ()),
        ("<a href='javascript:alert(1)'>a</a><a href=' jAvAscript:x'>b</a>", "<a>a</a><a>b</a>", ()),
        ("<a href='data:text/html,x'>a</a><a href='/x'>b</a><a href='//h'>c</a>", "<a>a</a><a>b</a><a>c</a>", ()),
        (
            "<a href='https://h/?a&b' target=_top>a</a>",
            '<a target="_blank" rel="noopener noreferrer nofollow" href="https://h/?a&amp;b">a</a>',
            (),
        ),
        ("</div></pre></details><h1>out", "<h1>out</h1>", ()),
        ("<!-- a --><![CDATA[b]]><?php c ?>d", "d", ()),
        ("<table><tr><td colspan=2>a<td rowspan=9999>b", "", ()),
        ("<textarea><b>", "", ("controls",)),
        ("a\0b\x1b[31m\r\nc", "a&lt;U+0000&gt;b&lt;U+001B&gt;[31m\nc", ()),
        ("<details open><summary>a</summary>b</details>", "ab", ()),
        ("<td>\ud800</td>", "\ufffd", ()),
        ("<video src=//h></video><audio src=//h></audio>", "", ("sound or video",)),
    ],
)
def test_html_is_reduced_to_what_can_be_read(given: str, clean: str, left_out: tuple[str, ...]) -> None:
    found = sanitise(given)
    if "colspan" in given:
        clean = '<table><tbody><tr><td colspan="2">a</td><td>b</td></tr></tbody></table>'
    assert found == (clean, left_out)
    Reader(f"<div>{found.html}</div>")


def test_the_note_names_what_was_left_out() -> None:
    assert "<span>left out: scripts, pictures from elsewhere</span>" in html_of(
        {"text/html": "<p>a</p><script>x</script><img src=//h>"}
    )


def test_html_with_nothing_to_read_is_passed_over_with_a_note() -> None:
    html = html_of({"text/html": "<div id=x></div><script>plot()</script>", "text/plain": "Plot"}, "Plot of 3 points")
    assert "<span>left out: scripts</span></b><pre><span>Plot of 3 points</span></pre>" in html


@pytest.mark.parametrize(
    "unclosed", ["<table><tr><td>", "<pre>", "<b><i><p>", "<!--", "<a href='", "<ul><li>", "<select>", "<plaintext>"]
)
def test_an_unclosed_element_does_not_include_what_follows(unclosed: str) -> None:
    reader = Reader(html_of({"text/html": f"a{unclosed}b"}, "the text"))
    assert "the text" in "".join(reader.text)


def test_long_html_is_cut_before_a_tag_and_says_how_much_is_not_shown() -> None:
    table = f"<table>{'<tr><td>1</td></tr>' * 20_000}</table>"
    html = html_of({"text/html": table})
    assert f"{len(table) - MAX_HTML:,} more characters are not shown" in html
    assert html.count("<td>") == html.count("</td>") > 10_000


@pytest.mark.parametrize(
    "bomb",
    [
        "".join(f"<b a={number}>" for number in range(5_000)) + "<p>x" * 30_000,
        "<b a='" * 20_000,
        "<style " * 20_000 + "scoped>",
    ],
    ids=["formatting in each paragraph", "quotes", "styles"],
)
def test_a_little_html_never_becomes_very_much(bomb: str) -> None:
    assert len(sanitise(bomb).html) <= 5 * MAX_HTML


def test_the_same_html_gives_the_same_each_time() -> None:
    html = "<table><tr><th scope=col colspan=2>a</th></tr></table><a href=https://h>b</a>"
    first = sanitise(html)
    sanitise.cache_clear()
    assert sanitise(html) == first


@given(st.lists(st.one_of(texts(2), st.sampled_from(["<b>", "</b>", "<table>", "<td>", "<p>", "<a href=x>", "<pre>"]))))
@settings(max_examples=150)
def test_whatever_the_html_the_result_is_balanced(pieces: list[str]) -> None:
    Reader(f"<div>{sanitise(''.join(pieces)).html}</div>")


# Markdown and formulas ------------------------------------------------------------------------------------------


def test_markdown_is_rendered_as_in_messages() -> None:
    assert "<em>m</em>" in html_of({"text/markdown": "*m* <script>x</script>"})
    assert "&lt;script&gt;" in html_of({"text/markdown": "*m* <script>x</script>"})


def test_long_markdown_says_how_much_is_not_shown() -> None:
    assert "10 more characters" in html_of({"text/markdown": "x" * 50_010})


@pytest.mark.parametrize("tex", ["x^2", "$x^2$", "$$x^2$$", r"\[x^2\]", r"\(x^2\)", "$$\n\nx^2\n\n$$", " $x^2$\n"])
def test_a_formula_is_shown_with_or_without_its_delimiters(tex: str) -> None:
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in html_of({"text/latex": tex})


def test_text_with_formulas_in_it_stays_text() -> None:
    html = html_of({"text/latex": r"The area $a^2$ of \(b\)."})
    assert "<p>The area " in html
    assert html.count("<math") == 2


@pytest.mark.parametrize("tex", ["$", "$$", "$ $", "", "\\", "$a", r"\[\]", "$$$$"])
def test_no_formula_raises(tex: str) -> None:
    Reader(html_of({"text/latex": tex}))


# The words beside it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "tells"),
    [
        ("<Figure size 640x480 with 1 Axes>", False),
        ("Figure(640x480)", False),
        ("plotly.graph_objs.Figure(a, b)", False),
        ("", False),
        (" \n", False),
        ("source\n", False),
        (None, False),
        ("A circle.", True),
        ("<a>\n<b>", True),
        ({"radius": 4}, True),
        (0, True),
    ],
)
def test_text_is_shown_beside_a_display_if_it_adds_something(output: Any, tells: bool) -> None:
    assert adds_to_display(output, DisplayForm("x", "image/png", source="source")) is tells
    html = html_of({"image/png": PNG}, output)
    assert ("<summary>As " in html) is (tells or output == "source\n")


def test_data_beside_a_display_is_drawn_as_data() -> None:
    html = html_of({"image/png": PNG}, {"radius": 4})
    assert '<summary>As data</summary><pre><span><span class="k">radius</span>' in html


@pytest.mark.parametrize(
    ("bundle", "output", "words"),
    [
        ({"image/png": PNG}, "<Figure>", "<Figure>"),
        ({"image/png": PNG}, "", "(image/png)"),
        ({"text/html": TABLE}, "  day high\n0 Mon 24.1", "day high\n0 Mon 24.1"),
        ({"text/html": "<p>a &lt; b</p><ul><li>c</li></ul>"}, "<IPython.core.display.HTML object>", "a < b\nc"),
        ({"text/markdown": "a *b*"}, "<IPython.core.display.Markdown object>", "a *b*"),
        ({"image/png": PNG}, {"radius": 4}, "radius: 4"),
    ],
)
def test_plain_text_has_the_words_of_a_display(bundle: dict[str, Any], output: Any, words: str) -> None:
    text = to_text(saying(call(output=output, display=bundle)))
    lines = [line.strip() for line in text.partition("    Output\n")[2].split("\n")]
    assert lines == words.split("\n")
