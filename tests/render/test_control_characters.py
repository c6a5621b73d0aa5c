"""No control character but tab and line feed gets into HTML, from any text of a model or a tool."""

from __future__ import annotations

import re
from typing import Any

import pytest
from markdown_it import MarkdownIt

from toolcall_nb import Transcript
from toolcall_nb.core.transcript import (
    CustomPart,
    DataPart,
    ErrorPart,
    FilePart,
    Message,
    Part,
    ReasoningPart,
    SourceDocumentPart,
    SourceUrlPart,
    State,
    TextPart,
    ToolCall,
)
from toolcall_nb.incremental_markdown.flavor import render_markdown
from toolcall_nb.incremental_markdown.incremental import IncrementalMarkdown, markdown_blocks
from toolcall_nb.markdown import tool_callout_plugin
from toolcall_nb.render import LiveHtml, to_html

RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
ALL = "".join(chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n\r")

TEXTS = {
    "prose": f"a{ALL}b",
    "fence": f"```\na{ALL}b\n```",
    "highlighted": f"```python\nx = '{ALL}'\n```",
    "open fence": f"```python\nx = '{ALL}'",
    "info": f"```py{ALL}\nx\n```",
    "indented": f"    a{ALL}b",
    "code": f"`a{ALL}b`",
    "formula": f"$$a{ALL}$$ and $x{ALL}$",
    "link": f"[a{ALL}](<http://x/{ALL}> '{ALL}')",
    "picture": f"![a{ALL}](http://x/y.png)",
    "definition": f"[a{ALL}]: /u '{ALL}'\n\n[a{ALL}]",
    "table": f"|a{ALL}|b|\n|-|-|\n|c{ALL}|d|",
    "list": f"- a{ALL}\n- [ ] {ALL}",
    "heading": f"# a{ALL}",
    "html": f"<b>{ALL}</b>",
    "json": f'{{\n"a": "{ALL}"\n}}',
    "entities": "a&#12;b&#13;c&#155;&#7;d [x](/u 'q&#12;&#13;') ![x&#12;](/u)",
    "deep": f"{'> ' * 40}a{ALL}",
}


def call(text: str, **about: Any) -> ToolCall:
    return ToolCall(id="c", name=f"n{text}", state=State.OUTPUT_AVAILABLE, input={text: text}, title=text, **about)


def parts(text: str) -> list[Part]:
    return [
        *(TextPart(text), ReasoningPart(text), ErrorPart(text, text), DataPart(text, {text: text}), CustomPart(text)),
        *(SourceUrlPart(text, text, text), SourceDocumentPart(text, text, text), FilePart(text, text)),
        *(call(text, output=text, log=text), call(text, output=1, display={"text/html": text})),
        *(call(text, output=1, display={"text/markdown": text}), call(text, output=1, display={"text/latex": text})),
        ToolCall(id="e", name="f", state=State.OUTPUT_ERROR, error=text, traceback=text, input_text=text),
    ]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_html_of_a_transcript_has_a_control_character(text: str) -> None:
    for part in parts(text):
        run = Transcript((Message("assistant", (part,), metadata={"model": text}, finish_reason=text),))
        live = LiveHtml()
        for event in run.events():
            live.apply(event)
        for html in (to_html(run, page=True), run._repr_mimebundle_()["text/html"], live.html):
            assert not RAW.search(html), type(part)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_markdown_that_grows_character_by_character_shows_the_same_pictures(text: str) -> None:
    growing = IncrementalMarkdown()
    for end, character in enumerate(text, 1):
        growing.feed(character)
        assert growing.html == render_markdown(text[:end]) == "".join(markdown_blocks(text[:end]))
    assert not RAW.search(growing.html)


def test_a_control_character_is_seen() -> None:
    assert render_markdown("a\x1b[2Jb\x7f") == "<p>a␛[2Jb␡</p>\n"
    assert "␛]0;x␇" in render_markdown("```\n\x1b]0;x\x07\n```")


def test_the_plugin_writes_none_into_a_callout() -> None:
    markdown = MarkdownIt().use(tool_callout_plugin)
    html = markdown.render('> [!tool "n\x1b\x07" c]\n> input: {a: "\x85"}\n')
    assert "<summary>n&lt;U+001B&gt;&lt;U+0007&gt;" in html
    assert not RAW.search(html)
