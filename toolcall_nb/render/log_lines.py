"""The output that a tool printed, in groups of lines: the newest are shown, earlier ones folded, older ones counted.

A group never changes once the next one has begun. So a live view sends a line once when it is new, and once more when
it moves into the fold. It makes no difference how the text was cut into pieces.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from toolcall_nb.core.append_only import ConsoleText
from toolcall_nb.core.escaping import without_ansi
from toolcall_nb.render.value_lines import Entry, format_hidden

_LINES = 40  # of a group
_CHARACTERS = 4_000  # of a group; its last line may make it longer
_SHOWN = 2  # groups, beside the one that grows
_KEPT = 200_000  # characters, about
_LINE = 4_000  # characters of one line


class _Group(NamedTuple):
    """Some lines as one entry, each with its end; ``number`` counts from the first group that there was."""

    number: int
    entry: Entry
    lines: int
    length: int


class LogLines:
    """The lines of a log that grows. `add` takes printed text, in any pieces."""

    def __init__(self, text: str = "") -> None:
        self._closed: deque[_Group] = deque()
        self.number = 0
        """The number of the group that grows. The fold changes only together with it."""
        self._lines: list[str] = []  # of that group, with their ends
        self._length = 0
        self._rest = ""  # the line that has not ended
        self._kept = 0  # characters of the closed groups
        self.lost = 0
        """The number of lines that are not kept, because there are too many after them."""
        if text:
            self.add(text)

    def add(self, text: str) -> None:
        """Adds printed text."""
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

    def _open(self, last_line: str) -> _Group:
        text = "".join(self._lines) + _drawn(last_line.rstrip("\r"))
        return _Group(self.number, Entry([("", text)]), len(self._lines), len(text))

    def parted(self) -> tuple[list[_Group], list[_Group]]:
        """Returns the groups that are folded and those that are shown; none if nothing visible was printed."""
        if not (self._rest or self._lines or self._closed):
            return [], []
        last = self._open(self._rest)
        closed = list(self._closed)
        return closed[:-_SHOWN], [*closed[-_SHOWN:], *([last] if last.length else [])]


def _drawn(line: str) -> str:
    text = without_ansi(line)
    return text if len(text) <= _LINE else f"{text[:_LINE]} {format_hidden(len(text) - _LINE, 'characters')}"
