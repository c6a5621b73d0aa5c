"""Code fences in a text that goes by: where a line begins, and whether it stands in one.

As in CommonMark, section 4.5, but for the containers: a fence may stand as deep as it likes, as it does in a list.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from toolcall_nb.markdown.block_context import NEWLINE
from toolcall_nb.markdown.characters import Place

__all__ = ["LINE_START", "LONGEST", "Fence", "Lines"]

LINE_START = r"(?:\r\n?|\n)(?=[ \t]{0,99}(?:[`~#]|\Z))"
"""The end of a line before one that may say something: a fence, a heading's mark, or nothing yet."""

LONGEST = 400
"""How many characters of a line are looked at; a longer one opens or closes no fence."""

_OPENING = re.compile(r"[ \t]*(?P<mark>`{3,}(?=[^`]*\Z)|~{3,})[ \t]*(?P<word>[^ \t]*)")
_CLOSING = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})[ \t]*")


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
        self.place = Place()
        self.at_start = True
        self.fence: Fence | None = None
        self._line = ""

    def may_be_mark(self, text: str) -> bool:
        """Whether the line that goes on with ``text`` may open or close a fence."""
        return (self._line + text).lstrip(" \t")[:1] in ("", "`", "~")

    def extend(self, text: str) -> None:
        """More text went by."""
        if not text:
            return
        position = 0
        for ending in NEWLINE.finditer(text):
            self._add(text[position : ending.start()])
            self._end_line()
            position = ending.end()
        self._add(text[position:])
        self._moved(text)

    def skip(self, source: str) -> None:
        """A call was there: what it holds are no lines of the text."""
        self._line = "x"  # what comes after it on its line begins none
        self._moved(source)

    def _moved(self, text: str) -> None:
        self.place.advance(text)
        self.at_start = text[-1] in "\r\n"

    def _add(self, text: str) -> None:
        self._line = (self._line + text[: LONGEST + 1])[: LONGEST + 1]

    def _end_line(self) -> None:
        line, self._line = self._line, ""
        if len(line) > LONGEST:
            return
        if self.fence is None:
            opening = _OPENING.match(line)
            self.fence = Fence(opening["mark"], opening["word"].lower()) if opening else None
        elif (closing := _CLOSING.fullmatch(line)) and self.fence.is_closed_by(closing["mark"]):
            self.fence = None
