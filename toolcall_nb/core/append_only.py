"""Sequences and texts that grow, as values: adding gives a new version, and every older version stays as it was.

The versions share one list, of which each knows how much is its own. So adding costs the same however long the
sequence is, and a version may be read in any thread while one thread adds to the newest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

__all__ = ["AppendOnlyList", "AppendOnlyText"]

_T = TypeVar("_T")

_SMALL = 64


class AppendOnlyList(Generic[_T]):
    """A sequence that grows at its end."""

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
        """This with one more item."""
        longer: AppendOnlyList[_T] = _new(AppendOnlyList)
        items, count = self._items, self._count
        # A list that another version has added to is left to it; so is that of the empty one, which many start from.
        longer._items = items = items if count and len(items) == count else items[:count]
        items.append(item)
        longer._count = count + 1
        return longer

    def put(self, index: int, item: _T) -> AppendOnlyList[_T]:
        """This with another item at ``index``; costs as much as a copy."""
        other = AppendOnlyList(self)
        other._items[index] = item
        return other


class AppendOnlyText:
    """A text that grows at its end. ``str()`` gives the whole.

    Many small pieces become a long one, since a string of four characters takes sixty bytes.
    """

    __slots__ = ("_count", "_long", "_short")

    def __init__(self, text: str = "") -> None:
        self._long: AppendOnlyList[str] = AppendOnlyList((text,) if text else ())
        self._short: list[str] = []  # as in `AppendOnlyList`
        self._count = 0

    def __str__(self) -> str:
        return "".join((*self._long, *self._short[: self._count]))

    def add(self, piece: str) -> AppendOnlyText:
        """This with one more piece."""
        longer = _new(AppendOnlyText)
        long, short, count = self._long, self._short, self._count
        if count == _SMALL:
            long, short, count = long.add("".join(short[:count])), [], 0
        elif not count or len(short) != count:
            short = short[:count]
        short.append(piece)
        longer._long, longer._short, longer._count = long, short, count + 1
        return longer


_new = object.__new__
