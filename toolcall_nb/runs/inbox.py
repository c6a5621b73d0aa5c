"""Do what comes, one after another, beside whatever keeps the threads that it comes to."""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable

from toolcall_nb.redaction.masked_logging import logger

__all__ = ["Inbox"]

log = logger("toolcall_nb.runs")


class Inbox:
    """Calls what is `put` into it in its order, in a thread that is there only while there is something to do.

    It calls in the context of the thread that made the inbox: ipykernel finds the cell of a message there. What is
    raised is logged, and does not hold up what comes next.
    """

    def __init__(self) -> None:
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_busy = False

    def put(self, act: Callable[[], None]) -> None:
        """Have it done soon; returns at once, in any thread."""
        with self._lock:
            self._waiting.append(act)
            if self._is_busy:
                return
            self._is_busy = True
        run = self._context.copy().run  # the thread before may not have left it yet
        threading.Thread(target=run, args=(self._empty,), name="toolcall_nb-inbox", daemon=True).start()

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            self._is_busy = bool(self._waiting)
            return self._waiting.popleft() if self._waiting else None

    def _empty(self) -> None:
        while (act := self._next()) is not None:
            try:
                act()
            except Exception:
                log.exception("What a page said could not be done")
