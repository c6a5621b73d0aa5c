"""The events of a turn, numbered and kept, for any number of readers that each go at their own pace.

A reader has a position and nothing else, so one that never reads costs nothing beyond what its socket holds. The
turn waits where it is too far ahead of its fastest reader.
"""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager

from toolcall_nb.core.events import Event, to_dict
from toolcall_nb.core.json_text import json_text

__all__ = ["EventLog", "Reader", "weight"]

_OVERHEAD = 100
"""Bytes of an event beside its text, about."""
_POLL = 0.2


def weight(event: Event) -> int:
    """About how many bytes the event takes, here and on a wire."""
    text = getattr(event, "delta", None)
    return _OVERHEAD + len(text if isinstance(text, str) else json_text(to_dict(event)))


class EventLog:
    """Events in their order; `append` is for one thread at a time, `reading` for an event loop's.

    ``ahead`` is how many bytes the newest event may lie behind the fastest reader, or behind where the last one
    left. ``size`` is all that was taken in, in bytes.
    """

    def __init__(self, ahead: int) -> None:
        self.events: list[Event] = []
        self.size = 0
        self.is_closed = False
        self._ahead = ahead
        self._ends: list[int] = [0]  # the size before each event
        self._read = 0  # how many the fastest reader has taken
        self._is_free = False
        self._readers: set[Reader] = set()
        self._room = threading.Condition()

    def __len__(self) -> int:
        return len(self.events)

    @property
    def readers(self) -> int:
        """How many read on."""
        return len(self._readers)

    def append(self, event: Event) -> None:
        """One more event."""
        self.size += weight(event)
        self.events.append(event)
        self._ends.append(self.size)
        self.ring()

    def wait_for_room(self) -> None:
        """Until a reader has come close enough to the newest event, or `free` was called."""
        with self._room:
            while not self._is_free and self.size - self._ends[self._read] > self._ahead:
                self._room.wait(_POLL)

    def free(self) -> None:
        """The turn is to end: it waits for no reader any more."""
        with self._room:
            self._is_free = True
            self._room.notify_all()

    def close(self) -> None:
        """There are no more events."""
        self.is_closed = True
        self.ring()

    def ring(self) -> None:
        """Something has changed: readers look again."""
        for reader in tuple(self._readers):
            reader.ring()

    @contextmanager
    def reading(self, position: int = 0) -> Iterator[Reader]:
        """A reader from ``position`` on, in the running event loop."""
        reader = Reader(self, position)
        self._readers.add(reader)
        try:
            yield reader
        finally:
            self._readers.discard(reader)

    def taken(self, position: int) -> None:
        """A reader has taken what comes before ``position``."""
        if position > self._read:
            with self._room:
                self._read = max(self._read, position)
                self._room.notify_all()

    def upto(self, position: int, most: int) -> int:
        """Where a piece from ``position`` on ends: at most ``most`` bytes, but one event at least if there is one."""
        last = bisect_right(self._ends, self._ends[position] + most, position + 1) - 1
        return min(max(last, position + 1), len(self.events))


class Reader:
    """Somebody who reads a log. `ring` may be called in any thread, all else in the loop that it was made in."""

    def __init__(self, log: EventLog, position: int) -> None:
        self._log = log
        self.position = position
        self._loop = asyncio.get_running_loop()
        self._bell = asyncio.Event()
        self._is_rung = False

    def ring(self) -> None:
        """Wake the reader, once until it has looked."""
        if not self._is_rung:
            self._is_rung = True
            try:
                self._loop.call_soon_threadsafe(self._bell.set)
            except RuntimeError:  # the loop is closed, and the reader with it
                self._is_rung = True

    async def wait(self, seconds: float) -> bool:
        """Until something has changed since this was called last; whether it has."""
        try:
            async with asyncio.timeout(seconds):
                await self._bell.wait()
        except TimeoutError:
            return False
        self._bell.clear()
        self._is_rung = False
        return True

    def take(self, most: int) -> list[Event]:
        """The next events, at least one if there is one, and else of ``most`` bytes together."""
        before, self.position = self.position, self._log.upto(self.position, most)
        events = self._log.events[before : self.position]
        self._log.taken(self.position)
        return events

    @property
    def is_at_end(self) -> bool:
        """Whether it has taken everything that there is so far."""
        return self.position >= len(self._log)
