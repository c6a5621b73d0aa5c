"""Server-sent events: bytes to events and back, by the rules of the WHATWG (HTML, section 9.2.6).

The bytes may be cut anywhere: inside a character, between CR and LF, within the byte order mark. Time and memory are
linear in the bytes, and what is held of a stream that never ends a line, or an event, is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO

from msgspec import Struct

from toolcall_nb.errors import WireError

__all__ = ["LIMIT", "ServerSentEvent", "SseDecoder", "encode_sse"]

LIMIT = 16 * 1024 * 1024
"""Bytes of one line, and of the data of one event, that are taken unless told otherwise."""

_BOM = b"\xef\xbb\xbf"
_BREAK = re.compile(rb"\r\n|\n|\r")
_DIGITS = re.compile(r"[0-9]+\Z")
_MOST_DIGITS = 15
_LINE_END = re.compile(r"\r\n|\n|\r")


class ServerSentEvent(Struct, frozen=True):
    """One event: its type (``message`` where none was named), its data, and the last id that the stream has named."""

    event: str
    data: str
    id: str = ""


class SseDecoder:
    """Bytes in, events out: `feed` each piece, then `close`.

    ``last_event_id`` is what a client that comes back sends as ``Last-Event-ID``, and ``retry`` the milliseconds that
    it should wait, or None. ``is_whole`` is asked of an event's first line of data: where it says yes, the event is
    given at once, and does not wait for the blank line. `feed` raises `WireError` once a line, or the data of an
    event, has more than ``limit`` bytes, and at every call after that; ``refusal`` is then its message.
    """

    def __init__(self, limit: int = LIMIT, is_whole: Callable[[str], bool] | None = None) -> None:
        self.last_event_id = ""
        self.retry: int | None = None
        self._limit = limit
        self._is_whole = is_whole
        self._held = bytearray()  # the line that has not ended
        self._is_first_line = True
        self._after_cr = False
        self._event = ""
        self._data = StringIO(newline="\n")  # its lines with their ends: many short ones take no more than a long one
        self._size = 0
        self._id = ""
        self.refusal: str | None = None

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """The events that these bytes complete; those before a line that is refused come first, and then the error."""
        if self.refusal is not None:
            raise WireError(self.refusal)
        if self._after_cr and data:
            data, self._after_cr = data.removeprefix(b"\n"), False
        found: list[ServerSentEvent] = []
        try:
            if data:
                self._read(data, found)
        except WireError:
            if not found:
                raise
        return found

    def _read(self, data: bytes, found: list[ServerSentEvent]) -> None:
        start = 0
        for line_end in _BREAK.finditer(data):
            self._hold(data[start : line_end.start()])
            found += self._line(self._take())
            start = line_end.end()
        self._hold(data[start:])
        self._after_cr = start == len(data) and data.endswith(b"\r")

    def close(self) -> list[ServerSentEvent]:
        """The stream is over. An event that no blank line has ended is none, as the rules say."""
        self._forget()
        return []

    def _hold(self, piece: bytes) -> None:
        if len(self._held) + len(piece) > self._limit:
            self._refuse("line")
        self._held += piece

    def _forget(self) -> None:
        self._held, self._data, self._size = bytearray(), StringIO(), 0

    def _refuse(self, what: str) -> None:
        self._forget()
        self.refusal = (
            f"A {what} of the event stream has more than {self._limit:,} bytes. "
            "Check that the address gives an event stream; the rest of it is not read."
        )
        raise WireError(self.refusal)

    def _take(self) -> str:
        """The line that has ended. A character never reaches over a line's end, so each line is decoded by itself."""
        line, self._held = self._held, bytearray()
        if self._is_first_line:
            line, self._is_first_line = line.removeprefix(_BOM), False
        return line.decode("utf-8", "replace")

    def _line(self, line: str) -> list[ServerSentEvent]:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        return self._field(name, value.removeprefix(" ")) if name else []  # a line that begins with ":" is a comment

    def _field(self, name: str, value: str) -> list[ServerSentEvent]:
        match name:
            case "data":
                return self._more(value)
            case "event":
                self._event = value
            case "id" if "\0" not in value:
                self._id = value
            case "retry" if _DIGITS.match(value):
                self.retry = int(value[:_MOST_DIGITS])
        return []

    def _more(self, value: str) -> list[ServerSentEvent]:
        is_first = not self._size
        self._size += len(value) + 1
        if self._size > self._limit:
            self._refuse("single event")
        self._data.write(f"{value}\n")
        is_whole = is_first and self._is_whole is not None and self._is_whole(value)
        return self._dispatch() if is_whole else []

    def _dispatch(self) -> list[ServerSentEvent]:
        self.last_event_id = self._id
        event, data, has_data = self._event, self._data, self._size
        self._event = ""
        if not has_data:
            return []
        self._data, self._size = StringIO(), 0
        return [ServerSentEvent(event or "message", data.getvalue()[:-1], self._id)]


def encode_sse(data: str, event: str | None = None, id: str | None = None) -> bytes:
    """One event as bytes, in UTF-8; ``data`` may have several lines, and its line ends are read back as LF.

    ``event`` and ``id`` are one line each and ``id`` has no NUL, else `WireError`: no reader would get them back.
    """
    lines = []
    for name, value in (("id", id), ("event", event)):
        if value is None:
            continue
        if _LINE_END.search(value) or "\0" in value:
            raise WireError(f"The {name} of a server-sent event is one line, but this is {value!r:.100}.")
        lines.append(f"{name}: {value}")
    lines += [f"data: {line}" for line in _LINE_END.split(data)]
    return ("\n".join(lines) + "\n\n").encode("utf-8", "replace")
