"""What is known of the tools of a turn while they run, and afterwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from toolcall_nb import dialects
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import ToolCall
from toolcall_nb.tools import Outcome

__all__ = ["ToolWatch"]


class ToolWatch:
    """Follows the running of tools.

    ``timings`` gets the seconds of each call, ``outcomes`` how it ended. ``tell`` takes what happens while a tool
    holds the thread; without it that waits until `missed` is asked.
    """

    def __init__(
        self,
        dialect: str,
        clock: Callable[[], float],
        timings: dict[str, float],
        outcomes: dict[str, Outcome],
        tell: Callable[[Event], None] | None,
    ) -> None:
        self._dialect, self._clock, self._tell = dialect, clock, tell
        self._timings, self._outcomes = timings, outcomes
        self._started: dict[str, float] = {}
        self._missed: deque[Event] = deque()

    def begins(self, call: ToolCall) -> Iterator[Event]:
        """The events that tell that the tool starts now."""
        self._started[call.id] = self._clock()
        yield ev.ToolExecution(call.id, "running")
        status = dialects.executing(self._dialect, call.name)
        if status is not None:
            yield ev.Status(status)

    def tells(self, event: Event) -> None:
        """The tool has printed something, or has a preliminary output; in whichever thread."""
        (self._tell or self._missed.append)(event)

    def missed(self) -> Iterator[Event]:
        """What could not be told at once."""
        while self._missed:
            yield self._missed.popleft()

    def ended(self, call: ToolCall, outcome: Outcome) -> None:
        """The tool has run."""
        self._timings[call.id] = self._clock() - self._started.pop(call.id)
        self._outcomes[call.id] = outcome
