"""Puts the events of a nested agent into the call that started it: `nested_events`."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event

_LEFT_OUT = (
    ev.TextStart,
    ev.ReasoningStart,
    ev.Start,
    ev.Finish,
    ev.StartStep,
    ev.FinishStep,
    ev.ResetStep,
    ev.MessageMetadata,
)
_CALL = (ev.ToolInputStart, ev.ToolInputAvailable, ev.ToolInputError)


def nested_events(events: Iterable[Event], parent: str) -> list[Event]:
    """Returns the events of a nested agent as events of the agent around it.

    ``parent`` is the id of the call that started the nested agent. Its text and reasoning become the log of that call,
    its calls name the call as their parent (`toolcall_nb.core.transcript.ToolCall.parent`).
    """
    return [found for event in events if (found := _nested(event, parent)) is not None]


def _nested(event: Event, parent: str) -> Event | None:
    if isinstance(event, ev.TextDelta | ev.ReasoningDelta):
        return ev.ToolLog(parent, event.delta)
    if isinstance(event, ev.TextEnd | ev.ReasoningEnd):
        return ev.ToolLog(parent, "\n")
    if isinstance(event, _LEFT_OUT):
        return None
    about = getattr(event, "tool_metadata", None)
    if (isinstance(event, _CALL) or about) and "parent" not in (about or {}):
        return replace(event, tool_metadata={**(about or {}), "parent": parent})
    return event
