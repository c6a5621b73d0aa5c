"""Limits connections (`limited_protocol`): uvicorn itself waits for ever for clients that neither ask nor read."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from typing import Any

from toolcall_nb.server.settings import Limits

_NETWORK_BITS = 64
"""The bits of an IPv6 address that tell clients apart: one client has all addresses that differ only in the rest."""


def limited_protocol(base: type[Any], limits: Limits) -> type[Any]:
    """Returns a subclass of uvicorn's HTTP protocol ``base`` that closes connections.

    - A connection on which no request becomes whole is closed within ``body_seconds`` to twice that. uvicorn limits
      only the time between requests, not the time before the first one or of a head that comes in pieces.
    - A connection that is being closed, and whose client does not read the rest, is aborted ``closing_seconds`` later.
    - If there are more than ``connections``, one is aborted: the oldest without a whole request, of the client (an IPv4
      address or an IPv6 /64 network) that has the most of these. So one client cannot take the places of all.
    """
    idle, closing = limits.body_seconds, limits.closing_seconds

    class LimitedProtocol(base):  # type: ignore[misc]  # the class is imported late
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._answered: object = self  # not a request cycle, so that the first check lets the connection live
            self._is_closing = False
            self._next_check = self.loop.call_later(min(idle, closing), self._check)
            self._made = self._checked = self.loop.time()
            self._network = _network(self.client)
            self._make_room()

        def connection_lost(self, exc: Exception | None) -> None:
            self._next_check.cancel()
            super().connection_lost(exc)

        def _make_room(self) -> None:
            if len(self.connections) <= limits.connections:
                return
            waiting = [each for each in self.connections if each is not self and each._is_incomplete()]
            if waiting:
                count = Counter(each._network for each in waiting)
                oldest = min(waiting, key=lambda each: (-count[each._network], each._made))
                oldest.transport.abort()
                self.connections.discard(oldest)  # now, since connection_lost is called only later

        def _is_incomplete(self) -> bool:
            """Whether a request or its body is still to come."""
            return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

        def _check(self) -> None:
            if self.transport.is_closing() and self._is_closing:
                self.transport.abort()
                return
            self._is_closing = self.transport.is_closing()
            if self.loop.time() - self._checked >= idle:
                self._close_if_idle()
            self._next_check = self.loop.call_later(min(idle, closing), self._check)

        def _close_if_idle(self) -> None:
            """Closes the connection if no request is being answered, and none came since the last check."""
            self._checked = self.loop.time()
            is_idle = self.cycle is None or self.cycle.response_complete
            if is_idle and self._answered is self.cycle:
                self.transport.close()
            self._answered = self.cycle if is_idle else self

    return LimitedProtocol


def _network(client: tuple[str, int] | None) -> str | None:
    """Returns the client's IPv4 address or IPv6 network; None if the transport knows no address."""
    if client is None:
        return None
    try:
        address = ipaddress.ip_address(client[0])
    except ValueError:
        return client[0]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address.packed, _NETWORK_BITS), strict=False))
    return str(address)
