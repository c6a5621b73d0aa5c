"""Turns printed text into a log: `LogText` removes escape sequences and overwritten lines, and bounds the size.

`PrintedText` collects the text of several threads for it.
"""

from __future__ import annotations

import re
import threading

MAX_LOG = 1_000_000
"""Characters of one tool's log; what comes after them is only counted."""

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links, and other strings
    r"|[ -/]+[0-~]|[0-OQ-WYZ\\`-~])"
)
_CUT_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{0,4000}\x1b?|[ -/]*)?\Z")
_LOWER_BAR = re.compile(r"(?<!\n)\n++\r?([^\n\r\x1b]*+)(?:\x1b\[A)++")
"""A progress bar below another: line feeds, the bar, and as many cursor movements up."""


class PrintedText:
    """Printed text that waits for its report. It is written in any thread, and taken in one at a time."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._pieces: list[str] = []
        self._length = 0
        self._log_text = LogText()

    def write(self, text: str) -> bool:
        """Adds text; returns whether so much waits that it should be taken now."""
        with self._lock:
            self._pieces.append(text)
            self._length += len(text)
            return self._length > MAX_LOG

    def take(self) -> str:
        """Returns the log's next piece."""
        with self._lock:
            text = "".join(self._pieces)
            self._pieces.clear()
            self._length = 0
        return self._log_text.feed(text) if text else ""

    def close(self) -> str:
        """Returns the end of the log."""
        return self._log_text.close()


class LogText:
    """Feed it text as it was printed, in any cuts; it returns the text for the log.

    Of a line that was overwritten after a carriage return, the last state is kept.
    """

    def __init__(self) -> None:
        self._cut = ""  # an escape sequence that is not complete
        self._size = 0  # of the complete lines
        self._line = 0  # of the last one
        self._left_out = 0

    def feed(self, text: str) -> str:
        """Returns the log's next piece."""
        text = self._cut + text
        unfinished = _CUT_ESCAPE.search(text, max(0, len(text) - 5000)) if "\x1b" in text else None
        self._cut = unfinished[0] if unfinished else ""
        text = text[: len(text) - len(self._cut)]
        if "\x1b" in text:
            text = _ESCAPES.sub("", _LOWER_BAR.sub(r"\r\1", text)).replace("\x1b", "")
        if "\r" in text:
            text = "\n".join(map(_last_state, text.split("\n")))
        return self._bounded(text)

    def close(self) -> str:
        """Returns the end of the log: how much was left out."""
        if not self._left_out:
            return ""
        end = "\n" if self._line else ""
        return f"{end}… {self._left_out:,} more characters were printed.\n"

    def _bounded(self, text: str) -> str:
        if self._left_out:
            self._left_out += len(text)
            return ""
        is_overwriting = text.startswith("\r") and not text.startswith("\r\n")  # takes the room of the line it replaces
        room = MAX_LOG - self._size - (0 if is_overwriting else self._line)
        self._left_out = max(0, len(text) - room)
        text = text[:room]
        lines, end, last = text.rpartition("\n")
        if end:
            self._size += self._line + len(lines) + 1
            self._line = 0
        self._line = len(last) if "\r" in last else self._line + len(last)
        return text


def _last_state(line: str) -> str:
    """Returns what stands after a line's last carriage return, with that; those at its end stay."""
    body = line.rstrip("\r")
    _, carriage_return, last = body.rpartition("\r")
    return carriage_return + last + line[len(body) :]
