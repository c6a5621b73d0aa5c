"""A long list of texts in little memory: its beginning is compressed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from toolcall_nb.incremental_markdown.html_compression import compress_html, decompress_html

_TOGETHER = 256
"""The number of texts that are compressed as one pack."""
_SEPARATOR = "\0"
_NONE: list[str] = []  # shared, and never filled: a transcript has thousands of these lists


class CompressedTexts(Sequence[str]):
    """A list of texts without NUL. `pack` compresses its beginning; reading and replacing still work.

    One pack at a time stays open, so that reading the texts in order opens each pack once.
    """

    __slots__ = ("_is_changed", "_loose", "_number", "_open", "_packed", "_packs")

    def __init__(self) -> None:
        self._packs: list[bytes] = []
        self._packed = 0  # how many texts are in packs
        self._loose: list[str] = []  # those behind the packs
        self._open = _NONE
        self._number: int | None = None  # of the pack that is open
        self._is_changed = False

    def __len__(self) -> int:
        return self._packed + len(self._loose)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = range(self._packed + len(self._loose))[index]
        if number >= self._packed:
            return self._loose[number - self._packed]
        return self._opened(number)[number % _TOGETHER]

    def replace(self, number: int, text: str) -> str:
        """Puts ``text`` in the place of the one with that number, and returns the former."""
        texts, at = self._loose, number - self._packed
        if at < 0:
            texts, at = self._opened(number), number % _TOGETHER
            self._is_changed = True
        former, texts[at] = texts[at], text
        return former

    def __iter__(self) -> Iterator[str]:
        for number in range(0, self._packed, _TOGETHER):
            yield from self._opened(number)
        yield from self._loose

    def append(self, text: str) -> None:
        """Adds a text at the end."""
        self._loose.append(text)

    def truncate(self, length: int) -> None:
        """Removes texts from the end. None of them is compressed."""
        del self._loose[length - self._packed :]

    def pack(self, before: int) -> None:
        """Compresses the texts before number ``before``, as far as they fill packs."""
        while before - self._packed >= _TOGETHER:
            self._pack(_TOGETHER)

    def pack_all(self) -> None:
        """Compresses all texts; none is added from now on."""
        self.pack(len(self))
        if self._loose:
            self._pack(len(self._loose))
        self._close()

    def _pack(self, count: int) -> None:
        self._packs.append(_packed(self._loose[:count]))
        del self._loose[:count]
        self._packed += count

    def _opened(self, number: int) -> list[str]:
        pack_number = number // _TOGETHER
        if pack_number != self._number:
            self._close()
            self._open = decompress_html(self._packs[pack_number]).decode().split(_SEPARATOR)
            self._number = pack_number
        return self._open

    def _close(self) -> None:
        if self._number is not None and self._is_changed:
            self._packs[self._number] = _packed(self._open)
        self._open, self._number, self._is_changed = _NONE, None, False


def _packed(texts: Sequence[str]) -> bytes:
    return compress_html(_SEPARATOR.join(texts).encode())
