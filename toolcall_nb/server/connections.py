"""Bounds on connections: uvicorn's HTTP protocol waits without end for clients that neither ask nor read."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from typing import Any

from toolcall_nb.server.settings import Limits

__all__ = ["bounded"]

_NETWORK_BITS = 64
"""Of an IPv6 address: one client has all addresses that differ only in the rest."""


def bounded(base: type[Any], limits: Limits) -> type[Any]:
    """Returns a subclass of uvicorn's HTTP protocol ``base`` that closes connections.

    - One on which no request becomes whole is closed within ``body_seconds`` to twice that: uvicorn bounds the time
      between requests, and neither that before the first one nor that of a head which comes piece by piece.
    - One that is to be closed, and whose client does not take what is still to be sent, is torn down
      ``closing_seconds`` later.
    - Where there are more than ``connections``, room is made: of the client (an IPv4 address or an IPv6 /64 network)
      that has the most without a whole request, the oldest of these is torn down. So one client cannot take the
      places of all.
    """
    idle, closing = limits.body_seconds, limits.closing_seconds

    class Bounded(base):  # type: ignore[misc]  # the class is imported late
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._answered: object = self  # no cycle of a request: the first look lets the connection live
            self._is_closing = False
            self._next_look = self.loop.call_later(min(idle, closing), self._look)
            self._made = self._looked = self.loop.time()
            self._network = _network(self.client)
            self._make_room()

        def connection_lost(self, exc: Exception | None) -> None:
            self._next_look.cancel()
            super().connection_lost(exc)

        def _make_room(self) -> None:
            if len(self.connections) <= limits.connections:
                return
            waiting = [each for each in self.connections if each is not self and each._is_incomplete()]
            if waiting:
                count = Counter(each._network for each in waiting)
                oldest = min(waiting, key=lambda each: (-count[each._network], each._made))
                oldest.transport.abort()
                self.connections.discard(oldest)  # at once: connection_lost comes only after what waits in the loop

        def _is_incomplete(self) -> bool:
            """Whether a request is still to come, or its body."""
            return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

        def _look(self) -> None:
            if self.transport.is_closing() and self._is_closing:
                self.transport.abort()
                return
            self._is_closing = self.transport.is_closing()
            if self.loop.time() - self._looked >= idle:
                self._look_for_requests()
            self._next_look = self.loop.call_later(min(idle, closing), self._look)

        def _look_for_requests(self) -> None:
            """Closes the connection where nothing is answered, and nothing was asked since the last look."""
            self._looked = self.loop.time()
            is_idle = self.cycle is None or self.cycle.response_complete
            if is_idle and self._answered is self.cycle:
                self.transport.close()
            self._answered = self.cycle if is_idle else self

    return Bounded


def _network(client: tuple[str, int] | None) -> str | None:
    """Names the client by its IPv4 address or its IPv6 network; None where the transport knows no address."""
    if client is None:
        return None
    try:
        address = ipaddress.ip_address(client[0])
    except ValueError:
        return client[0]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address.packed, _NETWORK_BITS), strict=False))
    return str(address)
