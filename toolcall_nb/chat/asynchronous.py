"""Runs a turn beside a running event loop: `stream_async` yields its events, `Chat.astream` and `Chat.asend` use it.

The turn runs in a thread of its own, so the loop stays free. The thread has the caller's context variables. Tools,
approvals and everything else work there as they do in `Chat.stream`; async tools get an event loop of their own.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import suppress
from typing import Any, TypeAlias

from msgspec import Struct

from toolcall_nb.core.events import Event
from toolcall_nb.threads.interrupts import STOP, OwnThread

EventSource: TypeAlias = Callable[[Callable[[Event], None]], Generator[Event, None, None]]
"""Returns the events of a turn. It passes what happens between two of them, in any thread, to its argument."""

_AHEAD = 64
"""Events that a turn may be ahead of its reader."""
_POLL_SECONDS = 0.1
_GRACE_SECONDS = 0.3
"""Seconds from the stop until what blocks the turn's thread is interrupted."""
_AGAIN_SECONDS = 1.0
_TRIES = 3
"""An interrupt that comes just before a blocking call does not end that call: it is sent again, a second later."""


def stream_async(source: EventSource, stop: Callable[[], None]) -> AsyncGenerator[Event, None]:
    """Yields the events of ``source``, which run in a thread, as they come.

    Raises at once what ``source`` raises when it is called, and while it is read what its events raise. If the reader
    is cancelled or stops reading, ``stop`` is called, what blocks the thread is interrupted, and its end is awaited, at
    most for a few seconds. The events that come then are not yielded.
    """
    return _read(_TurnThread(source), stop)


async def _read(turn: _TurnThread, stop: Callable[[], None]) -> AsyncGenerator[Event, None]:
    turn.start(asyncio.get_running_loop())
    try:
        while not isinstance(item := await turn.items.get(), _End):
            yield item
            turn.room.release()
        if item.error is not None:
            raise item.error
    finally:
        if turn.is_running:
            stop()
            await turn.end()


class _End(Struct):
    error: BaseException | None


class _TurnThread:
    """The thread of one turn. ``items`` are its events and an `_End`, ``room`` is what its reader leaves."""

    def __init__(self, source: EventSource) -> None:
        self.items: asyncio.Queue[Any] = asyncio.Queue()
        self.room = threading.Semaphore(_AHEAD)
        self._events = source(self._put)
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._thread: OwnThread

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        context = contextvars.copy_context()
        context.run(STOP.set, self._stop)
        self._thread = context.run(OwnThread, self._run, "turn")
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return not self._ended.is_set()

    async def end(self) -> None:
        """Waits for the end, and interrupts what blocks the thread."""
        self._stop.set()
        try:
            for seconds in (_GRACE_SECONDS, *[_AGAIN_SECONDS] * _TRIES):
                last = self._loop.time() + seconds
                while self.is_running and self._loop.time() < last:
                    await asyncio.sleep(0.005)
                if not self.is_running:
                    return
                self._thread.stop(KeyboardInterrupt)
        except asyncio.CancelledError:  # cancelled again: nobody wants to wait
            self._thread.stop(KeyboardInterrupt)
            raise

    # In the thread

    def _run(self) -> None:
        end = _End(None)
        try:
            self._play()
        except BaseException as error:
            end = _End(error)
        finally:
            self._ended.set()
            self._put(end)

    def _play(self) -> None:
        try:
            self._put_all()
        except KeyboardInterrupt:  # it came between two events: the turn itself still has to end
            with suppress(KeyboardInterrupt):
                self._put_all()
            self._events.close()
            if not self._stop.is_set():
                raise

    def _put_all(self) -> None:
        for event in self._events:
            while not self._stop.is_set() and not self.room.acquire(timeout=_POLL_SECONDS):
                pass
            self._put(event)

    def _put(self, item: Any) -> None:
        with suppress(RuntimeError):  # the loop was closed: nobody reads any more
            self._loop.call_soon_threadsafe(self.items.put_nowait, item)
