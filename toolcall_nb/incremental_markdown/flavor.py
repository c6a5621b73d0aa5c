"""The Markdown of model text: CommonMark with tables, strikethrough, task lists, alerts and formulas.

`render_markdown` renders a whole text; `parser` is the parser with its rules. Everything is untrusted. HTML in the
text is text. A link has a scheme from a short list, or stays text; a link that leaves the page opens in a new tab. An
image is shown only if its bytes are in the address. Loading it from another host would tell that host who reads and
when, so it becomes a link.

If a form alone carries meaning, words say the same, because some hosts strip forms and styles: a check box is followed
by ``[x]`` in a ``tc-check``, a formula by its TeX (see ``formulas``). The style sheet hides the words where the form is
shown.

Code is highlighted only when its fence is closed. Until then each new character could change the colours of all code
before it, which would have to be read again.

A paragraph that is JSON over several lines, perhaps after a label (``Data: {``), becomes code. Tool results in the
words of seed 004 have this form.
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

from toolcall_nb.core.escaping import visible_controls
from toolcall_nb.incremental_markdown.formulas import formula_plugin
from toolcall_nb.incremental_markdown.highlight import highlight

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

_DEEPEST = 40  # blocks within blocks, and brackets within brackets

_MOST_KEPT = 500  # characters of a link

MOST_MARKS = 5000
"""The most marks in the inline content of one block: a paragraph, a heading or a cell."""

_MARK = re.compile(r"[\n!\[\]*_~`$\\<&]")
"""The characters that the rules of this flavor begin at, and a bracket that ends a label."""
_BEYOND_LABEL = re.compile(r"[`$]")
_SCHEME = re.compile(r"\s*([a-zA-Z][a-zA-Z0-9+.-]*):")
_SCHEMES = frozenset({"http", "https", "mailto", "tel"})
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);", re.IGNORECASE)
_OUTSIDE = re.compile(r"https?:|//", re.IGNORECASE)  # a browser supplies the slashes of `https:host`
# The brackets stand at the end and the beginning of a line: only a parse adds such a line to a growing paragraph.
_JSON = re.compile(r"(?:([A-Za-z][A-Za-z ]{0,40}:)[ \t]*+)?([{\[]\n.*\n[ \t]*+[}\]])", re.DOTALL)
_PICTURES = {0x0C: "\u240c", 0x0D: "\u240d"}
_LANGUAGE = re.compile(r"[\w+#.-]{1,40}")


def render_markdown(text: str) -> str:
    """Returns ``text`` as HTML: a sequence of block elements, without a wrapper. Never raises."""
    # The parser limits its own nesting, but the caller's stack may be long already.
    try:
        # `references` is there from the start, as in IncrementalMarkdown, so that both take the same steps.
        return str(parser().render(visible_controls(text), {"references": {}}))
    except Exception:
        return plain_block(text)


def plain_block(text: str) -> str:
    """Returns ``text`` as it is, in one block."""
    return f'<pre class="tc-code"><code>{escapeHtml(visible_controls(text))}</code></pre>\n'


@cache
def parser() -> MarkdownIt:
    """Returns the one parser of this flavor. It is shared, so no rule may be added to it elsewhere."""
    md = _Parser("commonmark", {"html": False, "tasklists": True, "alerts": True, "maxNesting": _DEEPEST})
    md.enable(["table", "strikethrough"])
    md.use(formula_plugin)
    # The parser stops at each character that any plugin might read, and tries all its rules there.
    md.inline.terminator_re = _MARK
    md.block.ruler.before("table", "tc_deep", _deep)
    md.core.ruler.before("inline", "tc_json", _json)
    md.core.ruler.at("inline", _inline)
    md.core.ruler.before("text_join", "tc_texts", _note_texts)
    md.core.ruler.push("tc_links", _links)
    md.inline.ruler2.push("tc_controls", _show_controls)
    md.add_render_rule("list_item_open", _list_item)
    md.add_render_rule("tc_json", _labelled_json)
    md.add_render_rule("fence", _fence)
    md.add_render_rule("code_block", _code_block)
    return md


def _show_controls(state: StateInline) -> None:
    """Shows form feed and carriage return, which the library takes from entities such as ``&#12;``, as pictures."""
    for token in state.tokens:
        if token.type == "text_special":
            token.content = token.content.translate(_PICTURES)
        elif "title" in token.attrs:
            token.attrs["title"] = str(token.attrs["title"]).translate(_PICTURES)


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        """Whether ``url`` becomes a link. The library refuses four schemes; this allows only known ones."""
        scheme = _SCHEME.match(url)
        return scheme is None or scheme[1].lower() in _SCHEMES or _PICTURE.match(url) is not None

    def normalizeLink(self, url: str) -> str:
        """Normalises as the library does, with a cache: links in a growing text are read again and again."""
        return _normalized(url) if len(url) <= _MOST_KEPT else super().normalizeLink(url)


@lru_cache(maxsize=256)
def _normalized(url: str) -> str:
    return MarkdownIt.normalizeLink(parser(), url)


def is_deep(level: int) -> bool:
    """Whether blocks within so many others are shown as code."""
    return level >= _DEEPEST - 3


def _deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Shows blocks that are nested too deep as code: the library would drop them, and hide them from the reader."""
    if silent or not is_deep(state.level + state.env.get("level", 0)):
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
    """Replaces each top-level paragraph that is JSON over several lines by a token of its own."""
    if state.env.get("level"):
        return
    tokens = state.tokens
    for at in [n for n, token in enumerate(tokens) if token.type == "paragraph_open" and token.level == 0][::-1]:
        match = _JSON.fullmatch(tokens[at + 1].content)
        if match is not None and _is_json(match[2]):
            token = Token(
                "tc_json", "", 0, map=tokens[at].map, content=f"{match[2]}\n", info=match[1] or "", block=True
            )
            tokens[at : at + 3] = [token]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _inline(state: StateCore) -> None:
    """Parses the inline content of blocks. Content without marks, or with too many, stays as it is written."""
    for token in state.tokens:
        if token.type != "inline" or token.children is None or not token.content:
            continue
        if not _MARK.search(token.content) or has_too_many_marks(token.content):
            token.children.append(Token("text", "", 0, content=token.content))
        else:
            state.md.inline.parse(token.content, state.md, state.env, token.children)


def _note_texts(state: StateCore) -> None:
    """Notes in each inline token what the inline parser left as text, if ``env`` asks for these ``texts``.

    A full stop stands for an escape or entity, which means nothing more, and a letter that it ends with follows. The
    first text is behind a blank if the content begins with it. Of the label of an image, only marks are noted that may
    reach beyond it.
    """
    if "texts" not in state.env:
        return
    for token in state.tokens:
        if token.children:
            token.meta["texts"] = _texts(token.children)


def _texts(tokens: Sequence[Token]) -> list[str]:
    texts = [" "]
    for token in tokens:
        if token.type in ("text", "text_special"):
            texts[-1] += token.content if token.type == "text" else _stand_in(token)
        elif token.type in ("softbreak", "hardbreak"):
            texts[-1] += "\n" if token.type == "softbreak" else ".\n"  # a backslash, perhaps
        else:
            texts += ["".join(_BEYOND_LABEL.findall(token.content)) if token.type == "image" else "", ""]
    return texts


def _stand_in(special: Token) -> str:
    last = special.markup[-1:]
    return f".{last}" if last.isalnum() else "."


def has_too_many_marks(content: str, besides: int = 0) -> bool:
    """Whether the inline content of one block has more than `MOST_MARKS`, with those ``besides``.

    A growing block is parsed again and again, so the limit bounds the cost of each time.
    """
    return len(content) + besides > MOST_MARKS and marks_in(content) + besides > MOST_MARKS


def marks_in(content: str) -> int:
    """Returns how many characters mean something to the inline parser, line ends among them."""
    return len(_MARK.findall(content))


def _links(state: StateCore) -> None:
    """Marks links that leave the page, and replaces images that would be loaded by links."""
    for token in state.tokens:
        if token.type == "inline" and token.children:
            token.children = _safe(state, token.children)


def _safe(state: StateCore, tokens: list[Token]) -> list[Token]:
    if not {"link_open", "image"}.intersection([token.type for token in tokens]):
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
    """Returns a link to the image with its text; in a link only the text, since links do not nest."""
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
    """Whether the fence's last line is the closing one, which markdown-it shows only by the number of lines."""
    content, lines = fence.content, fence.map or [0, 0]
    written = content.count("\n") + (content != "" and not content.endswith("\n"))
    return lines[1] - lines[0] == written + 2


def _code(html: str, language: str) -> str:
    name = f' class="language-{escapeHtml(language)}"' if language else ""
    return f'<pre class="tc-code"><code{name}>{html}</code></pre>\n'
