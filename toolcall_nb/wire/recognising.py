"""Telling the wires apart, by what a response says of itself and by how it begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolcall_nb.core.events import CHUNK_TYPES, Event, Object
from toolcall_nb.wire import chat_sse, provider, ui_stream
from toolcall_nb.wire.ag_ui.terms import EVENT_TYPES
from toolcall_nb.wire.ag_ui.terms import NAME as AG_UI
from toolcall_nb.wire.base import JsonEvents

__all__ = ["recognised", "wire_of"]

_STREAM = ("text/event-stream", "text/plain", "application/octet-stream", "application/x-ndjson", "")
"""Content types under which streams of events are sent, not all of them rightly."""


def recognised(content_type: str | None, headers: Mapping[str, str], first_bytes: bytes) -> str | None:
    """The name of the wire that a response speaks, or None.

    The AI SDK's stream has a header of its own; the others are told by the first event that they all send: as long as
    ``first_bytes`` hold no whole event, and for a response that is none of the wires, the answer is None.
    """
    if any(name.lower() in ui_stream.HEADERS for name in headers):
        return ui_stream.NAME
    if (content_type or "").partition(";")[0].strip().lower() not in _STREAM:
        return None
    found: list[str] = []

    def look(event: Object) -> Iterator[Event]:
        name = wire_of(event)
        found.extend([name] if name else [])
        return iter(())

    def end(_: bool) -> Iterator[Event]:
        return iter(())

    JsonEvents(look, end).feed(first_bytes)
    return found[0] if found else None


def wire_of(event: Object) -> str | None:
    """The name of the wire that sends such an event, or None."""
    kind = event.get("type")
    if not isinstance(kind, str):
        return None
    if kind in ("provider-event", "latitude-event"):
        return provider.NAME
    if kind in ("chunk", "tool_usage", "end") or (kind == "error" and "message" in event):
        return chat_sse.NAME
    if kind in EVENT_TYPES:
        return AG_UI
    is_chunk = (kind in CHUNK_TYPES or kind.startswith("data-")) and (kind != "error" or "errorText" in event)
    return ui_stream.NAME if is_chunk else None
