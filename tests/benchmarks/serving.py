"""Measures the server beside a bare Starlette stream of the same words: time to the first delta, and a chat's CPU."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from tests.benchmarks.report import Row
from tests.benchmarks.scale import Scale
from toolcall_nb.core import events as ev

__all__ = ["rows"]

_ROOT = Path(__file__).resolve().parents[2]
_WORDS = [f"word{number} " for number in range(40)]
_PAUSE = 0.005
"""Seconds between two words of the paced chat: a fast model's."""
_SERVERS = ("ours", "bare")

_Times: TypeAlias = Mapping[str, tuple[float, float]]
"""By server: the median of seconds to the first delta, and the median of CPU seconds of one chat."""


_HEAD = b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


class _Speaker:
    """A model that says `_WORDS`, with ``pause`` seconds before each but the first."""

    name = "speaker"

    def __init__(self, pause: float) -> None:
        self._pause = pause

    def stream(self, messages: Sequence[Any], tools: Sequence[Any]) -> Iterator[ev.Event]:
        """Yields the events of the answer."""
        yield ev.TextStart("t")
        for number, word in enumerate(_WORDS):
            if self._pause and number:
                time.sleep(self._pause)
            yield ev.TextDelta("t", word)
        yield ev.TextEnd("t")


def rows(scale: Scale) -> Iterator[Row]:
    """Measures both servers in processes of their own, each process over one kept connection.

    The paced model waits between two words, as a provider's stream does; the other says all words at once.
    """
    turns = 1 if scale.fresh == 1 else 6
    at_once = _measured(0.0, 10, turns, scale.fresh)
    paced = _measured(_PAUSE, 3, turns, scale.fresh)
    pace = f"a word each {_PAUSE * 1e3:.0f} ms"
    yield _row("server: first delta on a kept connection, against a bare Starlette stream", 0, paced, 2, 1.3, pace)
    yield _row("server: the same, of a model that says all at once", 0, at_once, None, None)
    yield _row("server: CPU of a short chat, against the same", 1, at_once, 2.5, 1.5, f"{len(_WORDS)} words at once")
    yield _row("server: CPU of a short chat that is paced", 1, paced, 2.5, 1.5, f"{len(_WORDS)} words, {pace}")


def _row(name: str, place: int, times: _Times, must: float | None, aim: float | None, what: str = "") -> Row:
    ours, bare = (times[server][place] for server in _SERVERS)
    detail = f"{ours * 1e3:.2f} ms against {bare * 1e3:.2f} ms, medians; {what}".removesuffix("; ")
    return Row(name, ours / bare, "times", must, aim, detail)


def _measured(pause: float, chats: int, turns: int, fresh: int) -> _Times:
    """Measures the servers alternately, ``chats`` chats a turn, in ``fresh`` processes each, one after the other.

    A turn is short: when the machine is slower for some seconds, both servers have a part of that, and no connection
    is idle for the 5 s after which uvicorn closes it. It has several chats, since the CPU is read once a turn: what an
    idle server uses while the other one has its turn is not counted, and reading it costs little of a turn. A process
    may be a tenth slower than another one of the same program for as long as it lives, so several are measured.
    """
    processes = [_process_times(pause, chats, turns) for _ in range(fresh)]
    return {
        name: (median(times[name][0] for times in processes), median(times[name][1] for times in processes))
        for name in _SERVERS
    }


def _process_times(pause: float, chats: int, turns: int) -> _Times:
    """Measures one process of each server."""
    firsts: dict[str, list[float]] = {name: [] for name in _SERVERS}
    cpu: dict[str, list[float]] = {name: [] for name in _SERVERS}
    with ExitStack() as stack:
        clients = {name: stack.enter_context(_connected(name, pause)) for name in _SERVERS}
        for client in clients.values():
            client.chats(chats)  # imports and caches
        for _ in range(turns):
            for name, client in clients.items():
                before = client.cpu_seconds()
                firsts[name] += client.chats(chats)
                cpu[name].append((client.cpu_seconds() - before) / chats)
    return {name: (median(firsts[name]), median(cpu[name])) for name in _SERVERS}


class _Client:
    def __init__(self, process: subprocess.Popen[str], connection: socket.socket) -> None:
        self._process = process
        self._connection = connection
        self._count = 0

    def cpu_seconds(self) -> float:
        """Returns the CPU time that the server's process has used."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def chats(self, count: int) -> list[float]:
        """Returns the seconds to the first delta of each of ``count`` chats."""
        return [self._chat() for _ in range(count)]

    def _chat(self) -> float:
        self._count += 1
        body = json.dumps({"message": "Hello", "conversationId": f"thread-{self._count}"}).encode()
        start = time.perf_counter()
        self._connection.sendall(_HEAD % len(body) + body)
        received = b""
        while b"word0" not in received:
            received += self._read()
        first = time.perf_counter() - start
        while not received.endswith(b"0\r\n\r\n"):
            received += self._read()
        assert received.startswith(b"HTTP/1.1 200")
        assert b"word39" in received
        return first

    def _read(self) -> bytes:
        data = self._connection.recv(65_536)
        if not data:
            raise ConnectionError("The server closed the connection.")
        return data


@contextmanager
def _connected(name: str, pause: float) -> Iterator[_Client]:
    path = os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH", "")) if part)
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, name, str(pause)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        assert process.stdout is not None
        with socket.create_connection(("127.0.0.1", int(process.stdout.readline())), timeout=60) as connection:
            yield _Client(process, connection)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


# The servers' processes


def _serve(name: str, pause: float) -> None:
    """Serves until stdin ends, and prints the port, then for each line of stdin the process's CPU seconds."""
    stop = (_serve_ours if name == "ours" else _serve_bare)(pause)
    for _ in sys.stdin:
        print(time.process_time(), flush=True)
    stop()


def _serve_ours(pause: float) -> Any:
    from toolcall_nb.server.serving import Server
    from toolcall_nb.server.settings import Settings

    server = Server(Settings(models={"m": _Speaker(pause)}), port=0)
    server.start()
    print(server.port, flush=True)
    return server.stop


def _serve_bare(pause: float) -> Any:
    import asyncio
    import threading

    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    async def frames() -> AsyncIterator[str]:
        for number, word in enumerate(_WORDS):
            if pause and number:
                await asyncio.sleep(pause)
            yield f"data: {json.dumps({'type': 'chunk', 'content': word})}\n\n"
        yield f"data: {json.dumps({'type': 'end'})}\n\n"

    async def chat(request: Request) -> StreamingResponse:
        await request.json()
        return StreamingResponse(frames(), media_type="text/event-stream")

    app = Starlette(routes=[Route("/api/chat", chat, methods=["POST"])])
    config = uvicorn.Config(app, port=0, log_config=None, access_log=False, lifespan="on", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    print(server.servers[0].sockets[0].getsockname()[1], flush=True)

    def stop() -> None:
        server.should_exit = True
        thread.join()

    return stop


if __name__ == "__main__":
    _serve(sys.argv[1], float(sys.argv[2]))
