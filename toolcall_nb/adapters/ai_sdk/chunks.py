"""Our own events, and the chunks of the AI SDK's UI message stream, which are the same as mappings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolcall_nb.adapters.base import Format, never
from toolcall_nb.adapters.parts import strange_item
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import CHUNK_TYPES, Event, Other, from_dict
from toolcall_nb.errors import WireError

__all__ = ["FORMAT", "UIChunksAdapter"]

_TITLE = "a UI message stream (events, or chunks as mappings)"
_EVENTS: tuple[type[Any], ...] = (*CHUNK_TYPES.values(), Other)
_BARE = frozenset({"start", "finish", "abort", "start-step", "finish-step", "reset-step", "message-metadata", "error"})
"""Types that other vocabularies have too: what else a chunk holds must be known here."""


class UIChunksAdapter:
    """Reads a stream of events as it is. One that breaks off is ended as stopped."""

    def __init__(self) -> None:
        self._is_open = False

    def take(self, item: Any) -> list[Event]:
        """The event that the item is."""
        event = _event(item)
        if event is None:
            return strange_item(_TITLE, item)
        self._is_open = not isinstance(event, ev.Finish | ev.Abort)
        return [event]

    def close(self) -> list[Event]:
        """Without a ``finish``, the message is ended; its open calls stay as they are."""
        self._is_open, was_open = False, self._is_open
        return [ev.Finish()] if was_open else []


def _event(item: Any) -> Event | None:
    if isinstance(item, _EVENTS):
        own: Event = item
        return own
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


def _whole(_: Any) -> Iterator[Event]:
    yield from ()


FORMAT = Format(
    name="ui-chunks",
    title=_TITLE,
    is_item=_is_item,
    adapter=UIChunksAdapter,
    is_whole=never,
    whole=_whole,
)
