"""The durations of a run and of its calls: `Clocks`. A page counts on by itself between a start and a stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

_Clock: TypeAlias = dict[str, float | bool]
"""``elapsed`` in seconds, and whether it is ``running``."""

RUN = ""
"""The key of the run's own clock; the others have the ids of nodes."""


class Clocks:
    """One clock for the run and one for each node that is timed. A clock starts once and stops once.

    ``now`` returns seconds. The run's clock starts now, or started when ``now`` was ``began``. `news` holds the clocks
    that changed; who sends them empties it.
    """

    def __init__(self, now: Callable[[], float], began: float | None = None) -> None:
        self.news: dict[str, _Clock] = {}
        self.now = now
        self._since: dict[str, float] = {RUN: now() if began is None else began}
        self._stopped: dict[str, float] = {}

    def start(self, node: str) -> None:
        """Starts the clock, unless it runs or has stopped."""
        if node not in self._since and node not in self._stopped:
            self._since[node] = self.now()
            self.news[node] = {"elapsed": 0.0, "running": True}

    def stop(self, node: str, seconds: float | None = None) -> None:
        """Stops the clock if it runs; at ``seconds``, if the duration is known better."""
        if node in self._since:
            elapsed = self.now() - self._since.pop(node) if seconds is None else seconds
            self._stopped[node] = elapsed
            self.news[node] = {"elapsed": elapsed, "running": False}

    def all(self) -> dict[str, _Clock]:
        """Returns every clock as it is now."""
        now = self.now()
        running: dict[str, _Clock] = {
            node: {"elapsed": now - since, "running": True} for node, since in self._since.items()
        }
        return running | {node: {"elapsed": seconds, "running": False} for node, seconds in self._stopped.items()}
