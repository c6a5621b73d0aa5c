"""The end of a text that grows, where more of it can be taken up without parsing the whole tail.

Each class stands for one way that the last top-level block may be open. `open_leaf` says which holds, after a parse;
``extended`` then takes more text and returns the block's HTML, or None where only a parse of the tail can tell. A
class says in its docstring why the result is that of the parse. Text, and lists and tables, have files of their own.
"""

from __future__ import annotations

from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

from toolcall_nb.render.markdown.blocks import OpenEnd, is_blank, is_over
from toolcall_nb.render.markdown.definitions import Definitions
from toolcall_nb.render.markdown.flavor import is_closed
from toolcall_nb.render.markdown.open_text import OpenText

__all__ = ["open_leaf"]

_FENCE_END = "</code></pre>\n"


def open_leaf(group: list[Token], html: str, lines: list[str], definitions: Definitions) -> OpenEnd | None:
    """How more text can be taken up by the innermost block that ``group``, the last of ``lines``, ends with.

    ``html`` is the group's, ``definitions`` those that it was parsed with.
    """
    if group[0].type == "fence" and not is_closed(group[0]):
        return _OpenFence.of(group[0], html, lines)
    if len(lines) > 1 and is_blank(lines[-1]):
        return _OpenGap(group, html) if _ends_at_gap(group, lines) else None
    text = OpenText.of(group, html, lines, definitions)
    return _OpenGap(group, html, is_begun=False) if text is None and group[0].type == "table_open" else text


def _ends_at_gap(group: list[Token], lines: list[str]) -> bool:
    """Whether more blank space behind the group adds nothing to it. Behind code, it may be part of the code."""
    last = next(token for token in reversed(group) if token.nesting >= 0)
    if last.type == "inline":
        return True
    return len(group) == 1 and last.type in ("fence", "hr", "tc_math_block")


class _OpenGap:
    """A blank line behind text, or behind what a line end has ended: more blank space adds nothing.

    Nor does the end of a row, with which the gap begins.
    """

    def __init__(self, group: list[Token], html: str, *, is_begun: bool = True) -> None:
        self._group = group
        self._html = html
        self._is_begun = is_begun

    def extended(self, text: str) -> str | None:
        """The block's HTML with ``text`` added, or None where only a parse can tell."""
        if text.strip(" \t\n") or not (self._is_begun or text.startswith("\n")):
            return None
        self._is_begun = True
        return self._html

    def tokens(self) -> list[Token] | None:
        """The block's tokens."""
        return self._group

    def is_over(self, character: str) -> bool:
        """Whether a line that begins with ``character``, behind a blank one, starts another block."""
        return is_over(self._group, character)


class _OpenFence:
    """A top-level fence, not indented, that the text ends in: its lines are shown as they are until one closes it.

    The parser leaves out a last line of blanks that no line end follows, so these wait for what follows.
    """

    def __init__(self, head: str, markup: str, line: str) -> None:
        self._head = head
        self._markup = markup
        self._line = line  # so far
        self._blanks = "" if line.strip(" \t") else line

    @classmethod
    def of(cls, token: Token, html: str, lines: list[str]) -> _OpenFence | None:
        """The open fence, if its first line is whole, and it takes no blanks from its lines."""
        start = (token.map or [0])[0]
        if start + 1 >= len(lines) or not lines[start].startswith(token.markup):
            return None
        if "|" in token.info:  # the next line may make it the head of a table
            return None
        return cls(html.removesuffix(_FENCE_END), token.markup, lines[-1])

    def extended(self, text: str) -> str | None:
        """The block's HTML with ``text`` added, or None where a line may close the fence."""
        *lines, last = (self._line + text).split("\n")
        if any(self._may_close(line) for line in (*lines, last)):
            return None
        shown = self._blanks + text
        self._line = last
        self._blanks = "" if last.strip(" \t") else last
        self._head += escapeHtml(shown[: len(shown) - len(self._blanks)])
        return self._head + _FENCE_END

    def tokens(self) -> list[Token] | None:
        """Not kept."""
        return None

    def is_over(self, character: str) -> bool:
        """A fence goes on behind a blank line."""
        return False

    def _may_close(self, line: str) -> bool:
        line = line.strip(" \t")
        return line.startswith(self._markup) and not line.strip(self._markup[0])
