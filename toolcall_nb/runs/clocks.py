"""How long things take, as the page is told: it counts on by itself, so it hears only of starts and stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["RUN", "Clock", "Clocks"]

Clock: TypeAlias = dict[str, float | bool]
"""``elapsed`` in seconds, and whether it is ``running``."""

RUN = ""
"""The run's own clock, beside those of its nodes."""


class Clocks:
    """One clock for each node that is timed, and the run's. A clock starts once and stops once.

    ``now`` gives seconds. `news` is what changed since it was last taken.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.news: dict[str, Clock] = {}
        self.now = now
        self._since: dict[str, float] = {RUN: now()}
        self._stopped: dict[str, float] = {}

    def start(self, node: str) -> None:
        """Starts the clock; nothing for one that runs or has stopped."""
        if node not in self._since and node not in self._stopped:
            self._since[node] = self.now()
            self._tell(node)

    def stop(self, node: str, seconds: float | None = None) -> None:
        """Stops the clock, at ``seconds`` where that is known better; nothing for one that never started."""
        if node in self._since:
            self._stopped[node] = self.seconds(node) if seconds is None else seconds
            del self._since[node]
            self._tell(node)

    def seconds(self, node: str) -> float:
        """The time that it has run."""
        if node in self._stopped:
            return self._stopped[node]
        now = self.now()
        return now - self._since.get(node, now)

    def all(self) -> dict[str, Clock]:
        """Every clock as it is now."""
        return {node: self._told(node) for node in {**self._since, **self._stopped}}

    def _tell(self, node: str) -> None:
        self.news[node] = self._told(node)

    def _told(self, node: str) -> Clock:
        return {"elapsed": self.seconds(node), "running": node in self._since}
