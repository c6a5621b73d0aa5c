"""Stores a turn while it runs: `TurnProgress`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from toolcall_nb.core.transcript import Transcript
from toolcall_nb.redaction.masked_logging import logger

_log = logger("toolcall_nb.server")

_SHARE = 0.1
"""The share of a turn's time that storing it may take: a long thread takes longer to write."""


class TurnProgress:
    """Stores a turn of ``thread`` while it runs, so that a server that is killed loses little of it.

    ``save`` stores a transcript, in any thread.
    """

    def __init__(self, thread: str, save: Callable[[Transcript], None]) -> None:
        self._thread, self._save = thread, save
        self._lock = threading.Lock()
        self._next = 0.0
        self._length = 0
        self._is_closed = False

    def store(self, transcript: Callable[[], Transcript], length: int) -> None:
        """Stores the transcript of a turn that has ``length`` events, if it has grown and enough time has passed."""
        if length == self._length or time.monotonic() < self._next or not self._lock.acquire(blocking=False):
            return
        start = time.monotonic()
        try:
            if self._is_closed:
                return
            self._save(transcript())
            self._length = length
        except Exception as error:  # the end of the turn is stored anew, and says what is wrong
            _log.warning("The running turn of the thread %s could not be stored: %s", self._thread, error)
        finally:
            self._next = (end := time.monotonic()) + (end - start) * (1 / _SHARE - 1)
            self._lock.release()

    def close(self) -> None:
        """Waits until nothing is stored any more."""
        with self._lock:
            self._is_closed = True
