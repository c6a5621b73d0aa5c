"""What a run is shown by: each face takes the events and is closed once, with the line that stays below."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from toolcall_nb.approvals import Decision
    from toolcall_nb.core.events import Event
    from toolcall_nb.core.transcript import ToolCall, Transcript

__all__ = ["Face"]


class Face(Protocol):
    """Shows one run."""

    def show(self, event: Event) -> None:
        """Take one event in."""

    def ask(self, call: ToolCall, is_stopped: Callable[[], bool]) -> Decision:
        """Whether a call may run. Raises `KeyboardInterrupt` when the run is stopped while a person is asked."""

    def close(self, info: str) -> None:
        """The run has ended; ``info`` is the line below it."""

    @property
    def transcript(self) -> Transcript:
        """What was shown."""
