"""What a tool printed, in groups of lines: the newest are shown, earlier ones folded, and what is older counted.

A group never changes once the next has begun, so that a live view sends a line once where it is new, and once
more when it goes into the fold. How the text was cut into pieces makes no difference.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from toolcall_nb.core.append_only import ConsoleText
from toolcall_nb.render.escaping import without_ansi
from toolcall_nb.render.yaml_like import Entry, more

__all__ = ["Group", "LogLines"]

_LINES = 40  # of a group
_CHARACTERS = 4_000  # of a group; its last line may make it longer
_SHOWN = 2  # groups, beside the one that grows
_KEPT = 200_000  # characters, about
_LINE = 4_000  # characters of one line


class Group(NamedTuple):
    """Some lines as one entry, each with its end; ``number`` counts from the first that there was."""

    number: int
    entry: Entry
    lines: int
    length: int


class LogLines:
    """The lines of a log that grows: `add` takes what was printed, in any pieces."""

    def __init__(self, text: str = "") -> None:
        self._closed: deque[Group] = deque()
        self.number = 0
        """Of the group that grows: what is folded changes only with it."""
        self._lines: list[str] = []  # of that group, with their ends
        self._length = 0
        self._rest = ""  # the line that has not ended
        self._kept = 0  # characters of the closed groups
        self.lost = 0
        """How many lines are not kept, since there are too many after them."""
        self.add(text)

    def add(self, text: str) -> None:
        """More of it."""
        whole, end, self._rest = str(ConsoleText().add(self._rest + text)).rpartition("\n")
        for line in whole.split("\n") if end else ():
            self._end_line(line)

    def _end_line(self, line: str) -> None:
        self._lines.append(f"{_drawn(line)}\n")
        self._length += len(self._lines[-1])
        if len(self._lines) < _LINES and self._length < _CHARACTERS:
            return
        self._closed.append(self._open(""))
        self._kept += self._length
        self.number, self._lines, self._length = self.number + 1, [], 0
        while self._kept > _KEPT and len(self._closed) > _SHOWN:
            oldest = self._closed.popleft()
            self._kept -= oldest.length
            self.lost += oldest.lines

    def _open(self, rest: str) -> Group:
        text = "".join(self._lines) + _drawn(rest.rstrip("\r"))
        return Group(self.number, Entry([("", text)]), len(self._lines), len(text))

    def parted(self) -> tuple[list[Group], list[Group]]:
        """What is folded, and what is shown; nothing where nothing was printed that can be seen."""
        if not (self._rest or self._lines or self._closed):
            return [], []
        last = self._open(self._rest)
        closed = list(self._closed)
        return closed[:-_SHOWN], [*closed[-_SHOWN:], *([last] if last.length else [])]


def _drawn(line: str) -> str:
    text = without_ansi(line)
    return text if len(text) <= _LINE else f"{text[:_LINE]} {more(len(text) - _LINE, 'characters')}"
