"""Interrupts threads that run a user's code, as far as Python allows: `stop_thread`, `OwnThread`, `check_stop`.

CPython can raise an interrupt at the start of every function and after every call, so also inside of ``Event.set``.
Then the event's lock stays locked, and whoever sets the event next waits for ever. So the thread of a run holds
interrupts back while it does its own work (`ThreadInterrupts`), and lets them through while it waits for a model, a
tool or a person.
"""

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


class ThreadInterrupts:
    """The interrupts of one thread. While ``are_held`` they wait; `let_through` raises one that has come.

    Set ``are_held`` as an attribute: a function that sets it could be interrupted before its first line. Interrupts of
    the main thread wait only inside of `interrupts_handled`.
    """

    __slots__ = ("are_held", "has_come")

    def __init__(self) -> None:
        self.are_held = self.has_come = False

    def let_through(self) -> None:
        """Ends the holding. Raises `KeyboardInterrupt` if an interrupt has come meanwhile."""
        self.are_held = False
        if self.has_come:
            self.has_come = False
            raise KeyboardInterrupt


class _OfThisThread(threading.local):
    def __init__(self) -> None:
        self.interrupts = ThreadInterrupts()


_here = _OfThisThread()


def interrupts_of_this_thread() -> ThreadInterrupts:
    """Returns the interrupts of the thread that calls this."""
    return _here.interrupts


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


def stop_thread(
    thread: threading.Thread,
    exception: type[BaseException] = KeyboardInterrupt,
    interrupts: ThreadInterrupts | None = None,
) -> bool:
    """Raises ``exception`` in another thread before its next step of Python code; returns whether that was possible.

    While the thread's ``interrupts`` are held, it is kept for later instead. A call into C (a sleep, a read, a long
    computation) is not interrupted: the exception is raised when it returns. Only CPython can do this; elsewhere
    nothing happens.
    """
    try:
        import ctypes

        set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
    except (ImportError, AttributeError):
        return False

    def raise_in(ident: int, exception: type[BaseException]) -> bool:
        target = ctypes.c_ulong(ident), ctypes.py_object(exception)
        # The thread cannot begin to hold its interrupts from here to the call: CPython changes threads after calls.
        if interrupts is not None and ident == thread.ident and interrupts.are_held:
            interrupts.has_come = True
            return True
        return bool(set_exception(*target) == 1)

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
    interrupts = interrupts_of_this_thread()
    were_held, interrupts.are_held = interrupts.are_held, True
    interrupt: KeyboardInterrupt | None = None
    is_done = False
    while not is_done:
        try:
            act()
            is_done = True
        except KeyboardInterrupt as again:
            interrupt = again
    if not were_held:
        interrupts.let_through()
    if interrupt is not None:
        raise interrupt


@contextmanager
def interrupts_handled(is_stopping: Callable[[], bool]) -> Iterator[ThreadInterrupts]:
    """Within this block, interrupts of this thread wait while they are held, as they are at first.

    One that still waits at its end is raised, unless ``is_stopping``: then it was for what is over now.

    In a process that ignores SIGINT, since it was started with ``nohup`` or in the background of a script, our own
    SIGINT interrupts the main thread nevertheless. One that arrives while not ``is_stopping`` is ignored there.
    """
    interrupts = interrupts_of_this_thread()
    usual = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    is_ignored = usual is signal.SIG_IGN
    is_handled = is_ignored or callable(usual)

    def interrupt(number: int, frame: FrameType | None) -> None:
        if is_ignored and not is_stopping():
            return
        if interrupts.are_held:
            interrupts.has_come = True
        elif callable(usual):
            usual(number, frame)
        else:
            raise KeyboardInterrupt

    if is_handled:
        signal.signal(signal.SIGINT, interrupt)
    try:
        interrupts.are_held = True
        yield interrupts
    finally:
        if is_handled:
            signal.signal(signal.SIGINT, usual)
        if is_stopping():
            interrupts.has_come = False
        interrupts.let_through()


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
