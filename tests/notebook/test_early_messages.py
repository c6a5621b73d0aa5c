"""A page's messages reach a widget while the kernel is busy: read in the channel's thread, or by a busy main thread."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import zmq
from jupyter_client.session import Session
from tornado.ioloop import IOLoop
from zmq.eventloop.zmqstream import ZMQStream

from toolcall_nb.notebook.early_messages import EarlyMessages

PATIENCE = 20


class RoutedComm:
    """A comm as in ipykernel 7.4, which chooses the shell that last published: the busy one."""

    def _reply_subshell_for(self, data: Any, default: str | None) -> str | None:
        return None


class OldKernel:
    """The parts of ipykernel 6 that read the shell channel, on a real socket: the main thread reads into a queue."""

    shell_channel_thread = None

    def __init__(self) -> None:
        self.loop = IOLoop(make_current=False)
        self.context = zmq.Context()
        socket = self.context.socket(zmq.ROUTER)
        self.address = f"tcp://127.0.0.1:{socket.bind_to_random_port('tcp://127.0.0.1')}"
        self.session = Session(key=b"only-for-tests")
        self.shell_stream = ZMQStream(socket, self.loop)
        self.queue: list[str] = []
        self.pages: list[zmq.Socket[bytes]] = []
        self.shell_stream.on_recv(self._queue_message, copy=False)
        self.comm = SimpleNamespace(kernel=self)
        self.comm_manager = SimpleNamespace(comms={"comm": self.comm})

    def _queue_message(self, frames: Any) -> None:
        _, rest = self.session.feed_identities(frames, copy=False)
        message = self.session.deserialize(rest, copy=False)
        self.queue.append(message["content"].get("code") or message["content"]["data"]["text"])

    def fail_to_note_arrivals(self) -> None:
        """Handles the socket's arrivals without reading, as a kernel does that begins a cell while more are waiting."""
        assert self.shell_stream.socket.poll(1000 * PATIENCE)

    def page(self, key: bytes = b"only-for-tests") -> Callable[[str, dict[str, Any]], object]:
        """Connects a page; returns what sends a message on the shell channel."""
        socket = self.context.socket(zmq.DEALER)
        self.pages.append(socket)
        socket.connect(self.address)
        session = Session(key=key)
        return lambda kind, content: session.send(socket, kind, content)

    def close(self) -> None:
        for page in self.pages:
            page.close()
        self.shell_stream.close()
        self.context.destroy(linger=0)
        self.loop.close()


@pytest.fixture
def old_kernel() -> Iterator[OldKernel]:
    kernel, handlers = OldKernel(), {each: signal.getsignal(each) for each in (signal.SIGURG, signal.SIGINT)}
    yield kernel
    for each, handler in handlers.items():
        signal.signal(each, handler)
    kernel.close()


def to_comm(text: str, comm: str = "comm") -> tuple[str, dict[str, Any]]:
    return "comm_msg", {"comm_id": comm, "data": {"text": text}}


def sleep_until(is_done: Callable[[], bool]) -> None:
    """Keeps the main thread busy, in calls that no message ends."""
    give_up = time.monotonic() + PATIENCE
    while not is_done() and time.monotonic() < give_up:
        time.sleep(0.5)
    assert is_done()


def test_where_the_kernel_asks_the_comm_for_a_shell_the_message_is_seen_then_and_goes_to_the_shell_it_was_sent_on() -> (
    None
):
    received: list[Any] = []
    comm: Any = RoutedComm()
    assert EarlyMessages(comm, received.append).arrive
    assert comm._reply_subshell_for({"on": "one"}, "subshell") == "subshell"
    assert comm._reply_subshell_for({"on": "none"}, None) is None
    assert received == [{"on": "one"}, {"on": "none"}]


def test_a_busy_main_thread_hands_messages_on_at_once_and_keeps_all_requests_in_their_order(
    old_kernel: OldKernel,
) -> None:
    received: list[tuple[str, str]] = []
    send = old_kernel.page()
    send("execute_request", {"code": "already there"})
    old_kernel.fail_to_note_arrivals()
    early = EarlyMessages(
        old_kernel.comm, lambda data: received.append((data["text"], threading.current_thread().name))
    )
    assert early.arrive
    for kind, content in (
        ("execute_request", {"code": "first"}),
        to_comm("stop"),
        to_comm("of another widget", "other"),
        ("execute_request", {"code": "second"}),
        to_comm("answer"),
    ):
        send(kind, content)
    sleep_until(lambda: len(received) == 2)
    assert received == [("stop", "MainThread"), ("answer", "MainThread")]
    assert old_kernel.queue == ["already there", "first", "stop", "of another widget", "second", "answer"]
    early.close()


def test_a_message_that_is_signed_with_another_key_is_not_handed_on(old_kernel: OldKernel) -> None:
    received: list[Any] = []
    early = EarlyMessages(old_kernel.comm, received.append)
    old_kernel.page(b"another key")(*to_comm("forged"))
    old_kernel.page()(*to_comm("true"))
    sleep_until(lambda: bool(received))
    time.sleep(0.3)
    assert received == [{"text": "true"}]
    early.close()


def test_an_interrupt_while_a_message_is_read_comes_afterwards_and_the_message_is_kept(old_kernel: OldKernel) -> None:
    def interrupt(data: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    early = EarlyMessages(old_kernel.comm, interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    send = old_kernel.page()
    send(*to_comm("stop"))
    send("execute_request", {"code": "next"})
    with pytest.raises(KeyboardInterrupt):
        sleep_until(lambda: False)
    assert old_kernel.queue[0] == "stop"
    sleep_until(lambda: len(old_kernel.queue) == 2)
    early.close()


def test_a_program_that_uses_the_signal_itself_keeps_it_and_no_messages_arrive_early(old_kernel: OldKernel) -> None:
    signal.signal(signal.SIGURG, own := lambda *_: None)
    assert not EarlyMessages(old_kernel.comm, print).arrive
    assert signal.getsignal(signal.SIGURG) is own


def test_in_another_kind_of_kernel_no_messages_arrive_early() -> None:
    for comm in (object(), SimpleNamespace(kernel=None), SimpleNamespace(kernel=object())):
        early = EarlyMessages(comm, print)
        assert not early.arrive
        early.close()
