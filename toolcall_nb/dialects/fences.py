"""Code fences in a text that goes by: where a line begins, and whether it stands in one.

As in CommonMark, section 4.5, but for the containers: a fence may stand after 99 blanks, as it does deep in a list.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from toolcall_nb.markdown.block_context import NEWLINE
from toolcall_nb.markdown.characters import TextPosition

__all__ = ["AFTER_LINE", "LINE_START", "MAX_FENCE_LINE", "Fence", "Lines"]

AFTER_LINE = r"(?=[ \t]{0,99}(?:[`~#]|\Z))"
"""Where a line begins that may say something: it may be a fence, it has a heading's mark, or it says nothing yet."""

LINE_START = rf"[\r\n]{AFTER_LINE}"
"""The last character of the line before one that may say something."""

MAX_FENCE_LINE = 400
"""How many characters of a line are looked at; a longer one opens or closes no fence."""

_OPENING = re.compile(r"[ \t]{0,99}(?P<mark>`{3,}(?=[^`]*\Z)|~{3,})[ \t]*(?P<word>[^ \t]*)")
_BEGINS_MARK = re.compile(r"[ \t]{0,99}(?:[`~]|\Z)")
_CLOSING = re.compile(r"[ \t]{0,99}(?P<mark>`{3,}|~{3,})[ \t]*")


class Fence(NamedTuple):
    """A fence that is open: its mark, and the first word after it in lower case."""

    mark: str
    word: str

    def is_closed_by(self, mark: str) -> bool:
        """Whether it ends at a line with nothing but this mark."""
        return mark[0] == self.mark[0] and len(mark) >= len(self.mark)


class Lines:
    """The lines of a text that comes in pieces. ``place`` is where it has come to."""

    def __init__(self) -> None:
        self.place = TextPosition()
        self.at_start = True
        self.fence: Fence | None = None
        self._line: str | None = ""  # as far as it has come; None: it opens and closes no fence

    def may_be_mark(self, text: str, position: int) -> bool:
        """Whether the line that goes on with ``text`` from ``position`` may open or close a fence."""
        line = self._line
        return line is not None and _BEGINS_MARK.match(line + text[position : position + MAX_FENCE_LINE]) is not None

    def go_on(self, text: str, stop: re.Pattern[str]) -> bool:
        """Whether ``text`` has gone by: it has if it goes on with a line of text and ``stop`` is nowhere in it.

        ``stop`` finds `LINE_START`, and what else matters to who asks.
        """
        goes_on = self._line is None and stop.search(text) is None
        if goes_on:
            self.place.advance(text)
        return goes_on

    def extend(self, text: str) -> None:
        """More text went by."""
        if not text:
            return
        self.place.advance(text)
        begin = max(text.rfind("\n"), text.rfind("\r")) + 1
        self.at_start = begin == len(text)
        if begin:
            self._end_lines(text[:begin])
        if self._line is not None:
            self._add(self._line, text[begin:])

    def skip(self, source: str) -> None:
        """A call was there: what it holds are no lines of the text."""
        self._line = None  # what comes after it on its line begins none
        self.place.advance(source)
        self.at_start = source[-1] in "\r\n"

    def _add(self, line: str, text: str) -> None:
        line = (line + text[: MAX_FENCE_LINE + 1])[: MAX_FENCE_LINE + 1]
        self._line = line if _BEGINS_MARK.match(line) else None

    def _end_lines(self, text: str) -> None:
        if self._line is None and "```" not in text and "~~~" not in text:
            self._line = ""
            return
        position = 0
        for ending in NEWLINE.finditer(text):
            if self._line is not None:
                self._add(self._line, text[position : ending.start()])
            self._end_line()
            position = ending.end()

    def _end_line(self) -> None:
        line, self._line = self._line, ""
        if line is None or len(line) > MAX_FENCE_LINE:
            return
        if self.fence is None:
            opening = _OPENING.match(line)
            self.fence = Fence(opening["mark"], opening["word"].lower()) if opening else None
        elif (closing := _CLOSING.fullmatch(line)) and self.fence.is_closed_by(closing["mark"]):
            self.fence = None
