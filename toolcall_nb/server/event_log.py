"""The numbered events of a turn, for any number of readers at their own pace: `EventLog` and `LogReader`.

A reader is only a position, so one that never reads costs nothing beyond its socket's buffer. The turn waits while it
is too far ahead of its fastest reader.
"""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from msgspec.structs import astuple

from toolcall_nb.core.events import MISSING, Event
from toolcall_nb.core.json_text import json_text

_OVERHEAD = 100
"""Approximate bytes of an event beside its text."""
_POLL = 0.2


def event_size(event: Event) -> int:
    """Returns about how many bytes the event takes, here and on a wire."""
    text = getattr(event, "delta", None)
    if isinstance(text, str):  # most are deltas
        return _OVERHEAD + len(text)
    size = _OVERHEAD
    for value in astuple(event):
        if isinstance(value, str):
            size += len(value)
        elif value and value is not MISSING and not isinstance(value, bool | float):
            size += len(json_text(value))
    return size


class EventLog:
    """Events in their order. One thread at a time may call `append`.

    ``size`` is the size of all events in bytes. ``readers`` are the current ones. The newest event may be ``ahead``
    bytes ahead of the fastest of them, or of the position at which the last one left.
    """

    def __init__(self, ahead: int) -> None:
        self.events: list[Event] = []
        self.size = 0
        self.is_closed = False
        self._ahead = ahead
        self._ends: list[int] = [0]  # the size before each event
        self.read_count = 0
        """The number of events that the fastest reader has taken."""
        self._is_free = False
        self.readers: set[LogReader] = set()
        self._room = threading.Condition()

    def __len__(self) -> int:
        return len(self.events)

    def append(self, event: Event) -> bool:
        """Adds an event and wakes the readers. Returns whether the turn may go on without `wait_for_room`."""
        self.size += event_size(event)
        self.events.append(event)
        self._ends.append(self.size)
        if self.readers:
            self.wake_readers()
        return self.size - self._ends[self.read_count] <= self._ahead

    def wait_for_room(self) -> None:
        """Waits until a reader is close enough to the newest event, or until `free` is called."""
        with self._room:
            while not self._is_free and self.size - self._ends[self.read_count] > self._ahead:
                self._room.wait(_POLL)

    def wait_until_read(self, seconds: float) -> None:
        """Waits until a reader has all events, if there is a reader, and at most so long."""
        with self._room:
            if self.readers and not self._is_free and self.read_count < len(self.events):
                self._room.wait(seconds)

    def free(self) -> None:
        """Lets the turn run ahead of all readers, since it is to end."""
        with self._room:
            self._is_free = True
            self._room.notify_all()

    def close(self) -> None:
        """Declares that no event follows, and wakes the readers."""
        self.is_closed = True
        self.wake_readers()

    def wake_readers(self) -> None:
        """Lets all readers look again."""
        for reader in tuple(self.readers):
            if not reader.has_news:
                reader.wake()

    def take(self, position: int, most: int) -> list[Event]:
        """Returns events from ``position`` on: at most ``most`` bytes, but at least one event if there is one."""
        last = bisect_right(self._ends, self._ends[position] + most, position + 1) - 1
        end = min(max(last, position + 1), len(self.events))
        if end > self.read_count:
            self.advance(end)
        return self.events[position:end]

    def advance(self, count: int) -> None:
        """Notes that a reader has taken ``count`` events."""
        with self._room:
            self.read_count = max(self.read_count, min(count, len(self.events)))
            self._room.notify_all()


class LogReader:
    """Reads a log from ``position`` on, as a context manager.

    `wake` may be called in any thread, everything else only in the event loop that it was made in. ``has_news`` is
    whether something has changed since it was set to False: do that before each look. ``has_left`` is whether its
    client is gone. ``timer`` is free between two waits.
    """

    def __init__(self, log: EventLog, position: int = 0) -> None:
        self._log = log
        self.position = position
        self._loop = asyncio.get_running_loop()
        self.has_news = True
        self.has_left = False
        self.timer = StreamTimer(self._loop)
        self._bell = asyncio.Event()
        self._is_asleep = self._is_late = False

    def __enter__(self) -> Self:
        self._log.readers.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._log.readers.discard(self)
        self.timer.close()

    def wake(self) -> None:
        """Lets the reader look again. One that is not asleep does so by itself, and is not disturbed."""
        self.has_news = True
        if self._is_asleep:
            self._is_asleep = False
            with suppress(RuntimeError):  # the loop is closed, and the reader with it
                self._loop.call_soon_threadsafe(self._bell.set)

    async def wait(self, seconds: float) -> bool:
        """Waits for news, at most so long; returns False if that was too long."""
        self._is_asleep, self._is_late = True, False  # first: news that come now wake it
        if self.has_news:
            await asyncio.sleep(0)  # others have their turn
        else:
            self.timer.start(seconds, self._ring)
            await self._bell.wait()
        self._is_asleep = False
        self._bell.clear()
        return not self._is_late

    def _ring(self) -> None:
        self._is_late = True
        self._bell.set()

    def leave(self) -> None:
        """Ends the reading; a wait ends too."""
        self.has_left = True
        self._bell.set()

    def take(self, most: int) -> list[Event]:
        """Returns the next events: at most ``most`` bytes, but at least one event if there is one."""
        events = self._log.take(self.position, most)
        self.position += len(events)
        return events

    @property
    def is_at_end(self) -> bool:
        """Whether it has taken all events so far."""
        return self.position >= len(self._log)


class StreamTimer:
    """Calls the ``ring`` of the last `start` once its seconds are over, unless `stop` was called since.

    One timer of the event loop serves many waits: most end long before their deadline, so the timer is set anew only
    when it fires, or for a deadline before that.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ring: Callable[[], object] = lambda: None
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, seconds: float, ring: Callable[[], object]) -> None:
        """Sets the deadline, in place of an earlier one."""
        self._due, self._ring = self._loop.time() + seconds, ring
        if self._timer is not None and self._due < self._timer.when():
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._due, self._fire)

    def stop(self) -> None:
        """Removes the deadline. The timer may stay for the next one."""
        self._due = None

    def close(self) -> None:
        """Ends the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _fire(self) -> None:
        self._timer = None
        if self._due is None:
            return
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._fire)
        else:
            self._due = None
            self._ring()
