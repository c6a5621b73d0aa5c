"""Blocks of one line whose structure needs no parse: of text by `parse_line`, of any line by `parse_one_line`."""

from __future__ import annotations

import re

from markdown_it.common.utils import escapeHtml, mdTrim
from markdown_it.token import Token

from toolcall_nb.incremental_markdown.flavor import marks_in
from toolcall_nb.incremental_markdown.link_definitions import Definitions, parse_inline, render_tokens
from toolcall_nb.incremental_markdown.open_paragraph import TEXT_LINE

# A heading that a later character may lengthen, and nothing else: hashes at its end would be dropped.
_HEADING = re.compile(r"(#{1,6})[ \t]+([^\s#][^#]*)")


def line_html(line: str) -> str:
    """Returns the HTML of a paragraph of one line, which begins with `TEXT_LINE`."""
    content = mdTrim(line)
    if not marks_in(content):
        return f"<p>{escapeHtml(content)}</p>\n"
    inline = Token("inline", "", 0, map=[0, 1], level=1, content=content, block=True)
    parse_inline([inline], Definitions({}), notes_texts=False)
    return f"<p>{render_tokens([inline])}</p>\n"


def parse_line(line: str, definitions: Definitions) -> list[Token]:
    """Returns the tokens of a paragraph of one line, which begins with `TEXT_LINE`: only its content needs a parse."""
    opening = Token("paragraph_open", "p", 1, map=[0, 1], block=True)
    inline = Token("inline", "", 0, map=[0, 1], level=1, content=mdTrim(line), block=True)
    parse_inline([inline], definitions)
    return [opening, inline, Token("paragraph_close", "p", -1, block=True)]


def parse_one_line(line: str, definitions: Definitions) -> list[Token] | None:
    """Returns the tokens of one line that is certainly a paragraph or a heading; None if only a parse can tell."""
    if TEXT_LINE.match(line):
        return parse_line(line, definitions)
    found = _HEADING.fullmatch(line)
    if found is None:
        return None
    tokens = parse_line(found[2], definitions)
    for token in (tokens[0], tokens[2]):
        token.type = token.type.replace("paragraph", "heading")
        token.tag, token.markup = f"h{len(found[1])}", found[1]
    return tokens
