"""Events of the wires as mappings, as a file or a function gives them: AG-UI, the chat contract, provider envelopes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from toolcall_nb.adapters.base import Format, never
from toolcall_nb.adapters.parts import strange_item
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.errors import WireError
from toolcall_nb.wire import Envelopes, decoder, wire_of

__all__ = ["AG_UI", "CHAT", "ENVELOPES", "WireAdapter"]


class _Reader(Protocol):
    def take(self, item: Any) -> list[Event]:
        """The events of one object. May raise `WireError`."""

    def close(self) -> list[Event]:
        """The end of what is open."""


class WireAdapter:
    """Reads the events of one message with the reader of their wire."""

    def __init__(self, reader: _Reader, title: str) -> None:
        self._reader = reader
        self._title = title
        self._has_begun = False

    def take(self, item: Any) -> list[Event]:
        """The events of one mapping."""
        if type(item) is not dict:
            return strange_item(self._title, item)
        try:
            return self._begun(self._reader.take(item))
        except WireError as error:
            return [ev.Diagnostic(str(error), "It was left out.")]

    def close(self) -> list[Event]:
        """The stream is over, or was cut off: the ends of what is open."""
        return self._begun(self._reader.close())

    def _begun(self, events: list[Event]) -> list[Event]:
        """The events, after a ``start`` if the wire has none."""
        if not events or self._has_begun:
            return events
        self._has_begun = True
        return events if any(isinstance(event, ev.Start) for event in events) else [ev.Start(), *events]


def _whole(_: Any) -> Iterator[Event]:
    yield from ()


def _format(name: str, title: str, reader: Callable[[], _Reader]) -> Format:
    return Format(
        name=name,
        title=title,
        is_item=lambda item: type(item) is dict and wire_of(item) == name and not _is_others_error(item),
        adapter=lambda: WireAdapter(reader(), title),
        is_whole=never,
        whole=_whole,
    )


def _is_others_error(item: dict[str, Any]) -> bool:
    """Whether it is an error with more fields than the chat contract gives one, as OpenAI's Responses API sends it."""
    return item["type"] == "error" and item.keys() != {"type", "message"}


AG_UI = _format("ag-ui", "AG-UI events (as mappings)", lambda: decoder("ag-ui"))
CHAT = _format("chat", "events of the chat contract (chunk, tool_usage, end, error)", lambda: decoder("chat"))
ENVELOPES = _format("provider", "provider envelopes (provider-event, latitude-event)", Envelopes)
