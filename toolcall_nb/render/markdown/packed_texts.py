"""A long list of texts in little memory: what lies far enough back is kept compressed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import overload

from toolcall_nb.core.packing import pack, unpack

__all__ = ["PackedTexts"]

_TOGETHER = 256
_PART = "\0"


class PackedTexts(Sequence[str]):
    """A list of texts without NUL. `pack` compresses its beginning; reading and replacing work as before.

    One pack at a time is kept open, so that going through the packed texts in order opens each pack once.
    """

    __slots__ = ("_is_changed", "_length", "_loose", "_number", "_open", "_packs")

    def __init__(self) -> None:
        self._packs: list[bytes] = []
        self._loose: list[str] = []  # what comes behind the packs
        self._length = 0  # of the packed beginning
        self._open: list[str] | None = None
        self._number: int | None = None  # of the pack that is open
        self._is_changed = False

    def __len__(self) -> int:
        return self._length + len(self._loose)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        if number >= self._length:
            return self._loose[number - self._length]
        return self._opened(number)[number % _TOGETHER]

    def __setitem__(self, number: int, text: str) -> None:
        if number >= self._length:
            self._loose[number - self._length] = text
        else:
            self._opened(number)[number % _TOGETHER] = text
            self._is_changed = True

    def __iter__(self) -> Iterator[str]:
        for number in range(0, self._length, _TOGETHER):
            yield from self._opened(number)
        yield from self._loose

    def append(self, text: str) -> None:
        """Add a text at the end."""
        self._loose.append(text)

    def truncate(self, length: int) -> None:
        """Take texts away from the end, none of them packed."""
        del self._loose[length - self._length :]

    def pack(self, before: int) -> None:
        """Compress what is before ``before``, as far as it fills packs."""
        while before - self._length >= _TOGETHER:
            self._pack(_TOGETHER)

    def pack_all(self) -> None:
        """Compress everything; from now on nothing is added."""
        self.pack(len(self))
        if self._loose:
            self._pack(len(self._loose))
        self._close()

    def _pack(self, count: int) -> None:
        self._packs.append(_packed(list(islice(self._loose, count))))
        del self._loose[:count]
        self._length += count

    def _opened(self, number: int) -> list[str]:
        pack = number // _TOGETHER
        if self._open is None or pack != self._number:
            self._close()
            self._open = _unpacked(self._packs[pack])
            self._number = pack
        return self._open

    def _close(self) -> None:
        if self._open is not None and self._number is not None and self._is_changed:
            self._packs[self._number] = _packed(self._open)
        self._open, self._number, self._is_changed = None, None, False


def _packed(texts: Sequence[str]) -> bytes:
    return pack(_PART.join(texts).encode())


def _unpacked(packed: bytes) -> list[str]:
    return unpack(packed).decode().split(_PART)
