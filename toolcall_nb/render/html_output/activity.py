"""What is going on with the open calls of a live view, which the transcript does not say.

A transcript is a record: that a call has no result does not tell whether its arguments are still being written, its
turn has not come, or its tool is running. `Activities` learns that from the events.
"""

from __future__ import annotations

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.reducer import normalize_call_id

__all__ = ["Activities"]


class Activities(dict[str, str]):
    """``writing`` (its arguments arrive), ``queued`` or ``running`` (`events.ToolExecution`), by call id.

    A call that is not in it has ended, or nothing is known of it but that it was made.
    """

    def apply(self, event: Event) -> None:
        """Take one event in."""
        match event:
            case ev.ToolInputStart():
                self.setdefault(normalize_call_id(event.tool_call_id), "writing")
            case ev.ToolExecution():
                self[normalize_call_id(event.tool_call_id)] = event.status
            case ev.ToolRetracted():
                activity = self.pop(normalize_call_id(event.tool_call_id), None)
                if activity is not None and event.successor is not None:
                    self.setdefault(normalize_call_id(event.successor), activity)
            case ev.ToolOutputAvailable(preliminary=True):
                pass
            case (
                ev.ToolOutputAvailable()
                | ev.ToolOutputError()
                | ev.ToolOutputDenied()
                | ev.ToolInputError()
                | ev.ToolInterrupted()
            ):
                self.pop(normalize_call_id(event.tool_call_id), None)
