"""Reads formats without a provider: plain text, stage logs, and wire events (AG-UI, chat, envelopes) as mappings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from toolcall_nb.adapters.base import Format, MessageAdapter
from toolcall_nb.adapters.common_events import unknown_item
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.errors import WireError
from toolcall_nb.stages import Stage, StageReader, UpdateToolBlockParams
from toolcall_nb.wire import Envelopes, decoder, wire_of


class TextAdapter(MessageAdapter):
    """Reads pieces of text as one text. Tool calls written in it stay text; finding them is up to a dialect."""

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one piece."""
        return self.message.text(item) if isinstance(item, str) else unknown_item(TEXT.title, item)


TEXT = Format(
    name="text", title="text, piece by piece", adapter=TextAdapter, is_item=lambda item: isinstance(item, str)
)


class StageLogAdapter:
    """Reads updates of tool blocks. Raises `WireError` for an update with ``isRunning``."""

    def __init__(self) -> None:
        self._reader = StageReader()

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one update."""
        return self._reader.feed(item)

    def close(self) -> list[Event]:
        """Ends the log; blocks that are still open were stopped."""
        return self._reader.close()


def _is_update(item: Any) -> bool:
    if isinstance(item, UpdateToolBlockParams):
        return True
    return type(item) is dict and "type" not in item and item.get("stage") in tuple(Stage) and "id" in item


STAGE_LOG = Format(name="stages", title="a log of tool blocks with stages", adapter=StageLogAdapter, is_item=_is_update)


class _WireReader(Protocol):
    def take(self, item: Any) -> list[Event]:
        """Returns the events of one object. May raise `WireError`."""

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open."""


class WireAdapter:
    """Reads the events of one message with the reader of their wire."""

    def __init__(self, reader: _WireReader, title: str) -> None:
        self._reader = reader
        self._title = title
        self._has_begun = False

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one mapping."""
        if type(item) is not dict:
            return unknown_item(self._title, item)
        try:
            return self._started(self._reader.take(item))
        except WireError as error:
            return [ev.Diagnostic(str(error), "It was left out.")]

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open."""
        return self._started(self._reader.close())

    def _started(self, events: list[Event]) -> list[Event]:
        """Puts a ``start`` before the first events of a wire that has none."""
        if not events or self._has_begun:
            return events
        self._has_begun = True
        return events if any(isinstance(event, ev.Start) for event in events) else [ev.Start(), *events]


def _wire_format(name: str, title: str, reader: Callable[[], _WireReader]) -> Format:
    return Format(
        name=name,
        title=title,
        adapter=lambda: WireAdapter(reader(), title),
        is_item=lambda item: type(item) is dict and wire_of(item) == name and not _is_others_error(item),
    )


def _is_others_error(item: dict[str, Any]) -> bool:
    """Whether an error has more fields than the chat contract allows; OpenAI's Responses API sends such errors."""
    return item["type"] == "error" and item.keys() != {"type", "message"}


AG_UI = _wire_format("ag-ui", "AG-UI events (as mappings)", lambda: decoder("ag-ui"))
CHAT_SSE = _wire_format("chat", "events of the chat contract (chunk, tool_usage, end, error)", lambda: decoder("chat"))
ENVELOPES = _wire_format("provider", "provider envelopes (provider-event, latitude-event)", Envelopes)
