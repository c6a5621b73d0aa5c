"""The innermost block that a growing text ends in: open code or a paragraph.

`find_open_leaf` says, after a parse, which of them it is. ``extend`` then adds text and returns the block's HTML, or
None if only a parse of the tail can tell. The docstring of each class says why the result is that of the parse.
`toolcall_nb.incremental_markdown.open_paragraph` holds paragraphs, headings and cells.
"""

from __future__ import annotations

import re

from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

from toolcall_nb.incremental_markdown.blocks import OpenEnd, OuterBlocks, behind_blank, first_line, is_blank
from toolcall_nb.incremental_markdown.flavor import is_closed
from toolcall_nb.incremental_markdown.link_definitions import render_tokens
from toolcall_nb.incremental_markdown.open_paragraph import OpenText

_FENCE_END = "</code></pre>\n"
_CODE_INDENT = re.compile(r" {4}| {0,3}\t")


def find_open_leaf(group: list[Token], html: str, lines: list[str], outer: OuterBlocks) -> OpenEnd | None:
    """Returns the open end of the innermost block of ``group``, which is the last one of ``lines``.

    ``html`` is that of the group.
    """
    if group[0].type == "fence" and not is_closed(group[0]):
        return _OpenFence.of(group[0], html, lines)
    if group[0].type == "code_block":
        # Behind a definition, its first line may become a title.
        return _OpenCode.of(group[0], html, lines) if outer.is_certain else None
    ends_with_line = outer.is_certain and group[0].type == "heading_open" and _is_marked(group, lines)
    if len(lines) > 1 and is_blank(lines[-1]):
        return None
    # Behind another block, the line after one with a pipe may decide to which of the two it belongs.
    if not outer.is_certain and "|" in lines[first_line(group)]:
        return None
    return OpenText.of(group, html, lines, outer.definitions, ends_with_line=ends_with_line)


def _is_marked(group: list[Token], lines: list[str]) -> bool:
    """Whether the heading has its mark before it, and its line can't be the head of a table."""
    return group[0].markup.startswith("#") and "|" not in lines[first_line(group)]


class _OpenCode(OpenEnd):
    """Code by its indentation: lines that are indented so, and blank lines between them, continue it."""

    def __init__(self, token: Token, html: str, lines: list[str], line: int) -> None:
        super().__init__([token])
        last = f"{escapeHtml(_without_indent(lines[line]))}\n{_FENCE_END}"
        self._head = html.removesuffix(last)  # the HTML before the last line that is not blank
        self._rest = "\n".join(lines[line:])  # the text from there on

    @classmethod
    def of(cls, token: Token, html: str, lines: list[str]) -> _OpenCode | None:
        """Returns the open code if its content is its lines without the indentation."""
        start, end = token.map or [0, 0]
        written = "".join(f"{_without_indent(line)}\n" for line in lines[start:end])
        return cls(token, html, lines, end - 1) if written == token.content else None

    def extend(self, text: str) -> str | None:
        """Returns the block's HTML with ``text`` added; None if a line may not be code."""
        lines = (self._rest + text).split("\n")
        last = 0
        for number, line in enumerate(lines):
            if not is_blank(line):
                if not _CODE_INDENT.match(line):
                    return None
                last = number
        if last:
            self._head += escapeHtml("".join(f"{_without_indent(line)}\n" for line in lines[:last]))
            lines = lines[last:]
        self._rest = "\n".join(lines)
        return f"{self._head}{escapeHtml(_without_indent(lines[0]))}\n{_FENCE_END}"


def _without_indent(line: str) -> str:
    """Returns a line of code without its indentation, a blank line without as much of it as it has."""
    indent = _CODE_INDENT.match(line)
    return line[indent.end() :] if indent is not None else line.lstrip(" ")


class _OpenFence(OpenEnd):
    """An open top-level fence: its lines are shown as they are, without its indentation, until one closes it.

    The parser leaves out a last line of blanks without a line end, so these wait until more text follows. A line that
    closes the fence may still be code while it has not ended. Behind it, blank lines add nothing.
    """

    def __init__(self, token: Token, html: str, indent: int, line: str) -> None:
        super().__init__([token])
        self._head = html.removesuffix(_FENCE_END)
        self._markup = token.markup
        self._indent = indent
        self._line = line  # the last line so far
        self._blanks = "" if line.strip(" \t") else self._inside(line)
        self._code = [token.content, self._blanks]  # the lines so far, in pieces
        self._closed: str | None = None  # the HTML, if the line that closes the fence has ended
        self._before = html[: html.index("<")]  # the line end behind a paragraph without an element

    @classmethod
    def of(cls, token: Token, html: str, lines: list[str]) -> _OpenFence | None:
        """Returns the open fence if its first line is whole, and spaces alone indent it."""
        start = (token.map or [0])[0]
        if start + 1 >= len(lines) or not lines[start].lstrip(" ").startswith(token.markup):
            return None
        if "|" in token.info:  # the next line may make it the head of a table
            return None
        indent = len(lines[start]) - len(lines[start].lstrip(" "))
        return None if indent and "\t" in lines[-1][:indent] else cls(token, html, indent, lines[-1])

    def _inside(self, line: str) -> str:
        """Returns the line without the indentation of the fence."""
        return line[min(self._indent, len(line) - len(line.lstrip(" "))) :]

    def _end(self, lines: list[str]) -> int | None:
        """Returns the number of the first line that may close the fence."""
        for number, line in enumerate(lines):
            bare = line.strip(" \t")
            if bare.startswith(self._markup) and not bare.strip(self._markup[0]):
                return number
        return None

    def next_block(self, gap: str, text: str) -> int | None:
        """Returns where in ``text`` another block begins behind the end of this one, if that is certain."""
        if self._closed is not None:
            return super().next_block(gap, text)
        text = self._line + text
        if self._markup not in text:
            return None
        lines = text.split("\n")
        end = self._end(lines)
        start = None if end is None else behind_blank(text, len("\n".join(lines[:end])))
        return None if start is None else start - len(self._line)

    def extend(self, text: str) -> str | None:
        """Returns the block's HTML with ``text`` added; None if a line may close the fence and may not."""
        if self._closed is not None:
            return None if text.strip(" \t\n") else self._closed
        line = self._line
        source = line + text
        lines = source.split("\n")
        end = self._end(lines) if self._markup in source else None
        if end is not None and (_is_indented(lines[end]) or not all(map(is_blank, lines[end + 1 :]))):
            return None
        if self._indent:
            if any("\t" in line[: self._indent] for line in lines):
                return None
            text = "\n".join(map(self._inside, lines))[len(self._inside(line)) :]
        closed = self._closed_by(lines[:end]) if end is not None else None
        if end is not None and end + 1 < len(lines):
            self._closed = closed
            return closed
        added_code = self._blanks + text
        self._code.append(text)
        self._line = lines[-1]
        self._blanks = "" if self._line.strip(" \t") else self._inside(self._line)
        self._head += escapeHtml(added_code[: len(added_code) - len(self._blanks)])
        return self._head + _FENCE_END if closed is None else closed

    def _closed_by(self, lines: list[str]) -> str:
        """Returns the HTML if the fence is closed behind ``lines``, the first of which is the last one so far."""
        code = "".join(self._code)
        code = code[: code.rfind("\n") + 1] + "".join(f"{self._inside(line)}\n" for line in lines)
        token = self.group[0]
        start = first_line(self.group)
        token.content, token.map = code, [start, start + code.count("\n") + 2]
        return self._before + render_tokens([token])

    @property
    def is_verbatim(self) -> bool:
        """Whether the fence is open, so that tabs are shown."""
        return self._closed is None


def _is_indented(line: str) -> bool:
    """Whether the line may be indented too far to close a fence."""
    return "\t" in line or line.startswith("    ")
