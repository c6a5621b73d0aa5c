"""Reads this package's events, and the chunks of the AI SDK's UI message stream, which are the same as mappings."""

from __future__ import annotations

from typing import Any, cast

from toolcall_nb.adapters.base import Format
from toolcall_nb.adapters.common_events import unknown_item
from toolcall_nb.core import events as ev
from toolcall_nb.core.call_states import CALL_ENDS
from toolcall_nb.core.events import CHUNK_TYPES, Event, Other, from_dict
from toolcall_nb.errors import WireError

_EVENTS: tuple[type[Any], ...] = (*CHUNK_TYPES.values(), Other)
_BARE = frozenset({"start", "finish", "abort", "start-step", "finish-step", "reset-step", "message-metadata", "error"})
"""Types that other formats have too: a chunk of these types may only have fields that are known here."""


class UIChunksAdapter:
    """Passes the events of a stream on as they are. A stream that breaks off is ended."""

    def __init__(self) -> None:
        self._is_open = False
        self._writing: dict[str, None] = {}  # ids of calls whose arguments arrive

    def take(self, item: Any) -> list[Event]:
        """Returns the item as an event."""
        event = _event(item)
        if event is None:
            return unknown_item(UI_CHUNKS.title, item)
        self._is_open = not isinstance(event, ev.Finish | ev.Abort)
        match event:
            case ev.ToolInputStart():
                self._writing[event.tool_call_id] = None
            case ev.Error() | ev.Abort():
                self._writing.clear()
            case ev.ToolInputAvailable() | ev.ToolRetracted():
                self._writing.pop(event.tool_call_id, None)
            case _ if isinstance(event, CALL_ENDS):
                self._writing.pop(event.tool_call_id, None)
        return [event]

    def close(self) -> list[Event]:
        """Ends the message if it has no ``finish``. A call whose arguments still arrived is interrupted."""
        self._is_open, was_open = False, self._is_open
        return [*map(ev.ToolInterrupted, self._writing), ev.Finish()] if was_open else []


def _event(item: Any) -> Event | None:
    if isinstance(item, _EVENTS):
        return cast(Event, item)
    try:
        return from_dict(item) if type(item) is dict else None
    except WireError:
        return None


def _is_item(item: Any) -> bool:
    if isinstance(item, _EVENTS):
        return True
    kind = item.get("type") if type(item) is dict else None
    if not isinstance(kind, str) or not (kind in CHUNK_TYPES or kind.startswith("data-")):
        return False
    event = _event(item)
    return event is not None and not (kind in _BARE and event.extra)


UI_CHUNKS = Format(
    name="ui-chunks",
    title="a UI message stream (events, or chunks as mappings)",
    adapter=UIChunksAdapter,
    is_item=_is_item,
)
