"""Lists and texts that only grow, as values: adding to one returns a new version and leaves the old one as it was.

`AppendOnlyList` and `AppendOnlyText` share their storage between versions, and each version knows how much of it is
its own. So adding costs the same however long the sequence is, and any thread may read a version while one thread adds
to the newest. `ConsoleText` is such a text for the output of a program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from msgspec import Struct, field

_T = TypeVar("_T")

_MAX_PIECES = 64
_NO_PIECES: list[str] = []  # shared, and never filled: the first piece is added to a copy


class AppendOnlyList(Generic[_T]):
    """A list that grows at its end."""

    __slots__ = ("_count", "_items")

    def __init__(self, items: Iterable[_T] = ()) -> None:
        self._items = [*items]
        self._count = len(self._items)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[_T]:
        return iter(self._items[: self._count])

    def __getitem__(self, index: int) -> _T:
        return self._items[range(self._count)[index]]

    def add(self, item: _T) -> AppendOnlyList[_T]:
        """Returns this list with one more item."""
        longer: AppendOnlyList[_T] = _new(AppendOnlyList)
        items, count = self._items, self._count
        # Another version may have added to the list already. The empty list is copied too: many start from one.
        longer._items = items = items if count and len(items) == count else items[:count]
        items.append(item)
        longer._count = count + 1
        return longer

    def put(self, index: int, item: _T) -> AppendOnlyList[_T]:
        """Returns a copy with another item at ``index``."""
        other = AppendOnlyList(self)
        other._items[index] = item
        return other


class AppendOnlyText:
    """A text that grows at its end. ``str()`` returns all of it.

    Every 64 pieces are joined into one, because a string of four characters takes sixty bytes.
    """

    __slots__ = ("_count", "_joined", "_pieces")

    def __init__(self, text: str = "") -> None:
        self._joined: AppendOnlyList[str] = AppendOnlyList((text,) if text else ())
        self._pieces = _NO_PIECES  # shared between versions, as in `AppendOnlyList`
        self._count = 0

    def __str__(self) -> str:
        joined = self._joined
        return "".join((*joined._items[: joined._count], *self._pieces[: self._count]))

    def add(self, piece: str) -> AppendOnlyText:
        """Returns this text with one more piece."""
        longer = _new(AppendOnlyText)
        joined, pieces, count = self._joined, self._pieces, self._count
        if count == _MAX_PIECES:
            joined, pieces, count = joined.add("".join(pieces[:count])), [], 0
        elif not count or len(pieces) != count:
            pieces = pieces[:count]
        pieces.append(piece)
        longer._joined, longer._pieces, longer._count = joined, pieces, count + 1
        return longer


_new = object.__new__


class ConsoleText(Struct, frozen=True):
    """The output of a program as a terminal would show its lines; it comes in pieces that are cut anywhere.

    A carriage return starts its line again, as progress bars do: of each line, only the text after its last carriage
    return is kept. A carriage return at the very end of the text is kept, because the next character decides: a line
    end makes it a part of that, anything else replaces the line. Adding a finished text again changes nothing.

    ``lines`` are the complete lines with their ends; ``open_line`` is the line that is not complete.
    """

    lines: AppendOnlyText = field(default_factory=AppendOnlyText)
    open_line: str = ""

    def __str__(self) -> str:
        return f"{self.lines}{self.open_line}"

    def add(self, text: str) -> ConsoleText:
        """Returns this text with more after it."""
        lines, open_line = self.lines, self.open_line
        whole, end, last = text.rpartition("\n")
        if end:
            first, *others = whole.split("\n")
            lines = lines.add("".join(f"{_last_rewrite(line)}\n" for line in (open_line + first, *others)))
            open_line = ""
        open_line += last
        if "\r" in open_line:
            open_line = _last_rewrite(open_line) + ("\r" if open_line.endswith("\r") else "")
        return ConsoleText(lines, open_line)


def _last_rewrite(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]
