"""What both directions of AG-UI share: the names, and how a chunk travels in an event's metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcall_nb.core.events import Event, Json, Object, from_dict, to_dict
from toolcall_nb.errors import WireError
from toolcall_nb.wire.base import mapping

__all__ = [
    "CHUNK",
    "EVENT_TYPES",
    "NAME",
    "OURS",
    "PROTOCOL_VERSION",
    "STATE",
    "USAGE",
    "chunk",
    "ours",
    "ours_of",
    "rest_of",
    "text_of",
]

NAME = "ag-ui"
PROTOCOL_VERSION = "1.0"

EVENT_TYPES = frozenset(
    [
        *("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "STEP_STARTED", "STEP_FINISHED", "MESSAGES_SNAPSHOT"),
        *("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "TEXT_MESSAGE_CHUNK"),
        *("REASONING_START", "REASONING_END", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT"),
        *("REASONING_MESSAGE_END", "REASONING_MESSAGE_CHUNK", "REASONING_ENCRYPTED_VALUE"),
        *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_CHUNK", "TOOL_CALL_RESULT"),
        *("STATE_SNAPSHOT", "STATE_DELTA", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "CUSTOM", "RAW"),
        *("SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR"),
    ]
)
"""The types of the protocol's events (ag_ui.core.EventType)."""

OURS = "toolcall_nb"
"""The key of an event's ``metadata`` under which this package says what AG-UI has no field for."""

CHUNK = "toolcall_nb.chunk"
"""The name of the ``CUSTOM`` events that hold a chunk."""

STATE = "state"
"""The name and id of the data part that is AG-UI's state."""

USAGE: Mapping[str, str] = {
    "inputTokens": "inputTokens",
    "outputTokens": "outputTokens",
    "totalTokens": "totalTokens",
    "reasoningTokens": "reasoningTokens",
    "cachedInputTokens": "cachedInputTokens",
    "cacheWriteTokens": "cacheWriteInputTokens",
}
"""The names of the token counts: here, and in AG-UI."""


def ours(fields: Mapping[str, Json]) -> Object:
    """The ``metadata`` that holds these fields of a chunk; nothing where there are none."""
    return {"metadata": {OURS: dict(fields)}} if fields else {}


def ours_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """What `ours` has put into the event; ``type: null`` in it says that the event brings nothing new."""
    return mapping(mapping(event.get("metadata")).get(OURS))


def rest_of(event: Event, *native: str) -> Object:
    """The fields of the event's chunk but these, which AG-UI has a place for."""
    chunk = to_dict(event)
    return {key: value for key, value in chunk.items() if key != "type" and key not in native}


def chunk(event: Mapping[str, Any], kind: str, **native: Any) -> Iterator[Event]:
    """The event as the chunk ``kind``: by its own fields, or by what this package has said in its metadata."""
    told = ours_of(event)
    if told.get("type", kind) is not None:
        yield from_dict({"type": kind, **native, **told})


def text_of(event: Mapping[str, Any], name: str) -> str:
    """The field ``name`` of the event, which is text; `WireError` where it is not."""
    value = event.get(name)
    if not isinstance(value, str):
        raise WireError(f"A {event.get('type')} needs a string {name!r}, but is {event!r:.200}. Check who sends it.")
    return value
