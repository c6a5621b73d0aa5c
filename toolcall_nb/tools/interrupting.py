"""Interrupting a thread that runs somebody else's code, as far as Python allows."""

from __future__ import annotations

import contextvars
import signal
import sys
import threading
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

__all__ = ["STARTING", "STOP", "OwnThread", "check_stop", "stop_signal_heard", "stop_thread", "surely"]

STARTING = threading.RLock()
"""Held while a thread starts. CPython lets a thread that is being started pass for the one that starts it, and so
an exception that is meant for that one could end up in it, before its first line.
"""

STOP: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar("toolcall_nb_stop", default=None)
"""Set, it asks the calls of this context to end, in whichever thread they are waited for."""


def check_stop() -> None:
    """Raise `KeyboardInterrupt` where `STOP` asks for it; whoever waits for a call does this now and then."""
    stop = STOP.get()
    if stop is not None and stop.is_set():
        raise KeyboardInterrupt


def stop_thread(thread: threading.Thread, exception: type[BaseException] = KeyboardInterrupt) -> bool:
    """Raise ``exception`` in another thread, before its next step of Python code; whether that was possible.

    A call into C (a sleep, a read, a long computation) is not cut short: the exception waits for its return. Where
    Python has no such function (other implementations than CPython) nothing happens.
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


class _Taken(BaseException):
    """Takes the flag down with it."""


def _raise_without_flag(ident: int, exception: type[BaseException], raise_in: Callable[[int, Any], bool]) -> bool:
    """Raise in a thread, and take down the flag that says so to all threads; the thread looks for itself.

    While CPython 3.11 has the flag up, a thread that is traced, by a debugger or for coverage, does not get past the
    first line of any function (Python/ceval.c, DO_TRACING); and it stays up until the call into C returns. It is
    taken down by whoever has an exception raised: here by a thread without a trace, which is there for that alone.
    """
    is_ready, may_go = allocate_lock(), allocate_lock()
    is_ready.acquire()
    may_go.acquire()

    def take() -> None:
        with suppress(_Taken):
            is_ready.release()
            may_go.acquire()
            for _ in range(1_000_000):  # more than enough steps for the exception to come in one of them
                pass

    taker = start_new_thread(take, ())
    try:
        is_ready.acquire()
        return raise_in(ident, exception)
    finally:
        raise_in(taker, _Taken)
        may_go.release()


def surely(act: Callable[[], object]) -> None:
    """Do ``act``, which may be done twice, to its end: an interrupt meanwhile lets it begin again, and is raised then.

    Who interrupts twice must not keep the first interrupt from ending what runs elsewhere.
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
    """Within this, a SIGINT of our own interrupts the main thread even in a process that ignores SIGINT.

    A process that was started with ``nohup``, or in the background of a script, ignores it. A SIGINT that comes while
    not ``is_stopping`` is ignored there still.
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
    """A daemon thread that has the context of the thread that made it, and whose body alone can be interrupted.

    An interrupt that ends the body ends the thread quietly. One that comes before the body keeps it from beginning,
    one that comes after it does nothing.
    """

    def __init__(self, body: Callable[[], None], name: str) -> None:
        self._body = body
        self._lock = threading.Lock()
        self._is_stopped = self._is_inside = False
        run = contextvars.copy_context().run
        self._thread = threading.Thread(target=run, args=(self._live,), name=f"toolcall_nb-{name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        with STARTING:
            self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait for its end, at most this long."""
        self._thread.join(seconds)

    def stop(self, exception: type[BaseException]) -> None:
        """Raise ``exception`` in the body, as `stop_thread` does."""
        with self._lock:
            self._is_stopped = True
            if self._is_inside:
                stop_thread(self._thread, exception)

    def _live(self) -> None:
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
