"""The first look at what a model wrote: its characters.

Text may be cut inside a surrogate pair, hold half a pair, or hold NUL. Pairs are joined, a half becomes U+FFFD, NUL
stays (faces show U+FFFD for it). Each kind of trouble is reported once, where it is first met: the report is bounded.
"""

from __future__ import annotations

import re

from toolcall_nb.core.events import Diagnostic
from toolcall_nb.core.text import join_surrogates, well_formed

__all__ = ["CharacterReader", "TextPosition"]

_TROUBLE = re.compile("[\0\ud800-\udfff]")
_MOST_BEHIND = 1 << 16
_NUL = ("a NUL character", "It was kept; what is shown for it is U+FFFD.")
_HALF = ("a lone surrogate, which is no character", "It was replaced by U+FFFD.")


class TextPosition:
    """Where in a text one is: line and column, from 1. Lines end with LF, CRLF or CR, cut anywhere.

    Few ask, and most of the text goes by in small pieces: lines are counted many at once, or never.
    """

    def __init__(self) -> None:
        self._line = 1
        self._column = 1
        self._after_return = False
        self._behind: list[str] = []  # what was moved over and is not counted yet
        self._size_behind = 0

    @property
    def line(self) -> int:
        """The line that one is in."""
        self._count()
        return self._line

    @property
    def column(self) -> int:
        """How far into the line one is."""
        self._count()
        return self._column

    def advance(self, text: str) -> None:
        """Move over ``text``."""
        self._behind.append(text)
        self._size_behind += len(text)
        if self._size_behind > _MOST_BEHIND:
            self._count()

    def _count(self) -> None:
        text = "".join(self._behind)
        self._behind, self._size_behind = [], 0
        if not text:
            return
        crossed = text[1:] if self._after_return and text[0] == "\n" else text
        self._after_return = text[-1] == "\r"
        self._line += crossed.count("\n") + crossed.count("\r") - crossed.count("\r\n")
        end = max(crossed.rfind("\n"), crossed.rfind("\r")) + 1
        self._column = len(crossed) - end + (1 if end else self._column)


class CharacterReader:
    """Well-formed text from pieces, cut anywhere.

    ``troubles`` is what was wrong so far; the places count in the whole text.
    """

    def __init__(self) -> None:
        self.troubles: list[Diagnostic] = []
        self._half = ""
        self._place = TextPosition()
        self._reported: set[tuple[str, str]] = set()

    @property
    def held(self) -> int:
        """How many characters are withheld: 1 after the first half of a pair, else 0."""
        return len(self._half)

    def feed(self, text: str) -> str:
        """The text that is certain now."""
        if not self._half and ((text.isascii() and "\0" not in text) or not _TROUBLE.search(text)):
            self._place.advance(text)
            return text
        text = self._half + text
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        return self._checked(text[: len(text) - len(self._half)])

    def close(self) -> str:
        """What is left: a half that never met its other."""
        half, self._half = self._half, ""
        return self._checked(half)

    def _checked(self, text: str) -> str:
        text = join_surrogates(text)
        position = 0
        for trouble in _TROUBLE.finditer(text):
            what = _NUL if trouble[0] == "\0" else _HALF
            if what in self._reported:
                continue
            self._place.advance(text[position : trouble.start()])
            position = trouble.start()
            self._reported.add(what)
            self.troubles.append(Diagnostic(*what, self._place.line, self._place.column))
        self._place.advance(text[position:])
        return well_formed(text)
