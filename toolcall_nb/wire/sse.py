"""Server-sent events: `SseDecoder` reads them and `encode_sse` writes them (WHATWG HTML, section 9.2.6).

The bytes may be cut anywhere: inside a character, between CR and LF, within the byte order mark. Time and memory are
linear in the bytes, and the memory for a line or an event that never ends is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO

from msgspec import Struct

from toolcall_nb.errors import WireError

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""The default limit for one line, and for the data of one event."""

_BOM = b"\xef\xbb\xbf"
_BREAK = re.compile(rb"\r\n|\n|\r")
_DIGITS = re.compile(r"[0-9]+\Z")
_MOST_DIGITS = 15
_LINE_END = re.compile(r"\r\n|\n|\r")


class ServerSentEvent(Struct, frozen=True):
    """One event: its type (``message`` by default), its data, and the last id that the stream has given."""

    event: str
    data: str
    id: str = ""


class SseDecoder:
    """Reads events: `feed` each piece of bytes, then `close`.

    A client that reconnects sends ``last_event_id`` as ``Last-Event-ID`` and waits ``retry`` milliseconds, if that is
    not None. ``is_whole`` is called with an event's first line of data; if it returns True, the event is returned at
    once instead of after its blank line. `feed` raises `WireError` once a line, or the data of an event, has more than
    ``limit`` bytes, and at every call after that; ``refusal`` is then its message.
    """

    def __init__(self, limit: int = MAX_EVENT_BYTES, is_whole: Callable[[str], bool] | None = None) -> None:
        self.last_event_id = ""
        self.retry: int | None = None
        self._limit = limit
        self._is_whole = is_whole
        self._held = bytearray()  # the unfinished line
        self._is_first_line = True
        self._after_cr = False
        self._event = ""
        self._data = StringIO(newline="\n")  # a StringIO, since a list of many short lines would need more memory
        self._size = 0
        self._id = ""
        self.refusal: str | None = None

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Returns the events that these bytes complete. Those before a refused line are returned before it raises."""
        if self.refusal is not None:
            raise WireError(self.refusal)
        if not data:
            return []
        if self._after_cr:
            data, self._after_cr = data.removeprefix(b"\n"), False
        events: list[ServerSentEvent] = []
        start = 0
        try:
            for line_end in _BREAK.finditer(data):
                self._hold(data[start : line_end.start()])
                start = line_end.end()
                events += self._end_line()
            self._hold(data[start:])
            self._after_cr = start == len(data) and data.endswith(b"\r")
        except WireError:
            if not events:
                raise
        return events

    def close(self) -> list[ServerSentEvent]:
        """Ends the stream. An event without its blank line is dropped, as the standard says."""
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

    def _end_line(self) -> list[ServerSentEvent]:
        """Reads the finished line. No character spans a line end, so each line is decoded by itself."""
        line, self._held = self._held, bytearray()
        if self._is_first_line:
            line, self._is_first_line = line.removeprefix(_BOM), False
        if not line:
            return self._dispatch()
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        match name:  # a line that begins with ":" is a comment
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
    """Returns one event as UTF-8 bytes; ``data`` may have several lines, whose line ends are read back as LF.

    Raises `WireError` if ``event`` or ``id`` has a line end or a NUL, since no reader would get it back.
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
