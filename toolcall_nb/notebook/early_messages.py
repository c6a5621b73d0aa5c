"""Hands a page's messages to a widget while the kernel is busy with a cell or a callback: `EarlyMessages`.

A kernel handles the messages of its shell channel one after another, so a click on Stop or Approve would wait for the
end of the cell that it is about. So the messages are read as they arrive. Nothing else is changed: each message still
goes where it would have gone, in its order, so no other request is executed early or late.

| kernel | the channel is read by | messages are seen in |
| --- | --- | --- |
| ipykernel 7.4 and later | a thread of its own | `_reply_subshell_for` of the comm, which that thread calls |
| ipykernel 7.0 to 7.3 | a thread of its own | `_ShellReader`, the callback of the channel's stream |
| ipykernel 6 | the main thread, when it is idle | `_ShellReader`; `_Waker` has the busy main thread read |

These parts of ipykernel and pyzmq are private. Where one is missing, as in other kernels, `EarlyMessages.arrive` is
False.

JupyterLite, whose kernel runs in the page's browser, hands a widget's message to the kernel when the cell has ended. So
the page also sends the message on a channel of the browser (a BroadcastChannel), which `PageChannel` receives. Pyodide
handles it while the one thread of the kernel sleeps: its ``time.sleep`` lets the browser's events happen, where the
browser can switch stacks (JavaScript Promise Integration).
"""

from __future__ import annotations

import select
import signal
import sys
import threading
from collections.abc import Callable
from hmac import compare_digest
from types import FrameType
from typing import Any

from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.threads.interrupts import IN_BROWSER

HOW_TO_STOP = (
    "Here, a run cannot be stopped"
    if IN_BROWSER  # JupyterLite interrupts no cell that runs
    else "To stop, interrupt the kernel (in JupyterLab: I, I)"
)
"""The hint in place of a Stop button whose click would not arrive in time."""

_log = logger("toolcall_nb.notebook")

_ATTRIBUTE = "_toolcall_nb_receive"
_WAKE_SIGNAL = getattr(signal, "SIGURG", None)
"""A process that has no handler for this signal ignores it, so one that comes too late does no harm."""
_SOON = 0.05
"""Seconds in which an idle main thread reads its channel itself."""
_AGAIN = 0.25
_CHECK = 0.5
"""Seconds between checks whether the messages are still wanted."""


class EarlyMessages:
    """Has ``receive`` called with the data of each message for ``comm`` as soon as it arrives, until `close`.

    The data are an empty mapping when the page has closed the comm. ``receive`` is called in the thread that reads the
    channel, and in ipykernel 6 maybe in a signal handler: it must return at once.
    """

    def __init__(self, comm: Any, receive: Callable[[Any], None]) -> None:
        self._waker: _Waker | None = None
        self.arrive = _receive_while_routed(comm, receive) or self._read_shell_stream(comm, receive)
        """Whether messages arrive while the kernel is busy. If not, ``receive`` is never called."""

    def close(self) -> None:
        """Ends the waking of a busy main thread. Messages that it reads by itself are still handed on."""
        if self._waker is not None:
            self._waker.close()

    def _read_shell_stream(self, comm: Any, receive: Callable[[Any], None]) -> bool:
        kernel = getattr(comm, "kernel", None)
        stream = getattr(kernel, "shell_stream", None)
        callback = getattr(stream, "_recv_callback", None)
        if kernel is None or stream is None or callback is None or not hasattr(kernel, "comm_manager"):
            return False
        if getattr(kernel, "shell_channel_thread", None) is None:
            self._waker = _Waker.start(stream)
            if self._waker is None:
                return False
        setattr(comm, _ATTRIBUTE, receive)
        if not isinstance(callback, _ShellReader):
            stream._recv_callback = _ShellReader(kernel, callback)
        return True


def _receive_while_routed(comm: Any, receive: Callable[[Any], None]) -> bool:
    """Uses the method by which ipykernel 7.4 chooses the shell for a message (ipykernel/comm/comm.py).

    It would choose the shell that last published on the comm. That may be busy with the cell that the message is about,
    or gone: with its last view JupyterLab deletes its subshell, on another channel that may be quicker. So the message
    goes to the shell that it was sent on, for ipywidgets.
    """
    if not callable(getattr(comm, "_reply_subshell_for", None)):
        return False

    def route(data: Any, sent_on: str | None) -> str | None:
        receive(data)
        return sent_on

    comm._reply_subshell_for = route
    return True


class _ShellReader:
    """The callback of the shell channel's stream: looks at a message, and passes it on to the kernel's own callback."""

    def __init__(self, kernel: Any, pass_on: Callable[[Any], Any]) -> None:
        self._kernel = kernel
        self._pass_on = pass_on

    def __call__(self, frames: Any) -> Any:
        try:
            self._look(frames)
        except Exception:
            _log.exception("A message of a page could not be read early")
        return self._pass_on(frames)

    def _look(self, frames: Any) -> None:
        session = self._kernel.session
        _, message = session.feed_identities(frames, copy=False)
        signature, *parts = (bytes(frame.bytes) for frame in message[:5])
        kind = session.unpack(parts[0])["msg_type"]
        if kind not in ("comm_msg", "comm_close"):
            return
        # Session.deserialize would note the signature, and refuse the same message when the kernel handles it.
        if session.auth is not None and not compare_digest(signature, session.sign(parts)):
            return
        content = session.unpack(parts[3])
        receive = getattr(self._kernel.comm_manager.comms.get(content["comm_id"]), _ATTRIBUTE, None)
        if receive is not None:
            receive(content.get("data") if kind == "comm_msg" else {})


class _Waker:
    """A thread that has the main thread read the shell channel while that is busy, by a signal.

    Only the main thread may use the channel's socket. The thread watches the socket's file descriptor. That becomes
    readable when a message arrives after all others were read (ZMQ_FD in zmq_getsockopt), so the main thread reads all,
    the first time before the thread watches. Python handles the signal between two steps of the cell's code; a sleep or
    a read goes on afterwards (PEP 475).
    """

    def __init__(self, stream: Any) -> None:
        self._descriptor = stream.socket.FD
        self._over = threading.Event()
        threading.Thread(target=self._watch, name="toolcall_nb-waker", daemon=True).start()

    @classmethod
    def start(cls, stream: Any) -> _Waker | None:
        """Starts a waker; None where that is not possible: on Windows, or if a program uses the signal itself."""
        if _WAKE_SIGNAL is None or not hasattr(select, "poll"):
            return None
        handler = signal.getsignal(_WAKE_SIGNAL)
        if not isinstance(handler, _ReadOnSignal):
            if handler is not signal.SIG_DFL or threading.current_thread() is not threading.main_thread():
                return None
            signal.signal(_WAKE_SIGNAL, _ReadOnSignal(stream))
            signal.siginterrupt(_WAKE_SIGNAL, False)  # calls of libraries that do not repeat themselves go on
        return cls(stream)

    def close(self) -> None:
        self._over.set()

    def _watch(self) -> None:
        channel = select.poll()
        channel.register(self._descriptor, select.POLLIN)
        self._wake()
        while not self._over.is_set():
            if channel.poll(1000 * _CHECK) and not self._over.wait(_SOON) and channel.poll(0):
                self._wake()

    def _wake(self) -> None:
        if _WAKE_SIGNAL is not None and isinstance(signal.getsignal(_WAKE_SIGNAL), _ReadOnSignal):
            signal.pthread_kill(threading.main_thread().ident or 0, _WAKE_SIGNAL)
            self._over.wait(_AGAIN)


class _ReadOnSignal:
    """The signal's handler: reads what has arrived on the shell channel into the kernel's queue."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Reads, unless the interrupted code is reading. An interrupt that comes meanwhile is raised afterwards.

        An interrupt in the middle would lose a message that was read and is not in the queue yet.
        """
        interrupt, file = signal.getsignal(signal.SIGINT), sys.modules[type(self._stream).__module__].__file__
        while frame is not None and frame.f_code.co_filename != file:
            frame = frame.f_back
        if interrupt is None or frame is not None:
            return
        interrupts: list[tuple[int, FrameType | None]] = []
        signal.signal(signal.SIGINT, lambda *arguments: interrupts.append(arguments))
        try:
            is_empty = False
            while not is_empty:
                try:
                    self._stream.flush(select.POLLIN)
                    is_empty = True
                except Exception:  # more messages may be left
                    _log.exception("The kernel could not take a message")
                    is_empty = self._stream.closed()
        finally:
            signal.signal(signal.SIGINT, interrupt)
            if interrupts and callable(interrupt):
                interrupt(*interrupts[0])


class PageChannel:
    """Has ``receive`` called with the data of each message that a page sends on the channel ``name``, until `close`."""

    def __init__(self, name: str, receive: Callable[[Any], None]) -> None:
        from js import BroadcastChannel  # type: ignore[import-not-found]  # a module of Pyodide
        from pyodide.ffi import create_proxy  # type: ignore[import-not-found]

        self.name = name
        self._channel = BroadcastChannel.new(name)
        self._receive = create_proxy(lambda event: receive({"method": "custom", "content": event.data.to_py()}))
        self._channel.onmessage = self._receive

    @classmethod
    def open(cls, name: str, receive: Callable[[Any], None]) -> PageChannel | None:
        """Opens a channel; returns None where messages could not arrive before the end of the cell."""
        if not IN_BROWSER:
            return None
        from pyodide.ffi import can_run_sync

        return cls(name, receive) if can_run_sync() else None

    def close(self) -> None:
        """Closes the channel. Nothing is received any more."""
        self._channel.close()
        self._receive.destroy()
