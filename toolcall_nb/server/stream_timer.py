"""The timer of a stream, whose deadline is moved with each piece: `StreamTimer`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["StreamTimer"]


class StreamTimer:
    """Calls ``ring`` once the seconds of the last `start` are over, unless `stop` was called since.

    One timer of the running event loop serves many waits: most end long before their deadline, so the timer is set
    anew only when it fires.
    """

    def __init__(self, ring: Callable[[], object]) -> None:
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, seconds: float) -> None:
        """Sets the deadline, in place of an earlier one."""
        self._due = self._loop.time() + seconds
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
