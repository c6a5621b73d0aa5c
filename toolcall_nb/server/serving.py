"""A server that runs: uvicorn on a socket of ours, in the foreground or in a thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from toolcall_nb.errors import MissingPackageError, UsageError
from toolcall_nb.server.connections import bounded
from toolcall_nb.server.settings import Limits, Settings, is_loopback

if TYPE_CHECKING:
    import uvicorn

    from toolcall_nb.server.conversations import Threads

__all__ = ["Server"]

_GRACE = 3
"""Seconds that open connections are given at the end, after all turns were stopped."""
_START_WITHIN = 30.0
_BACKLOG = 2048
_SEND_BUFFER = 256_000
"""Bytes that the system holds of what a client does not take. By itself it takes megabytes, and a turn would be as far
ahead of a client that does not read."""


class Server:
    """A server on ``host`` and ``port``; port 0 takes a free one. It has its address once it is made.

    Raises `UsageError` where the address cannot be had, and where a server that others reach has no token;
    `MissingPackageError` without the packages of the extra ``server``.
    """

    def __init__(self, settings: Settings, host: str = "127.0.0.1", port: int = 8000) -> None:
        if not is_loopback(host) and settings.token is None:
            raise UsageError(f"A server on {host!r} is reached by others. Give it a token, or use 127.0.0.1.")
        uvicorn = _uvicorn()
        from toolcall_nb.server.app import application
        from toolcall_nb.server.conversations import Threads

        self._threads = Threads(settings)
        self._socket = _bound(host, port)
        self.host, self.port = host, int(self._socket.getsockname()[1])
        config = uvicorn.Config(
            application(settings, self._threads),
            log_config=None,
            access_log=False,
            lifespan="on",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=_GRACE,
            http=_bounded(settings.limits),
            limit_concurrency=2 * settings.limits.connections,  # a request that was torn down still counts for a moment
        )
        self._server = _stopping_first(uvicorn.Server)(config, self._threads)
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """Where the page is."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def connections(self) -> Collection[Any]:
        """Those that are open."""
        return tuple(self._server.server_state.connections)

    def run(self) -> None:
        """Serve until the process is told to end (Ctrl+C, SIGTERM)."""
        self._server.run(sockets=[self._socket])

    def start(self) -> None:
        """Serve in a thread; returns once it does."""
        self._thread = threading.Thread(target=self.run, name="toolcall_nb-http", daemon=True)
        self._thread.start()
        waited = threading.Event()
        for _ in range(int(_START_WITHIN / 0.02)):
            if self._server.started or not self._thread.is_alive():
                return
            waited.wait(0.02)

    @property
    def is_running(self) -> bool:
        """Whether it serves, in its thread."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """End the turns, close and store their transcripts, let the connections go."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
        self._threads.close()
        self._socket.close()


def _stopping_first(base: type[uvicorn.Server]) -> Any:
    """uvicorn waits for open responses before it tells the application of the end; ours end when their turns do."""

    class Stopping(base):  # type: ignore[misc, valid-type]  # the class is imported late
        def __init__(self, config: uvicorn.Config, threads: Threads) -> None:
            super().__init__(config)
            self._threads = threads

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            from starlette.concurrency import run_in_threadpool

            await run_in_threadpool(self._threads.close)
            await super().shutdown(sockets)

    return Stopping


def _bounded(limits: Limits) -> type[Any]:
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    return bounded(AutoHTTPProtocol, limits)


def _uvicorn() -> Any:
    for package in ("starlette", "uvicorn"):
        try:
            __import__(package)
        except ImportError:
            raise MissingPackageError(package, "server", "The server") from None
    import uvicorn

    return uvicorn


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)  # also of the connections
        bound.bind((host, port))
        bound.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        bound.close()
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{host}:{port} is not to be had: {why}. Choose another port; 0 takes a free one.") from None
    return bound
