"""The output that a tool printed, as text that reads like the terminal it was meant for, as far as lines go."""

from __future__ import annotations

from msgspec import Struct, field

from toolcall_nb.core.append_only import AppendOnlyText

__all__ = ["ConsoleText"]


class ConsoleText(Struct, frozen=True):
    """Text that comes in pieces, cut anywhere; a carriage return begins its line anew, as progress bars do.

    Of each line what stands after its last carriage return is kept. At the very end of the text a carriage return
    stays, since what follows decides: a line end makes it part of that, anything else replaces the line. So it does
    not matter how the text is cut, nor whether it has been through here before.

    ``lines`` are the lines that have ended, with their ends; ``rest`` is the one that has not.
    """

    lines: AppendOnlyText = field(default_factory=AppendOnlyText)
    rest: str = ""

    def __str__(self) -> str:
        return f"{self.lines}{self.rest}"

    def add(self, text: str) -> ConsoleText:
        """This with more text after it."""
        lines, rest = self.lines, self.rest
        whole, end, last = text.rpartition("\n")
        if end:
            first, *others = whole.split("\n")
            lines = lines.add("".join(f"{_shown(line)}\n" for line in (rest + first, *others)))
            rest = ""
        rest += last
        if "\r" in rest:
            rest = _shown(rest) + ("\r" if rest.endswith("\r") else "")
        return ConsoleText(lines, rest)


def _shown(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]
