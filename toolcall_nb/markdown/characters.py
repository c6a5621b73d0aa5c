"""Makes a model's text well formed as it comes, `CharacterReader`, and counts lines and columns, `TextPosition`.

A text may be cut inside a surrogate pair, contain half a pair, or contain NUL. Pairs are joined, a half becomes U+FFFD,
and NUL stays (views show U+FFFD for it). Each kind of problem is reported once, where it first occurs.
"""

from __future__ import annotations

import re

from toolcall_nb.core.events import Diagnostic
from toolcall_nb.core.text import join_surrogates, well_formed

_PROBLEM = re.compile("[\0\ud800-\udfff]")
_MAX_UNCOUNTED = 1 << 16
_NUL = ("a NUL character", "It was kept; what is shown for it is U+FFFD.")
_HALF = ("a lone surrogate, which is no character", "It was replaced by U+FFFD.")


class TextPosition:
    """A position in a text: line and column, from 1. Lines end with LF, CRLF or CR; the text may be cut anywhere.

    The position is rarely needed, and text comes in small pieces: so lines are counted in large batches, or never.
    """

    def __init__(self) -> None:
        self._line = 1
        self._column = 1
        self._after_return = False
        self._uncounted: list[str] = []  # pieces whose lines are not counted yet
        self._uncounted_size = 0

    @property
    def line(self) -> int:
        """The line."""
        self._count()
        return self._line

    @property
    def column(self) -> int:
        """The column in the line."""
        self._count()
        return self._column

    def advance(self, text: str) -> None:
        """Moves the position past ``text``."""
        self._uncounted.append(text)
        self._uncounted_size += len(text)
        if self._uncounted_size > _MAX_UNCOUNTED:
            self._count()

    def _count(self) -> None:
        text = "".join(self._uncounted)
        self._uncounted, self._uncounted_size = [], 0
        if not text:
            return
        crossed = text[1:] if self._after_return and text[0] == "\n" else text
        self._after_return = text[-1] == "\r"
        self._line += crossed.count("\n") + crossed.count("\r") - crossed.count("\r\n")
        end = max(crossed.rfind("\n"), crossed.rfind("\r")) + 1
        self._column = len(crossed) - end + (1 if end else self._column)


class CharacterReader:
    """Makes text well formed that comes in pieces, cut anywhere.

    ``diagnostics`` are the problems so far, with positions in the whole text.
    """

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._half = ""
        self._position = TextPosition()
        self._reported: set[tuple[str, str]] = set()

    @property
    def held(self) -> int:
        """The number of withheld characters: 1 after the first half of a pair, else 0."""
        return len(self._half)

    def feed(self, text: str) -> str:
        """Takes a piece and returns the text that is certain now."""
        if not self._half and ((text.isascii() and "\0" not in text) or not _PROBLEM.search(text)):
            self._position.advance(text)
            return text
        text = self._half + text
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        return self._checked(text[: len(text) - len(self._half)])

    def close(self) -> str:
        """Ends the text and returns the rest: U+FFFD for half a pair, or nothing."""
        half, self._half = self._half, ""
        return self._checked(half)

    def _checked(self, text: str) -> str:
        text = join_surrogates(text)
        end = 0  # of the text that the position has passed
        for match in _PROBLEM.finditer(text):
            problem = _NUL if match[0] == "\0" else _HALF
            if problem in self._reported:
                continue
            self._position.advance(text[end : match.start()])
            end = match.start()
            self._reported.add(problem)
            self.diagnostics.append(Diagnostic(*problem, self._position.line, self._position.column))
        self._position.advance(text[end:])
        return well_formed(text)
