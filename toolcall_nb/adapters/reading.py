"""Reads events: `read_stream` and `read_stream_async` from streams of any format, `events_of` from whole objects."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any

from toolcall_nb.adapters.base import Adapter, Format
from toolcall_nb.adapters.common_events import is_keepalive
from toolcall_nb.adapters.pydantic_ai import streamed_run_items
from toolcall_nb.adapters.recognise import (
    FORMATS,
    Recognised,
    format_of_item,
    format_of_whole,
    holds_bedrock_stream,
)
from toolcall_nb.core.events import Event
from toolcall_nb.core.sdk_objects import SourceKind, type_name
from toolcall_nb.errors import UsageError


def events_of(thing: Any) -> Iterable[Event]:
    """Returns the events of a complete reply or a list of messages. Raises `UsageError` for anything else."""
    if type(thing) is Recognised:
        found, thing = (thing.format if thing.kind is SourceKind.WHOLE else None), thing.thing
    else:
        found = format_of_whole(thing)
    if found is None:
        raise _unreadable(thing)
    return found.read_whole(thing)


class AnyAdapter:
    """Reads a stream of any known format, which is ``known`` or that of the first item.

    Raises `UsageError` if no format has such an item.
    """

    def __init__(self, known: Format | None = None) -> None:
        self._format = known
        self._adapter: Adapter | None = None

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one item."""
        if self._adapter is None:
            if is_keepalive(item):
                return []
            self._format = self._format or format_of_item(item)
            if self._format is None:
                raise _unreadable(item)
            self._adapter = self._format.adapter()
        return self._adapter.take(item)

    def close(self) -> list[Event]:
        """Ends the stream; one without items has no events."""
        return self._adapter.close() if self._adapter is not None else []


def read_stream(items: Iterable[Any]) -> Iterator[Event]:
    """Yields the events of a stream. An exception of the stream is raised after everything open was closed."""
    adapter = AnyAdapter()
    try:
        for item in items:
            yield from adapter.take(item)
    except Exception:
        yield from adapter.close()
        raise
    yield from adapter.close()


async def read_stream_async(items: AsyncIterable[Any]) -> AsyncIterator[Event]:
    """Yields the events of an asynchronous stream, as `read_stream` does."""
    adapter = AnyAdapter()
    try:
        async for item in items:
            for event in adapter.take(item):
                yield event
    except Exception:
        for event in adapter.close():
            yield event
        raise
    for event in adapter.close():
        yield event


def items_of(stream: Any) -> Iterable[Any] | AsyncIterable[Any]:
    """Returns what to iterate over for the items of a stream: in most cases the stream itself.

    Raises `UsageError` for an object that is not iterable.
    """
    own = stream["stream"] if holds_bedrock_stream(stream) else streamed_run_items(stream)
    if own is not None:
        return own
    if not isinstance(stream, Iterable | AsyncIterable):
        raise UsageError(f"{type(stream).__qualname__} gives no items. Pass the stream that it holds.")
    return stream


def _unreadable(thing: Any) -> UsageError:
    titles = "; ".join(known.title for known in FORMATS)
    return UsageError(f"An object of the type {type_name(thing)} cannot be read. Pass one of these: {titles}.")
