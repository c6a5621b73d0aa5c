"""Do something soon, and not more often than a display can show it."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable

from toolcall_nb.redaction.masked_logging import logger

__all__ = ["FRAME", "SLOWEST", "Pacer"]

log = logger("toolcall_nb.runs")

FRAME = 0.04
"""Seconds between two messages. jupyter-server drops a client that gets more than 1,000 messages a second."""

SLOWEST = 2.0
"""Seconds after which a page is told at the latest, however slow it is."""


class Pacer:
    """Calls ``flush`` soon after each `wake`, at most once every ``interval`` seconds, in a thread of its own.

    The first wake is answered at once. After `close` nothing is called any more. The thread begins with the
    first wake, in the context of the thread that made the pacer: ipykernel finds the cell of a message there. What
    ``flush`` raises is logged once, and does not end it.
    """

    def __init__(self, flush: Callable[[], None], interval: float = FRAME) -> None:
        self._flush = flush
        self.interval = interval
        self._due = threading.Event()
        self._closed = threading.Event()
        self._context = contextvars.copy_context()
        self._thread: threading.Thread | None = None
        self._faults = 0

    def pace(self, seconds: float) -> None:
        """From now on ``seconds`` between two flushes, as who is told wishes; at least `FRAME`, at most `SLOWEST`."""
        self.interval = max(FRAME, min(SLOWEST, seconds))

    def wake(self) -> None:
        """There is something to flush."""
        self._due.set()
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._context.run, args=(self._loop,), name="toolcall_nb-pacer", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """Stop, and wait until a flush that is under way has returned."""
        self._closed.set()
        self._due.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _loop(self) -> None:
        while self._due.wait() and not self._closed.is_set():
            self._due.clear()
            try:
                self._flush()
            except Exception:
                self._faults += 1
                if self._faults == 1:
                    log.exception("A page could not be told what is new; it is tried again with what comes next")
            self._closed.wait(self.interval)
