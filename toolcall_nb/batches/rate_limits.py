"""The pauses that providers ask for, by model: `RateLimits`. A pause counts for all runs of the model."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LONGEST_PAUSE = 3600.0
"""The most seconds that a model is waited for. If the provider asks for more, its runs fail and say so."""


class RateLimits:
    """Until when no request may be made to a model. Any thread may use it. ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}
        self._lock = threading.Lock()

    def hold(self, model: str, seconds: float) -> None:
        """Lets no request to the model begin for so long; a longer pause that was asked for before stays."""
        with self._lock:
            until = self._clock() + min(seconds, LONGEST_PAUSE)
            self._until[model] = max(until, self._until.get(model, until))

    def left(self, model: str) -> float:
        """Returns the seconds until a request to the model may begin; 0 if it may now."""
        with self._lock:
            return max(0.0, self._until.get(model, 0.0) - self._clock()) if model in self._until else 0.0

    def wait(self, model: str, stopping: threading.Event) -> None:
        """Waits until a request may begin, or until ``stopping`` is set."""
        while (left := self.left(model)) and not stopping.wait(left):
            pass
