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
        self.missed = TimeoutError(text).with_traceback(trace)
        return self.missed


class Alarm:
    """Interrupts what the main thread does within the ``with`` when the deadline passes, as Ctrl+C would.

    A signal does it, so that a sleep or a read returns as well. Then the ``with`` raises `TimeoutError`, whatever
    became of the interrupt; a real Ctrl+C beside it stays one. Without a deadline nothing is done.
    """

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._lock = threading.Lock()
        self._left = threading.Event()
        self._arrived = threading.Event()
        self._handler: Any = None
        self._interrupted = False
        self.fired = False

    def __enter__(self) -> Alarm:
        if self._deadline.seconds is not None:
            self._handler = signal.getsignal(signal.SIGINT)
            if callable(self._handler):
                signal.signal(signal.SIGINT, self._on_signal)
            threading.Thread(target=self._watch, name="toolcall_nb-alarm", daemon=True).start()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._deadline.seconds is None:
            return
        try:
            self._settle()
        finally:
            if callable(self._handler):
                signal.signal(signal.SIGINT, self._handler)
        if self.fired:
            raise KeyboardInterrupt if self._interrupted else self._deadline.error(trace) from None

    def _watch(self) -> None:
        if self._left.wait(self._deadline.left):
            return
        with self._lock:
            if not self._left.is_set():
                self.fired = True
                _interrupt_main(by_signal=callable(self._handler))

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.fired and not self._arrived.is_set():
            self._arrived.set()
            if not self._left.is_set():
                raise TimedOut
        else:
            self._interrupted = True
            handler: Callable[[int, FrameType | None], Any] = self._handler
            handler(number, frame)

    def _settle(self) -> None:
        """From here on nothing is sent any more, and what was sent has arrived."""
        with self._lock:
            self._left.set()
        if self.fired and callable(self._handler):
            self._arrived.wait(_SETTLED)
        elif self.fired:
            with suppress(TimedOut):
                time.sleep(0)


def _interrupt_main(*, by_signal: bool) -> None:
    if not by_signal:  # nobody in Python listens to the signal
        stop_thread(threading.main_thread(), TimedOut)
    elif hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)
