"""Faults of the connection to a model: slow streams, and cuts and breaks at any byte of a stream on a wire."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from msgspec import Struct

from toolcall_nb.core.events import Event
from toolcall_nb.errors import ModelError, UsageError
from toolcall_nb.wire import decoder, encoder


class slow(Struct, frozen=True):
    """Waits for some seconds before each event. With `cut` before it, each piece of a text is an event."""

    seconds: float
    sleep: Callable[[float], None] = time.sleep

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """Returns the slow stream."""
        for event in events:
            self.sleep(self.seconds)
            yield event


class cut_bytes(Struct, frozen=True):
    """Sends the stream over a wire as bytes, in pieces of ``size`` bytes, also within characters.

    With ``at``, there is one cut only, after that many bytes.
    """

    size: int = 1
    at: int | None = None
    wire: str = "ui"

    def __post_init__(self) -> None:
        if self.size < 1 or (self.at is not None and self.at < 0):
            raise UsageError(f"A piece has at least 1 byte, and a cut a place, but got {self!r}.")

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """Returns the stream as the reader of the wire understands it."""
        reader = decoder(self.wire)
        if self.at is None:
            for data in _sent(events, self.wire):
                for start in range(0, len(data), self.size):
                    yield from reader.feed(data[start : start + self.size])
        else:
            whole = b"".join(_sent(events, self.wire))
            yield from reader.feed(whole[: self.at])
            yield from reader.feed(whole[self.at :])
        yield from reader.close()


class disconnect_at(Struct, frozen=True):
    """Sends the stream over a wire as bytes, and loses the connection after ``byte`` bytes: the stream raises.

    A stream that is shorter is not changed.
    """

    byte: int
    wire: str = "ui"
    message: str = "The connection to the model was lost."

    def apply(self, events: Iterator[Event]) -> Iterator[Event]:
        """Returns the stream up to there, which then raises `ModelError`."""
        reader, left = decoder(self.wire), self.byte
        for data in _sent(events, self.wire):
            yield from reader.feed(data[:left])
            if len(data) > left:
                raise ModelError(self.message)
            left -= len(data)
        yield from reader.close()


def _sent(events: Iterator[Event], wire: str) -> Iterator[bytes]:
    writer = encoder(wire)
    for event in events:
        yield writer.encode(event)
    yield writer.close()
