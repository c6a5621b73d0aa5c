"""Decides from the text before it whether a header line is at the top level of its document: `BlockContext`.

Where nothing before the line could contain it, the answer is immediate. Otherwise markdown-it-py's own block parser
decides, so that there is no second grammar of Markdown's blocks. Only the last top-level block of the parsed text is
kept: the blocks before it cannot change any more (CommonMark, section 3).

The cost is linear for any text. A parse looks as far ahead as it had to look back, so the next one is due only after as
much text again. Where that much text has not come yet, the parse is paid from a budget that grows with the text;
without budget, the answer has to wait.
"""

from __future__ import annotations

import re
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from toolcall_nb.markdown.callout import HeaderGrammar

NEWLINE = re.compile(r"\r\n?|\n")
"""A line ending, as in CommonMark and markdown-it-py."""

SEAM = re.compile(r"(?:\r\n?|\n){1,2}\Z")
"""The line ends that may separate a text from a callout after it."""

_MARKER = r"(?:[-+*]|\d{1,9}[.)])"
_CONTAINERS = re.compile(rf"[ \t>]*(?:{_MARKER}[ \t][ \t>]*)*")
_FENCE_OR_HTML = re.compile("```|~~~|<")
_TOP_FENCE = re.compile(r"(`{3,})[^`\n]*$|(~{3,})", re.MULTILINE)
_LIST_ITEM = re.compile(rf"^ {{0,3}}{_MARKER}(?:[ \t]|$)", re.MULTILINE)
_QUOTE = re.compile(rf"[ \t]*(?:{_MARKER}[ \t][ \t]*)*>")
_FREE = 1 << 16
_PER_CHARACTER = 8


class BlockContext:
    """The text since the last position that is certainly between two top-level blocks."""

    def __init__(self, kinds: tuple[str, ...]) -> None:
        self._kinds = kinds
        self._budget = _FREE
        self._pieces: list[str] = []
        self._size = self._counted = 0  # the size of the first pieces, and their number: they are counted when needed
        self.reset()

    def extend(self, text: str) -> None:
        """Adds text."""
        self._pieces.append(text)

    def _count(self) -> None:
        added = sum(map(len, self._pieces[self._counted :]))
        self._counted = len(self._pieces)
        self._size += added
        self._budget += _PER_CHARACTER * added

    def reset(self) -> None:
        """Forgets the text, because the next text begins a block of its own."""
        self._count()
        self._pieces = []
        self._size = self._counted = 0
        self._may_hold = False  # whether only a parse can tell if a header is at the top level
        self._header_next = False  # whether the header after the kept text is known to be at the top level

    def examine(self, buffer: str, start: int, header: int, final: bool) -> int | None:
        """Returns how many characters from the header line at ``header`` on are text; 0: it is at the top level.

        There are only line ends between ``start`` and ``header``. If the result is above 0, ``buffer`` from ``start``
        up to there has become part of the context. None means that the parse is too expensive before more text has
        come.
        """
        before = buffer[start:header]
        if self._header_next:
            return 0
        self._count()
        if not self._may_hold:
            if not _may_hold_header(self._join() + _line_feeds(before), buffer[header]):
                return 0
            self._may_hold = True
        window = self._window(buffer, header)
        cost = self._size + len(before) + len(window)
        if cost > self._budget and len(window) < self._size and not final:
            return None
        self._budget -= cost
        return self._parse(before, window)

    def _window(self, buffer: str, header: int) -> str:
        """Returns the line at ``header`` and as many whole lines after it as the context is long."""
        line = NEWLINE.search(buffer, header)
        if line is None:
            return buffer[header:]
        limit = min(len(buffer), header + self._size)
        last = max(buffer.rfind("\n", line.end(), limit), buffer.rfind("\r", line.end(), limit)) + 1
        return buffer[header : max(line.end(), last)]

    def _join(self) -> str:
        text = _line_feeds("".join(self._pieces))
        self._pieces, self._counted = [text], 1
        return text

    def _parse(self, before: str, window: str) -> int:
        context = self._join() + _line_feeds(before)
        lines, keep_from = context.count("\n"), 0
        tokens = _blocks(self._kinds, context + _line_feeds(window), lines)
        first = next((token for token in tokens if token.type == "header"), None)
        if first is not None and first.map is not None:
            end = _line_offset(window, first.map[0] - lines)
            if end == 0:
                return 0
            self._header_next = True
        else:
            end = len(window)
            last = next((token for token in reversed(tokens) if token.nesting >= 0), None)
            keep_from = last.map[0] if last and last.map else 0
        seam = SEAM.search(window, 0, end)
        end = seam.start() if seam else end
        kept = "\n".join((context + _line_feeds(window[:end])).split("\n")[keep_from:])
        self._pieces, self._size, self._counted = [kept], len(kept), 1
        self._budget += _PER_CHARACTER * (len(before) + end)
        return end


def _line_feeds(text: str) -> str:
    """Returns ``text`` with LF as its line ends."""
    return NEWLINE.sub("\n", text) if "\r" in text else text


def _line_offset(text: str, line: int) -> int:
    """Returns the position at which the line number ``line``, from 0, begins."""
    position = 0
    for _ in range(line):
        ending = NEWLINE.search(text, position)
        position = ending.end() if ending else len(text)
    return position


def _may_hold_header(context: str, begins: str) -> bool:
    """Whether a fence, an HTML block, a list or a quote may be open that would contain a header line.

    ``begins`` is the line's first character: a line that is not indented is in no list.
    """
    start = _after_fences(context)
    if start is None or (begins == " " and _LIST_ITEM.search(context, start)):
        return True
    end = len(context)
    while end > start:  # back to the last blank line: a quote continues through lines that are not blank
        line = context.rfind("\n", start, end - 1) + 1 or start
        if not context[line:end].strip(" \t\n"):
            return False
        if _QUOTE.match(context, line, end):
            return True
        end = line
    return False


def _after_fences(context: str) -> int | None:
    """Returns the end of the last fence, if all fences are closed and at the top level and there is no HTML; else None.

    Outside HTML and other fences, a fence that is not indented opens at the top level: it ends every list, quote and
    paragraph (CommonMark, section 4.5).
    """
    position = start = 0
    while (mark := _FENCE_OR_HTML.search(context, start)) is not None:
        line = context.rfind("\n", 0, mark.start()) + 1
        if line < position or not _CONTAINERS.fullmatch(context, line, mark.start()):
            start = context.find("\n", mark.start()) + 1 or len(context)  # within the line's text
            continue
        fence = _TOP_FENCE.match(context, line)
        if fence is None:
            return None
        fence_mark = fence[1] or fence[2]
        end_of_fence = re.compile(rf"\n {{0,3}}{fence_mark}{fence_mark[0]}*[ \t]*$", re.MULTILINE)
        close = end_of_fence.search(context, fence.end())
        if close is None:
            return None
        position = start = close.end()
    return position


def _blocks(kinds: tuple[str, ...], text: str, settled: int) -> list[Token]:
    """Returns the top-level block tokens of ``text``.

    After the first ``settled`` lines, a line that begins as a header, readable or not, is a ``header`` token.
    """
    tokens: list[Token] = []
    parser = _parser(kinds)
    parser.block.parse(text.replace("\0", "\ufffd"), parser, {"settled": settled}, tokens)
    return [token for token in tokens if token.level == 0]


@lru_cache
def _parser(kinds: tuple[str, ...]) -> MarkdownIt:
    parser = MarkdownIt("commonmark")
    grammar = HeaderGrammar(kinds)

    def rule(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        if state.level or state.blkIndent or start < state.env["settled"]:
            return False
        if grammar.starts(state.src[state.bMarks[start] : state.eMarks[start]]) is None:
            return False
        if not silent:
            state.line = start + 1
            state.push("header", "", 0).map = [start, start + 1]
        return True

    alternatives = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("table", "callout_header", rule, {"alt": alternatives})
    return parser
