"""Lines and code fences of a text that comes in pieces: `Lines` knows where a line begins and which fence is open.

Fences follow CommonMark, section 4.5, except for containers: a fence may be indented by up to 99 blanks, as in a list.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from toolcall_nb.markdown.block_context import NEWLINE
from toolcall_nb.markdown.characters import TextPosition

AFTER_LINE = r"(?=[ \t]{0,99}(?:[`~#]|\Z))"
"""A pattern for the beginning of a line that matters: a possible fence, a heading's mark, or nothing yet."""

LINE_START = rf"[\r\n]{AFTER_LINE}"
"""A pattern for the last character of the line before one that matters."""

MAX_FENCE_LINE = 400
"""The longest line, in characters, that can open or close a fence."""

_OPENING = re.compile(r"[ \t]{0,99}(?P<mark>`{3,}(?=[^`]*\Z)|~{3,})[ \t]*(?P<word>[^ \t]*)")
_BEGINS_MARK = re.compile(r"[ \t]{0,99}(?:[`~]|\Z)")
_CLOSING = re.compile(r"[ \t]{0,99}(?P<mark>`{3,}|~{3,})[ \t]*")


class Fence(NamedTuple):
    """An open fence: its mark, and the first word after it in lower case."""

    mark: str
    word: str

    def is_closed_by(self, mark: str) -> bool:
        """Whether a line that holds only this mark closes the fence."""
        return mark[0] == self.mark[0] and len(mark) >= len(self.mark)


class Lines:
    """The lines of a text that comes in pieces. ``place`` is the position of its end so far."""

    def __init__(self) -> None:
        self.place = TextPosition()
        self.at_start = True
        self.fence: Fence | None = None
        self._line: str | None = ""  # its text so far; None: it opens and closes no fence

    def may_be_mark(self, text: str, position: int) -> bool:
        """Whether the current line, continued with ``text`` from ``position``, may open or close a fence."""
        line = self._line
        return line is not None and _BEGINS_MARK.match(line + text[position : position + MAX_FENCE_LINE]) is not None

    def skip_text(self, text: str, stop: re.Pattern[str]) -> bool:
        """Skips ``text`` if it only continues a line of text, and returns whether it did.

        ``stop`` matches `LINE_START` and anything else that the caller must look at.
        """
        is_plain = self._line is None and stop.search(text) is None
        if is_plain:
            self.place.advance(text)
        return is_plain

    def extend(self, text: str) -> None:
        """Adds text."""
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
        """Skips the source of a call: its lines are not lines of the text."""
        self._line = None  # text after the call on its last line begins no line
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
