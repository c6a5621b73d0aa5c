"""Keeps the beginning and the end of an output of any length in bounded memory: `HeadAndTail`."""

from __future__ import annotations


class HeadAndTail:
    """Keeps the first and the last bytes of what it is fed, ``limit`` in all, and counts the rest."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def feed(self, data: bytes) -> None:
        """Takes the next bytes."""
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._half:  # not at each piece, which would be slow
            self._cut()

    @property
    def text(self) -> str:
        """The kept bytes as UTF-8 text, with the number of bytes left out between the two ends."""
        self._cut()
        if not self._left_out:
            return _decoded(self._head + self._tail)
        end = _whole_characters(self._head)
        start = _first_character(self._tail)
        left_out = self._left_out + len(self._head) - end + start
        return f"{_decoded(self._head[:end])}\n… {left_out:,} bytes left out …\n{_decoded(self._tail[start:])}"

    def _cut(self) -> None:
        over = max(0, len(self._tail) - self._half)
        self._left_out += over
        del self._tail[:over]


def _decoded(data: bytearray) -> str:
    return data.decode("utf-8", "replace")


def _first_character(data: bytearray) -> int:
    """Returns the index of the first whole character: UTF-8 continues characters with bytes from 0x80 to 0xBF."""
    return next((i for i in range(min(4, len(data))) if data[i] & 0xC0 != 0x80), 0)


def _whole_characters(data: bytearray) -> int:
    """Returns the index of the last character if it was cut, else the length."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) if length <= back else len(data) - back
    return len(data)
