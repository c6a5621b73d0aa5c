"""A TCP proxy between a browser and its server, which a test can cut and restore."""

from __future__ import annotations

import copy
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from tests.browser.jupyter import Server

__all__ = ["CuttableConnection", "cuttable_connection_to"]


class CuttableConnection:
    """Forwards connections to ``port`` while ``is_whole``."""

    def __init__(self, port: int) -> None:
        self.is_whole = True
        self._port = port
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def cut(self) -> None:
        """Closes all connections and refuses new ones."""
        self.is_whole = False
        while self._open:
            _end(self._open.pop())

    def mend(self) -> None:
        """Accepts new connections again."""
        self.is_whole = True

    def run(self) -> None:
        """Accepts connections until `close`."""
        with suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                if self.is_whole:
                    self._connect(client)
                else:
                    client.close()

    def close(self) -> None:
        """Closes the proxy and all its connections."""
        _end(self._socket)
        self.cut()

    def _connect(self, client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self._port))
        self._open += [client, server]
        for one, other in ((client, server), (server, client)):
            threading.Thread(target=_pass, args=(one, other), daemon=True).start()


def _pass(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65_536):
            other.sendall(data)
    _end(other)


def _end(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()


@contextmanager
def cuttable_connection_to(server: Server) -> Iterator[tuple[CuttableConnection, Server]]:
    """Runs a proxy inside the block; yields it, and the server with the proxy's address."""
    line = CuttableConnection(urlsplit(server.base).port or 0)
    seen = copy.copy(server)
    seen.base = line.url
    thread = threading.Thread(target=line.run, daemon=True)
    thread.start()
    try:
        yield line, seen
    finally:
        line.close()
        thread.join(5)
