"""Values that models send in the history tests, and functions that extract one call's events from a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import State

__all__ = ["IDS", "NAMES", "ODD", "TEXTS", "is_end", "life_of", "state_after"]

NAMES = st.sampled_from(["plain", "beside", "counts", "plain", "beside", "nope", "", "we ather"])
IDS = st.sampled_from(["", "a", "b", "functions.f:0", "<c>"])
TEXTS = st.sampled_from(["one ", "\n\n", "> [!tool plain x]\n", "`", "é😀", "<b>", "\ud83d"])


ODD = [
    *(ev.Finish(finish_reason="length"), ev.Error("overloaded"), ev.Abort(reason="lost"), ev.ResetStep()),
    *(ev.ToolRetracted("a"), ev.ToolRetracted("b", successor="a"), ev.ToolInputError("b", "plain", None, "wrong")),
    *(ev.ToolOutputError("a", "failed"), ev.ToolInterrupted("b"), ev.ToolApprovalRequest("x", "a"), ev.Start()),
]

_ENDS = (ev.ToolOutputError, ev.ToolOutputDenied, ev.ToolInputError, ev.ToolInterrupted)
_STARTS = (ev.ToolInputStart, ev.ToolInputAvailable, ev.ToolInputError)


def life_of(call_id: str, events: Sequence[Event]) -> list[Any]:
    """Returns a call's events from its start; from its last start if the model retracted earlier events."""
    place = start = None
    for number, event in enumerate(events):
        own = getattr(event, "tool_call_id", None) == call_id
        if isinstance(event, ev.ResetStep) or (isinstance(event, ev.ToolRetracted) and own):
            place = None
        elif (isinstance(event, ev.ToolRetracted) and event.successor == call_id) or (
            own and isinstance(event, _STARTS) and place is None
        ):
            place = number
        start = place if place is not None else start
    assert start is not None, (call_id, events)
    return [event for event in events[start:] if getattr(event, "tool_call_id", None) == call_id]


def state_after(end: Event) -> State:
    """Returns the state after this end event."""
    match end:
        case ev.ToolOutputAvailable():
            return State.OUTPUT_AVAILABLE
        case ev.ToolOutputDenied():
            return State.OUTPUT_DENIED
        case ev.ToolInterrupted():
            return State.INTERRUPTED
    return State.OUTPUT_ERROR


def is_end(event: Any) -> bool:
    """Whether the event ends a call."""
    return isinstance(event, _ENDS) or (isinstance(event, ev.ToolOutputAvailable) and not event.preliminary)
