"""How long a call may take, and the interrupt that ends it in the main thread when it takes longer."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

from toolcall_nb.tools.interrupting import stop_thread

__all__ = ["Alarm", "Deadline", "TimedOut"]

_SETTLED = 1.0
"""Seconds that a signal which is under way is waited for; it takes microseconds."""

_AGAIN = 0.3
"""Seconds until a signal is sent again: one that comes just before a blocking call begins does not end that."""


class TimedOut(KeyboardInterrupt):
    """What is raised in a tool whose time is over: like Ctrl+C, it passes by ``except Exception``."""


class Deadline:
    """The end of the time that a call has: ``seconds`` from now, None for never."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.missed: TimeoutError | None = None
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float | None:
        """Seconds until then, at least 0, and no more than Python can wait for."""
        if self._end is None:
            return None
        return min(max(0.0, self._end - time.monotonic()), threading.TIMEOUT_MAX)

    def error(self, trace: TracebackType | None = None) -> TimeoutError:
        """What is to be said when it has passed, and ``missed`` from now on; ``trace`` is where the tool was."""
        text = f"no result within {self.seconds:g} s (@tool(timeout=…) allows more)"
        self.missed = TimeoutError(text).with_traceback(_without_the_signal(trace))
        return self.missed


class Alarm:
    """Interrupts what the main thread does when the deadline passes, as Ctrl+C would; without one it does nothing.

    A signal does it, so that a sleep or a read returns as well. A real Ctrl+C beside it stays what it was: in a
    process that ignores it, as one that was started with ``nohup`` does, it is ignored.
    """

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._handler: Any = None
        self._is_inside = self._interrupted = self._has_arrived = False
        self.fired = False

    def during(self, body: Callable[[], Any]) -> Any:
        """What ``body`` gives; raises `TimeoutError` where it took longer, whatever it made of the interrupt."""
        if self._deadline.seconds is None:
            return body()
        value, error = None, None
        try:
            self._begin()
            value = self._inside(body)
        except BaseException as caught:
            error = caught
        finally:
            self._end()
        if self.fired:
            trace = error.__traceback__ if error is not None else None
            raise KeyboardInterrupt if self._interrupted else self._deadline.error(trace)
        if error is not None:
            raise error
        return value

    def _begin(self) -> None:
        self._handler = signal.getsignal(signal.SIGINT)
        if self._handler is not None:  # None: it is not Python's, and could not be put back
            signal.signal(signal.SIGINT, self._on_signal)
        threading.Thread(target=self._watch, name="toolcall_nb-alarm", daemon=True).start()

    def _inside(self, body: Callable[[], Any]) -> Any:
        """Only here does the signal raise: anywhere else it could tear what has to be done."""
        self._is_inside = True
        try:
            if self._has_arrived:
                raise TimedOut
            return body()
        finally:
            self._is_inside = False

    def _watch(self) -> None:
        wait = self._deadline.left
        while not self._over.wait(wait):
            wait = _AGAIN
            with self._lock:
                if self._over.is_set() or self._has_arrived:
                    return
                self.fired = True
                _interrupt_main(by_signal=self._handler is not None)
                self._has_arrived = self._handler is None

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.fired and not self._has_arrived:  # no locks here: whoever holds one may be what is interrupted
            self._has_arrived = True
            if self._is_inside:
                raise TimedOut
        elif callable(self._handler):
            self._interrupted = True
            self._handler(number, frame)
        elif self._handler is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.raise_signal(signal.SIGINT)

    def _end(self) -> None:
        """From here on nothing is sent any more, and what was sent has arrived."""
        try:
            with suppress(TimedOut), self._lock:
                self._over.set()
            latest = time.monotonic() + _SETTLED
            with suppress(TimedOut):
                self._over.set()
                while self.fired and not self._has_arrived and time.monotonic() < latest:
                    time.sleep(0.001)
        finally:
            if self._handler is not None:
                signal.signal(signal.SIGINT, self._handler)


def _without_the_signal(trace: TracebackType | None) -> TracebackType | None:
    """The traceback up to where the tool was: what raises here is no part of it."""
    last = trace
    while last is not None and last.tb_next is not None:
        if last.tb_next.tb_frame.f_code is Alarm._on_signal.__code__:
            last.tb_next = None
        else:
            last = last.tb_next
    return trace


def _interrupt_main(*, by_signal: bool) -> None:
    if not by_signal:  # nobody in Python listens to the signal
        stop_thread(threading.main_thread(), TimedOut)
    elif hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)
