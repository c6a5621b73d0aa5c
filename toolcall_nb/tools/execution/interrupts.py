"""Interrupts threads that run a user's code, as far as Python allows: `stop_thread`, `OwnThread`, `check_stop`."""

from __future__ import annotations

import contextvars
import signal
import sys
import threading
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

__all__ = [
    "IN_BROWSER",
    "STARTING",
    "STOP",
    "OwnThread",
    "check_stop",
    "run_to_end",
    "start_if_possible",
    "stop_signal_heard",
    "stop_thread",
    "wait_for",
]

IN_BROWSER: bool = sys.platform == "emscripten"
"""Whether this is Pyodide: Python in a browser, with one thread."""

_NO_THREADS = "can't start new thread"
"""CPython's words where no thread can be started: always in Pyodide, elsewhere when the system has no room for more."""

STARTING = threading.RLock()
"""Held while a thread starts. CPython gives a starting thread the identity of its parent for a moment, so an exception
that is meant for the parent could be raised in the child, before its first line.
"""

STOP: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar("toolcall_nb_stop", default=None)
"""An event that, once set, asks the calls of this context to end, in whichever thread somebody waits for them."""


def start_if_possible(thread: threading.Thread) -> bool:
    """Starts a thread; returns False where no thread can be started, and the caller does its work in its own."""
    try:
        with STARTING:
            thread.start()
    except RuntimeError as error:
        if str(error) != _NO_THREADS:
            raise
        return False
    return True


def wait_for(event: threading.Event, seconds: float) -> bool:
    """Waits until an event is set, at most so long; returns whether it is.

    In Pyodide, which has one thread, ``Event.wait`` would keep out what is to set the event. There, this sleeps:
    meanwhile Pyodide handles the page's messages, in browsers that can switch stacks (JSPI).
    """
    if not IN_BROWSER:
        return event.wait(seconds)
    if not event.is_set():
        time.sleep(seconds)
    return event.is_set()


def check_stop() -> None:
    """Raises `KeyboardInterrupt` if `STOP` is set. Code that waits for a call does this regularly."""
    stop = STOP.get()
    if stop is not None and stop.is_set():
        raise KeyboardInterrupt


def stop_thread(thread: threading.Thread, exception: type[BaseException] = KeyboardInterrupt) -> bool:
    """Raises ``exception`` in another thread before its next step of Python code; returns whether that was possible.

    A call into C (a sleep, a read, a long computation) is not interrupted: the exception is raised when it returns.
    Only CPython can do this; elsewhere nothing happens.
    """
    try:
        import ctypes

        set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
    except (ImportError, AttributeError):
        return False

    def raise_in(ident: int, exception: type[BaseException]) -> bool:
        return bool(set_exception(ctypes.c_ulong(ident), ctypes.py_object(exception)) == 1)

    with STARTING:
        if thread.ident is None or not thread.is_alive():
            return False
        if sys.version_info >= (3, 12):
            return raise_in(thread.ident, exception)
        return _raise_without_flag(thread.ident, exception, raise_in)


class _FlagCleared(BaseException):
    """Raised in a helper thread for its effect alone: raising it clears the flag."""


def _raise_without_flag(ident: int, exception: type[BaseException], raise_in: Callable[[int, Any], bool]) -> bool:
    """Raises in a thread, then clears the flag that tells all threads of a pending exception.

    While CPython 3.11 has the flag set, a traced thread (by a debugger, or for coverage) does not get past the first
    line of any function (Python/ceval.c, DO_TRACING), and the flag stays set until the target's call into C returns.
    Any thread in which an exception is raised clears it: here an untraced helper thread, started for that alone.
    """
    is_ready, may_go = allocate_lock(), allocate_lock()
    is_ready.acquire()
    may_go.acquire()

    def clear_flag() -> None:
        with suppress(_FlagCleared):
            is_ready.release()
            may_go.acquire()
            for _ in range(1_000_000):  # more than enough steps for the exception to come in one of them
                pass

    helper = start_new_thread(clear_flag, ())
    try:
        is_ready.acquire()
        return raise_in(ident, exception)
    finally:
        raise_in(helper, _FlagCleared)
        may_go.release()


def run_to_end(act: Callable[[], object]) -> None:
    """Runs ``act`` to its end: after an interrupt it is run again, and the interrupt is raised afterwards.

    So a second interrupt cannot keep the first from stopping what runs in other threads.
    """
    interrupt: KeyboardInterrupt | None = None
    is_done = False
    while not is_done:
        try:
            act()
            is_done = True
        except KeyboardInterrupt as again:
            interrupt = again
    if interrupt is not None:
        raise interrupt


@contextmanager
def stop_signal_heard(is_stopping: Callable[[], bool]) -> Iterator[None]:
    """Within this block, our own SIGINT interrupts the main thread even in a process that ignores SIGINT.

    A process that was started with ``nohup``, or in the background of a script, ignores it. There a SIGINT that arrives
    while not ``is_stopping`` is still ignored.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        if is_stopping():
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


class OwnThread:
    """A daemon thread that has its maker's context and can be interrupted in its body only.

    An interrupt ends the thread without a traceback. Before the body it prevents the body from running; after it, it
    does nothing. Where no thread can be started, the body runs in `start`, and `stop` does not interrupt it.
    """

    def __init__(self, body: Callable[[], None], name: str) -> None:
        self._body = body
        self._lock = threading.Lock()
        self._is_stopped = self._is_inside = False
        self._has_thread = True
        self._context_run = contextvars.copy_context().run
        self._thread = threading.Thread(
            target=self._context_run, args=(self._run,), name=f"toolcall_nb-{name}", daemon=True
        )

    def start(self) -> None:
        """Starts the thread."""
        self._has_thread = start_if_possible(self._thread)
        if not self._has_thread:
            self._context_run(self._run)

    def join(self, seconds: float) -> None:
        """Waits for its end, at most this long."""
        if self._has_thread:
            self._thread.join(seconds)

    def stop(self, exception: type[BaseException]) -> None:
        """Raises ``exception`` in the body, as `stop_thread` does."""
        with self._lock:
            self._is_stopped = True
            if self._is_inside:
                stop_thread(self._thread, exception)

    def _run(self) -> None:
        with suppress(KeyboardInterrupt):
            with self._lock:
                if self._is_stopped:
                    return
                self._is_inside = True
            try:
                self._body()
            finally:
                with self._lock:
                    self._is_inside = False
