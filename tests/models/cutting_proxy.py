"""An HTTP proxy on loopback that closes each connection after a given number of response bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

__all__ = ["CuttingProxy", "cutting"]


class CuttingProxy:
    """Forwards HTTP to ``port``. Each connection uses the next of ``limits``: response bytes to forward, None for all.

    Connections that don't speak HTTP are closed: another process may still connect to a former server on this port.

    ``request_lines`` has the first line of each request, ``forwarded`` the response bytes of each connection.
    """

    def __init__(self, port: int, limits: Iterable[int | None]) -> None:
        self.request_lines: list[str] = []
        self.forwarded: list[int] = []
        self._port = port
        self._limits = iter(limits)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._open: list[socket.socket] = []

    @property
    def url(self) -> str:
        """The proxy's address."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def run(self) -> None:
        """Accepts connections until `close`."""
        with suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                if not _speaks_http(client):
                    client.close()
                    continue
                thread = threading.Thread(target=self._serve, args=(client, next(self._limits, None)), daemon=True)
                self._threads.append(thread)
                thread.start()

    def close(self) -> None:
        """Closes the proxy and all its connections."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def _serve(self, client: socket.socket, limit: int | None) -> None:
        number = len(self.forwarded)
        self.forwarded.append(0)
        with client, socket.create_connection(("127.0.0.1", self._port)) as server:
            self._open += [client, server]
            up = threading.Thread(target=self._up, args=(client, server), daemon=True)
            up.start()
            with suppress(OSError):
                self._down(server, client, number, limit)
            for each in (client, server):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            up.join(5)

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        is_first = True
        with suppress(OSError):
            while data := client.recv(65_536):
                if is_first:
                    self.request_lines.append(data.partition(b"\r\n")[0].decode())
                    is_first = False
                server.sendall(data)

    def _down(self, server: socket.socket, client: socket.socket, number: int, limit: int | None) -> None:
        while data := server.recv(65_536):
            piece = data if limit is None else data[: limit - self.forwarded[number]]
            client.sendall(piece)
            self.forwarded[number] += len(piece)
            if limit is not None and self.forwarded[number] >= limit:
                return


def _speaks_http(client: socket.socket) -> bool:
    with suppress(OSError):
        return client.recv(1, socket.MSG_PEEK).isalpha()
    return False


@contextmanager
def cutting(port: int, *limits: int | None) -> Iterator[CuttingProxy]:
    """Runs a proxy inside the block."""
    proxy = CuttingProxy(port, limits)
    thread = threading.Thread(target=proxy.run, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join(5)
