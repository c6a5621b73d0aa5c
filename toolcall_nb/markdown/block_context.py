"""Does a header line stand at the top level of its document? Answered from the text before it.

At once where nothing before could hold the line; else by markdown-it-py's own block parser with the callout rule
of `toolcall_nb.markdown.plugin`, so that no second grammar of Markdown's blocks exists.

Parsing again is paid from a budget that grows with the text, so that the cost stays linear for any text. Of what
was parsed, only the last top-level block is kept: blocks before it are settled (CommonMark, section 3).
"""

from __future__ import annotations

import re
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from toolcall_nb.markdown.callout import Header
from toolcall_nb.markdown.plugin import callout_rule

__all__ = ["NEWLINE", "BlockContext"]

NEWLINE = re.compile(r"\r\n?|\n")
"""A line ending, as CommonMark and markdown-it-py have it."""

_MARKER = r"(?:[-+*]|\d{1,9}[.)])"
_FENCE_OR_HTML = re.compile(rf"^[ \t>]*(?:{_MARKER}[ \t][ \t>]*)*(?:```|~~~|<)", re.MULTILINE)
_LIST_ITEM = re.compile(rf"^ {{0,3}}{_MARKER}(?:[ \t]|$)", re.MULTILINE)
_QUOTE = re.compile(rf"[ \t]*(?:{_MARKER}[ \t][ \t]*)*>")
_FREE = 1 << 16
_PER_CHARACTER = 8


class BlockContext:
    """The text since the last place that is certainly between two top-level blocks."""

    def __init__(self, kinds: tuple[str, ...]) -> None:
        self._kinds = kinds
        self._pieces: list[str] = []
        self._size = 0
        self._may_hold = False  # what is kept may hold a header: only a parse can tell
        self._budget = _FREE

    def extend(self, text: str) -> None:
        """More text went by."""
        self._pieces.append(text)
        self._size += len(text)
        self._budget += _PER_CHARACTER * len(text)

    def reset(self) -> None:
        """The text that follows begins a block of its own."""
        self._pieces, self._size, self._may_hold = [], 0, False

    def stands_alone(self, before: str, line: str, final: bool) -> bool | None:
        """Whether ``line``, after ``before``, begins a top-level block. None: not affordable before more text came.

        Where the answer is not None, ``before`` has become part of the context.
        """
        if not self._may_hold:
            self.extend(before)
            if not _may_hold_header(self._join(), line):
                return True
            self._may_hold, before = True, ""
        cost = self._size + len(before) + len(line)
        if cost > self._budget + _PER_CHARACTER * len(before) and not final:
            return None
        self.extend(before)
        self._budget -= cost
        return self._parse(line)

    def _join(self) -> str:
        text = NEWLINE.sub("\n", "".join(self._pieces))
        self._pieces = [text]
        return text

    def _parse(self, line: str) -> bool:
        context = self._join()
        indent = " " * (len(line) - len(line.lstrip(" ")))
        block = _last_block(self._kinds, f"{context}{indent}> [!{self._kinds[0]}]")
        if block is None or block.type == "callout":
            return True
        start = block.map[0] if block.map else 0
        kept = "\n".join(context.split("\n")[start:])
        self._pieces, self._size = [kept], len(kept)
        return False


def _may_hold_header(context: str, line: str) -> bool:
    """Whether the context could hold the header: a fence, an HTML block, a list or a quote may be open."""
    if _FENCE_OR_HTML.search(context) or (line.startswith(" ") and _LIST_ITEM.search(context)):
        return True
    end = len(context)
    while end > 0:  # the lines up to the last blank one: a quote goes on through them
        start = context.rfind("\n", 0, end - 1) + 1
        if not context[start:end].strip(" \t\n"):
            return False
        if _QUOTE.match(context, start, end):
            return True
        end = start
    return False


def _last_block(kinds: tuple[str, ...], text: str) -> Token | None:
    """The token that opens the last top-level block of ``text``."""
    tokens: list[Token] = []
    parser = _parser(kinds)
    parser.block.parse(text.replace("\0", "\ufffd"), parser, {}, tokens)
    return next((token for token in reversed(tokens) if token.level == 0 and token.nesting >= 0), None)


@lru_cache
def _parser(kinds: tuple[str, ...]) -> MarkdownIt:
    parser = MarkdownIt("commonmark")
    callout_rule(parser, kinds, _emit)
    return parser


def _emit(state: StateBlock, header: Header, body: str, start: int) -> None:
    state.push("callout", "", 0).map = [start, state.line]
