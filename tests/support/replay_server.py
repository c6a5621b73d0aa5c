"""A real HTTP server on loopback that answers with recorded replies; it runs in its own threads.

    with ReplayServer(Reply(body, cuts=(10, 20))) as server:
        ask(server.url)
        server.requests[0].json

It answers each request with the next of its replies, and repeats the last one.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from random import Random
from typing import Any

__all__ = ["ReplayServer", "Reply", "Request", "cut_at_random"]


def cut_at_random(body: bytes, seed: int, pieces: int = 40) -> tuple[int, ...]:
    """Returns positions at which to cut ``body``, the same for the same seed."""
    return tuple(sorted(Random(seed).choices(range(len(body) + 1), k=pieces)))


@dataclass(frozen=True)
class Reply:
    """A reply. ``cuts`` are the positions at which the body is split into network packets.

    After ``lost_after`` bytes of the body the connection is closed, or reset if ``reset``. After ``held_after`` bytes
    nothing more is sent until the client disconnects or the server is closed. With ``echoes``, ``{key}`` in the body is
    replaced by `Request.key`.
    """

    body: bytes | str
    status: int = 200
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)
    cuts: Sequence[int] = ()
    lost_after: int | None = None
    held_after: int | None = None
    reset: bool = False
    echoes: bool = False

    @property
    def whole(self) -> bytes:
        """The body as bytes."""
        return self.body.encode() if isinstance(self.body, str) else self.body

    def pieces(self, request: Request) -> Iterator[bytes]:
        """Yields the pieces to send, up to the point where the connection is lost or held."""
        body = self.whole.replace(b"{key}", request.key.encode()) if self.echoes else self.whole
        ends = [end for end in (self.lost_after, self.held_after) if end is not None]
        end = min([*ends, len(body)])
        edges = [0, *sorted(cut for cut in set(self.cuts) if 0 < cut < end), end]
        yield from (body[start:stop] for start, stop in pairwise(edges) if stop > start)


@dataclass(frozen=True)
class Request:
    """A request of the client."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, parsed as JSON."""
        return json.loads(self.body)

    @property
    def key(self) -> str:
        """The value of the first header that carries an API key, or ""."""
        names = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
        return next((self.headers[name] for name in names if name in self.headers), "")


class ReplayServer:
    """The server, a context manager. ``url`` has no slash at its end; ``requests`` lists the requests, in order.

    ``gone`` is set when a client disconnects in the middle of a reply.
    """

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[Request] = []
        self.gone = threading.Event()
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.replaying = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="replay-server")

    @property
    def url(self) -> str:
        """The server's address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answers(self, *replies: Reply) -> None:
        """Replaces the replies."""
        with self._lock:
            self.replies[:] = replies

    def next(self, request: Request) -> Reply:
        """Records the request and returns its reply."""
        with self._lock:
            self.requests.append(request)
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def __enter__(self) -> ReplayServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    replaying: ReplayServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores errors of clients that disconnect."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing; the tests inspect the requests."""

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        named = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, named, self.rfile.read(length))
        reply = self.server.replaying.next(request)
        self.close_connection = True
        try:
            self._answer(reply, request)
        except OSError:
            self.server.replaying.gone.set()

    do_GET = do_POST

    def _answer(self, reply: Reply, request: Request) -> None:
        self.send_response(reply.status)
        for name, value in {"content-type": reply.content_type, **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.send_header("connection", "close")
        self.end_headers()
        for piece in reply.pieces(request):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if reply.held_after is not None:
            self._wait()
        if reply.lost_after is None:
            self.wfile.write(b"0\r\n\r\n")
        elif reply.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _wait(self) -> None:
        """Waits until the client disconnects or the server closes."""
        while not self.server.replaying.closing.is_set():
            readable, _, _ = select.select([self.connection], [], [], 0.02)
            if readable and not self.connection.recv(1):
                self.server.replaying.gone.set()
                return
