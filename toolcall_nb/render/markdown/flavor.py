"""The one Markdown that model text is shown in: CommonMark with tables, strikethrough, task lists, alerts, formulas.

Everything is untrusted. HTML in the text is text. A link has a scheme from a short list, or it stays text; one
that leaves the page says so to the browser. An image is loaded only from its own bytes: asking another host for
it would tell that host who reads, and when, so it becomes a link.

What carries meaning by form alone also says it in words, for where a host strips forms and styles: a check box
is followed by ``[x]`` in a ``tc-check``, a formula by its TeX (see `toolcall_nb.render.markdown.math`); the style sheet
hides these beside the real thing.

Code is highlighted once its fence is closed. Before, each new character could colour all that came earlier, at
the cost of reading it all again.

JSON that stands in the text over several lines keeps them, as code: a paragraph of its own, perhaps with a label
(``Data: {``) before it. Tool results in the words of seed 004 have this form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

from toolcall_nb.core.text import well_formed
from toolcall_nb.render.markdown.highlight import highlight
from toolcall_nb.render.markdown.math import math_plugin

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore

__all__ = ["MOST_MARKS", "has_too_many_marks", "is_closed", "marks_in", "parser", "plain_block", "render_markdown"]

DEEPEST = 40  # blocks within blocks, and brackets within brackets

_MOST_KEPT = 500  # characters of a link

MOST_MARKS = 5000
"""In the inline content of one block: of a paragraph, a heading, a cell."""

_MARK = re.compile(r"[\n!\[\]*_~`$\\<&]")
_SCHEME = re.compile(r"\s*([a-zA-Z][a-zA-Z0-9+.-]*):")
_SCHEMES = frozenset({"http", "https", "mailto", "tel"})
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);", re.IGNORECASE)
_OUTSIDE = re.compile(r"https?:|//", re.IGNORECASE)  # a browser supplies the slashes of `https:host`
# Both brackets stand at a line's end and beginning: only a parse adds such a line to a paragraph that grows.
_JSON = re.compile(r"(?:([A-Za-z][A-Za-z ]{0,40}:)[ \t]*+)?([{\[]\n.*\n[ \t]*+[}\]])", re.DOTALL)
_LANGUAGE = re.compile(r"[\w+#.-]{1,40}")


def render_markdown(text: str) -> str:
    """``text`` as HTML: a sequence of block elements, without a wrapper. Never raises, whatever the text."""
    # A nesting limit in the parser keeps its stack short; a caller's may be long already.
    try:
        # `references` is there from the start, as in IncrementalMarkdown, for the two to take the same steps.
        return str(parser().render(well_formed(text), {"references": {}}))
    except Exception:
        return plain_block(text)


def plain_block(text: str) -> str:
    """``text`` as it is, in one block."""
    return f'<pre class="tc-code"><code>{escapeHtml(well_formed(text))}</code></pre>\n'


@cache
def parser() -> MarkdownIt:
    """The parser of this flavor. It is shared: who needs another rule makes another parser."""
    md = _Parser("commonmark", {"html": False, "tasklists": True, "alerts": True, "maxNesting": DEEPEST})
    md.enable(["table", "strikethrough"])
    md.use(math_plugin)
    md.block.ruler.before("table", "tc_deep", _deep)
    md.core.ruler.before("inline", "tc_json", _json)
    md.core.ruler.at("inline", _inline)
    md.core.ruler.push("tc_links", _links)
    md.add_render_rule("list_item_open", _list_item)
    md.add_render_rule("tc_json", _labelled_json)
    md.add_render_rule("fence", _fence)
    md.add_render_rule("code_block", _code_block)
    return md


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        """Whether ``url`` becomes a link. The library refuses four schemes; here only known ones pass."""
        scheme = _SCHEME.match(url)
        return scheme is None or scheme[1].lower() in _SCHEMES or _PICTURE.match(url) is not None

    def normalizeLink(self, url: str) -> str:
        """The library's. A link in a text that grows is read again and again, and this is half of the cost."""
        return _normalized(url) if len(url) <= _MOST_KEPT else super().normalizeLink(url)


@lru_cache(maxsize=256)
def _normalized(url: str) -> str:
    return MarkdownIt.normalizeLink(parser(), url)


def _deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Shows as it is what is nested too deep to be read: the library would drop it, and hide it from the reader."""
    if silent or state.level < DEEPEST - 3:
        return False
    line = start + 1
    while line < end and (state.isEmpty(line) or state.sCount[line] >= state.blkIndent):
        line += 1
    state.line = line
    token = state.push("code_block", "code", 0)
    token.content = state.getLines(start, line, state.blkIndent, False)
    token.map = [start, line]
    return True


def _json(state: StateCore) -> None:
    """Puts a token of its own in the place of each top-level paragraph that is JSON over several lines."""
    tokens = state.tokens
    for at in [n for n, token in enumerate(tokens) if token.type == "paragraph_open" and token.level == 0][::-1]:
        found = _JSON.fullmatch(tokens[at + 1].content)
        if found is not None and _is_json(found[2]):
            token = Token(
                "tc_json", "", 0, map=tokens[at].map, content=f"{found[2]}\n", info=found[1] or "", block=True
            )
            tokens[at : at + 3] = [token]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _inline(state: StateCore) -> None:
    """Reads the inline content of blocks; what has too many marks is text, as it is written."""
    for token in state.tokens:
        if token.type != "inline" or token.children is None:
            continue
        if has_too_many_marks(token.content):
            token.children.append(Token("text", "", 0, content=token.content))
        else:
            state.md.inline.parse(token.content, state.md, state.env, token.children)


def has_too_many_marks(content: str, besides: int = 0) -> bool:
    """Whether the inline content of one block has more than `MOST_MARKS`, with those ``besides``.

    A block that grows is read again and again: so each time costs no more than that many.
    """
    return len(content) + besides > MOST_MARKS and marks_in(content) + besides > MOST_MARKS


def marks_in(content: str) -> int:
    """How many characters of it mean something to the inline parser, line ends among them."""
    return len(_MARK.findall(content))


def _links(state: StateCore) -> None:
    """Marks links that leave the page, and puts links in the place of images that would be loaded."""
    for token in state.tokens:
        if token.type == "inline" and token.children:
            token.children = _safe(state, token.children)


def _safe(state: StateCore, tokens: list[Token]) -> list[Token]:
    if not any(token.type in ("link_open", "image") for token in tokens):
        return tokens
    result: list[Token] = []
    links = 0
    for token in tokens:
        if token.type == "image" and not _PICTURE.match(str(token.attrs["src"])):
            result += _in_place_of(token, _alt(state, token), linked=links > 0)
            continue
        links += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        result.append(_outward(token) if token.type == "link_open" else token)
    return result


def _outward(link: Token) -> Token:
    if _OUTSIDE.match(str(link.attrs["href"])):
        link.attrs |= {"target": "_blank", "rel": "noopener noreferrer"}
    return link


def _alt(state: StateCore, image: Token) -> str:
    renderer: Any = state.md.renderer
    return str(renderer.renderInlineAsText(image.children, state.md.options, state.env))


def _in_place_of(image: Token, alt: str, *, linked: bool) -> list[Token]:
    """A link to the image under its text; only the text where it stands in a link, since links don't nest."""
    source = str(image.attrs["src"])
    text = Token("text", "", 0, content=alt.strip() or source)
    if linked:
        return [text]
    opening = Token("link_open", "a", 1, attrs={"href": source, "class": "tc-image"})
    if "title" in image.attrs:
        opening.attrs["title"] = image.attrs["title"]
    return [_outward(opening), text, Token("link_close", "a", -1)]


def _list_item(self: Any, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    opening = str(self.renderToken(tokens, at, options, env))
    checked = tokens[at].meta.get("checked")
    if checked is None:
        return opening
    state, label, words = (' checked=""', "Done", "[x] ") if checked else ("", "To do", "[ ] ")
    box = f'<input type="checkbox" disabled=""{state} aria-label="{label}">'
    return f'{opening}{box}<span class="tc-check">{words}</span>'


def _fence(self: Any, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    token = tokens[at]
    language = _language(token)
    colored = highlight(token.content, language) if language and is_closed(token) else None
    return _code(escapeHtml(token.content) if colored is None else colored, language)


def _labelled_json(self: Any, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    token = tokens[at]
    label = f"<p>{escapeHtml(token.info)}</p>\n" if token.info else ""
    return label + _code(highlight(token.content, "json") or escapeHtml(token.content), "json")


def _code_block(self: Any, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    return _code(escapeHtml(tokens[at].content), "")


def _language(fence: Token) -> str:
    word = fence.info.split(maxsplit=1)[0] if fence.info.strip() else ""
    return word if _LANGUAGE.fullmatch(word) else ""


def is_closed(fence: Token) -> bool:
    """Whether the fence's last line is the closing one; markdown-it says it only by the number of lines."""
    content, lines = fence.content, fence.map or [0, 0]
    written = content.count("\n") + (content != "" and not content.endswith("\n"))
    return lines[1] - lines[0] == written + 2


def _code(html: str, language: str) -> str:
    name = f' class="language-{escapeHtml(language)}"' if language else ""
    return f'<pre class="tc-code"><code{name}>{html}</code></pre>\n'
