"""What a tool printed, as text that reads like the terminal it was meant for, as far as lines go."""

from __future__ import annotations

__all__ = ["Printed"]


class Printed:
    """Text that comes in pieces, cut anywhere; a carriage return begins its line anew, as progress bars do.

    Of each line what stands after its last carriage return is kept. At the very end of the text a carriage return
    stays, since what follows decides: a line end makes it part of that, anything else replaces the line. So it does
    not matter how the text is cut, nor whether it has been through here before.
    """

    def __init__(self, text: str = "") -> None:
        self._lines: list[str] = []  # with their ends
        self._rest = ""
        self.add(text)

    def __str__(self) -> str:
        self._lines = ["".join(self._lines)]
        return self._lines[0] + self._rest

    def add(self, text: str) -> None:
        """More of it."""
        whole, end, rest = text.rpartition("\n")
        if end:
            first, *others = whole.split("\n")
            self._lines += [f"{_shown(line)}\n" for line in (self._rest + first, *others)]
            self._rest = ""
        self._rest += rest
        if "\r" in self._rest:
            self._rest = _shown(self._rest) + ("\r" if self._rest.endswith("\r") else "")


def _shown(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]
