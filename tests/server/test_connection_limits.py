"""Idle connections, and connections whose client reads nothing, are closed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.server.flooding import Flood
from tests.support.servers import PATIENCE, Gated, client_of, eventually, settings, words
from toolcall_nb.server.serving import Server

BODY = b'{"message":"Hi","conversationId":"t"}'
HEAD = b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 37\r\n\r\n"


@contextmanager
def served(model: object, **limits: float) -> Iterator[tuple[Server, Callable[[], socket.socket]]]:
    """A server, and what connects to it."""
    server = Server(settings(model, limits=limits), port=0)
    server.start()
    try:
        yield server, lambda: socket.create_connection((server.host, server.port), timeout=PATIENCE)
    finally:
        server.stop()


@pytest.mark.parametrize(
    "sent", [b"", b"POST /api/chat HT", HEAD[:60], b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api"]
)
def test_an_incomplete_request_is_closed_after_a_while(sent: bytes) -> None:
    with served("mock", body_seconds=0.3) as (server, connect), connect() as connection:
        connection.sendall(sent)
        while connection.recv(65536):
            pass
        with client_of(server.address) as client:
            assert client.get("/api/health").status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_small_pieces_of_a_response_are_sent_without_delay(host: str) -> None:
    server = Server(settings("mock"), host=host, port=0)
    server.start()
    try:
        with client_of(server.address) as client:
            assert client.get("/api/health").status_code == 200
            (connection,) = server.connections
            accepted = connection.transport.get_extra_info("socket")
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    finally:
        server.stop()


def test_an_endless_head_is_refused() -> None:
    with served("mock") as (_, connect), connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
        answer = b""
        try:
            for _ in range(100):
                connection.sendall(b"x" * 10_000)
            answer = connection.recv(65536)
        except (ConnectionResetError, BrokenPipeError):
            return
        assert answer.startswith(b"HTTP/1.1 400")


def test_a_long_turn_does_not_count_as_an_idle_connection() -> None:
    gate = threading.Event()
    with served(Gated([*words("One"), gate, *words("two", "u")]), body_seconds=0.1) as (_, connect):
        with connect() as connection:
            connection.sendall(HEAD + BODY)
            assert not gate.wait(1.0)
            gate.set()
            said = b""
            while b'"end"' not in said:
                piece = connection.recv(65536)
                assert piece
                said += piece
        assert b"two" in said


def test_a_connection_whose_client_never_reads_is_aborted() -> None:
    limits = {"ahead_bytes": 200_000, "stalled_seconds": 0.3, "closing_seconds": 0.2, "grace_seconds": 0.2}
    with served(Flood(), **limits) as (server, connect), connect() as connection:
        connection.sendall(HEAD + BODY)
        eventually(lambda: len(server.connections) == 1)
        eventually(lambda: len(server.connections) == 0)
