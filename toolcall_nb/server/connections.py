"""Connections that come to an end: uvicorn's, which else waits without bound for who neither asks nor reads."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["bounded"]


def bounded(base: type[Any], idle: float, closing: float) -> type[Any]:
    """uvicorn's HTTP protocol ``base``, with connections that are let go.

    One on which no request becomes whole is closed within ``idle`` to twice ``idle`` seconds: uvicorn bounds the time
    between requests, and neither that before the first one nor that of a head which comes piece by piece. One that is
    to be closed, and whose client does not take what is still to be sent, is torn down ``closing`` seconds later.
    """

    class Bounded(base):  # type: ignore[misc]  # the class is imported late
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._answered: object = self  # no cycle of a request: the first look lets the connection live
            self._is_closing = False
            self._next_look = self.loop.call_later(min(idle, closing), self._look)
            self._looked = self.loop.time()

        def connection_lost(self, exc: Exception | None) -> None:
            self._next_look.cancel()
            super().connection_lost(exc)

        def _look(self) -> None:
            if self.transport.is_closing() and self._is_closing:
                self.transport.abort()
                return
            self._is_closing = self.transport.is_closing()
            if self.loop.time() - self._looked >= idle:
                self._look_for_requests()
            self._next_look = self.loop.call_later(min(idle, closing), self._look)

        def _look_for_requests(self) -> None:
            """Nothing is answered, and nothing was asked since the last look."""
            self._looked = self.loop.time()
            is_idle = self.cycle is None or self.cycle.response_complete
            if is_idle and self._answered is self.cycle:
                self.transport.close()
            self._answered = self.cycle if is_idle else self

    return Bounded
