"""Does a header line stand at the top level of its document? Answered from the text before it.

At once where nothing before could hold the line; else by markdown-it-py's own block parser, so that no second grammar
of Markdown's blocks exists. Of what was parsed, only the last top-level block is kept: blocks before it are settled
(CommonMark, section 3).

The cost is linear for any text. A parse looks ahead as far as it had to look back, so that the next one is due only
after as much text again; where that much is not there yet, it is paid from a budget that grows with the text, and
without budget the answer has to wait.
"""

from __future__ import annotations

import re
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from toolcall_nb.markdown.callout import HeaderGrammar

__all__ = ["NEWLINE", "SEAM", "BlockContext"]

NEWLINE = re.compile(r"\r\n?|\n")
"""A line ending, as CommonMark and markdown-it-py have it."""

SEAM = re.compile(r"(?:\r\n?|\n){1,2}\Z")
"""The line ends that may part a text from a callout after it."""

_MARKER = r"(?:[-+*]|\d{1,9}[.)])"
_CONTAINERS = re.compile(rf"[ \t>]*(?:{_MARKER}[ \t][ \t>]*)*")
_FENCE_OR_HTML = re.compile("```|~~~|<")
_TOP_FENCE = re.compile(r"(`{3,})[^`\n]*$|(~{3,})", re.MULTILINE)
_LIST_ITEM = re.compile(rf"^ {{0,3}}{_MARKER}(?:[ \t]|$)", re.MULTILINE)
_QUOTE = re.compile(rf"[ \t]*(?:{_MARKER}[ \t][ \t]*)*>")
_FREE = 1 << 16
_PER_CHARACTER = 8


class BlockContext:
    """The text since the last place that is certainly between two top-level blocks."""

    def __init__(self, kinds: tuple[str, ...]) -> None:
        self._kinds = kinds
        self.reset()
        self._budget = _FREE

    def extend(self, text: str) -> None:
        """More text went by."""
        self._pieces.append(text)
        self._size += len(text)
        self._budget += _PER_CHARACTER * len(text)

    def reset(self) -> None:
        """The text that follows begins a block of its own."""
        self._pieces: list[str] = []
        self._size = 0
        self._may_hold = False  # what is kept may hold a header: only a parse can tell
        self._header_next = False  # the header after what is kept is known to stand alone

    def examine(self, buffer: str, start: int, found: int, final: bool) -> int | None:
        """How much after ``found``, where a header line begins, is text: 0 says that the header stands alone.

        Only line ends part ``start`` from ``found``. Where more than 0 is returned, ``buffer`` from ``start`` that
        far has become part of the context, and stops before line ends. None: not affordable before more text came.
        """
        before = buffer[start:found]
        if self._header_next:
            return 0
        if not self._may_hold:
            if not _may_hold_header(self._join() + _line_feeds(before), buffer[found]):
                return 0
            self._may_hold = True
        window = self._window(buffer, found)
        cost = self._size + len(before) + len(window)
        if cost > self._budget and len(window) < self._size and not final:
            return None
        self._budget -= cost
        return self._parse(before, window)

    def _window(self, buffer: str, found: int) -> str:
        """Whole lines from ``found`` on: one, and as many as the context is long."""
        line = NEWLINE.search(buffer, found)
        if line is None:
            return buffer[found:]
        limit = min(len(buffer), found + self._size)
        last = max(buffer.rfind("\n", line.end(), limit), buffer.rfind("\r", line.end(), limit)) + 1
        return buffer[found : max(line.end(), last)]

    def _join(self) -> str:
        text = _line_feeds("".join(self._pieces))
        self._pieces = [text]
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
        kept = _from_line(context + _line_feeds(window[:end]), keep_from)
        self._pieces, self._size = [kept], len(kept)
        self._budget += _PER_CHARACTER * (len(before) + end)
        return end


def _line_feeds(text: str) -> str:
    """``text`` with every line ended by LF."""
    return NEWLINE.sub("\n", text) if "\r" in text else text


def _line_offset(text: str, line: int) -> int:
    """Where the line number ``line``, from 0, begins."""
    position = 0
    for _ in range(line):
        ending = NEWLINE.search(text, position)
        position = ending.end() if ending else len(text)
    return position


def _from_line(text: str, line: int) -> str:
    return "\n".join(text.split("\n")[line:]) if line else text


def _may_hold_header(context: str, begins: str) -> bool:
    """Whether a fence, an HTML block, a list or a quote may be open that would hold a header line.

    ``begins`` is the line's first character: one that is not indented is in no list.
    """
    start = _after_fences(context)
    if start is None or (begins == " " and _LIST_ITEM.search(context, start)):
        return True
    end = len(context)
    while end > start:  # the lines up to the last blank one: a quote goes on through them
        line = context.rfind("\n", start, end - 1) + 1 or start
        if not context[line:end].strip(" \t\n"):
            return False
        if _QUOTE.match(context, line, end):
            return True
        end = line
    return False


def _after_fences(context: str) -> int | None:
    """Where the last fence ends, if each is a whole one at the top level and there is no HTML; else None.

    A fence that is not indented opens at the top level whatever came before, but in HTML or another fence: it ends
    every list, quote and paragraph (CommonMark, section 4.5).
    """
    position = start = 0
    while (found := _FENCE_OR_HTML.search(context, start)) is not None:
        line = context.rfind("\n", 0, found.start()) + 1
        if line < position or not _CONTAINERS.fullmatch(context, line, found.start()):
            start = context.find("\n", found.start()) + 1 or len(context)  # it is within the line's text
            continue
        fence = _TOP_FENCE.match(context, line)
        if fence is None:
            return None
        mark = fence[1] or fence[2]
        close = re.compile(rf"\n {{0,3}}{mark}{mark[0]}*[ \t]*$", re.MULTILINE).search(context, fence.end())
        if close is None:
            return None
        position = start = close.end()
    return position


def _blocks(kinds: tuple[str, ...], text: str, settled: int) -> list[Token]:
    """The top-level block tokens of ``text``.

    After the first ``settled`` lines, one that begins as a header, whether readable or not, is a ``header``.
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
