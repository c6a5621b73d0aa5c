"""Sends steps to a page soon, but no more often than it can draw them: `Pacer`."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable

from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.threads.interrupts import start_if_possible

_log = logger("toolcall_nb.live_runs")

FRAME = 0.042
"""Seconds between two messages. jupyter-server drops a client that gets more than 1,000 messages a second."""

SLOWEST = 2.0
"""The longest interval between two messages in seconds, however slow the page is."""

_MOMENT = 0.001


class Pacer:
    """Calls ``flush`` soon after each `wake`, at most once every ``interval`` seconds, in a thread of its own.

    The first wake is answered at once. After `close` nothing is called any more. The thread begins with the first
    wake, in the context of the thread that made the pacer: ipykernel finds the cell of a message there. The first
    exception of ``flush`` is logged; none ends the thread.
    """

    def __init__(self, flush: Callable[[], None], interval: float = FRAME) -> None:
        self._flush = flush
        self.interval = interval
        self._due = threading.Event()
        self._closed = threading.Event()
        self._context = contextvars.copy_context()
        self._thread: threading.Thread | None = None
        self._has_failed = False
        self._has_thread = True
        self._next = 0.0  # the monotonic time of the next flush, where there is no thread

    def set_interval(self, seconds: float) -> None:
        """Sets the interval that a page asks for, between `FRAME` and `SLOWEST`."""
        self.interval = max(FRAME, min(SLOWEST, seconds))

    def wake(self) -> None:
        """Has ``flush`` called soon."""
        self._due.set()
        if not self._has_thread:
            self._flush_if_due()
        elif self._thread is None:
            thread = threading.Thread(
                target=self._context.run, args=(self._loop,), name="toolcall_nb-pacer", daemon=True
            )
            self._has_thread = start_if_possible(thread)
            self._thread = thread if self._has_thread else None
            if not self._has_thread:
                self._flush_if_due()

    def _flush_if_due(self) -> None:
        """Calls ``flush`` in the thread of `wake`, which is the only one, if the last time is long enough ago.

        Then sleeps for a moment, in which Pyodide handles the page's messages, such as a click on Stop.
        """
        if not self._closed.is_set() and time.monotonic() >= self._next:
            self._call_flush()
            time.sleep(_MOMENT)
            self._next = time.monotonic() + self.interval

    def close(self) -> None:
        """Stops, and waits until a flush that is under way has returned."""
        self._closed.set()
        self._due.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _loop(self) -> None:
        while self._due.wait() and not self._closed.is_set():
            self._due.clear()
            self._call_flush()
            self._closed.wait(self.interval)

    def _call_flush(self) -> None:
        try:
            self._flush()
        except Exception:
            if not self._has_failed:
                _log.exception("A step could not be sent to the page; its content is sent with the next one")
            self._has_failed = True
