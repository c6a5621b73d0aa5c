"""The timer of a stream, whose deadline is moved with each piece and each wait: `StreamTimer`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


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
        """Takes the deadline back. The timer may stay for the next one."""
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
