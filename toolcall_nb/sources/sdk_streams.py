"""Opens streams and replies of any SDK and yields their items (`items`); `ItemReader` turns items into events."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable, Mapping
from contextlib import AsyncExitStack, ExitStack, aclosing, closing, suppress
from typing import TYPE_CHECKING, Any, cast

from toolcall_nb.adapters import (
    Format,
    Recognised,
    SourceKind,
    format_of_item,
    format_of_whole,
    items_of,
    recognise_source,
    unreadable,
)
from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.adapters.base import Adapter
from toolcall_nb.adapters.common_events import is_keepalive
from toolcall_nb.core.events import Event
from toolcall_nb.sources.event_loop import close_quietly
from toolcall_nb.sources.http_responses import is_response, must_be_awaited, response_events, response_events_async

if TYPE_CHECKING:
    from types import TracebackType


def is_asynchronous(source: Any) -> bool:
    """Whether a source must be awaited, entered or read on an event loop. Nothing of it is called."""
    recognised = recognise_source(source)
    thing = recognised.thing
    if is_response(thing):
        return must_be_awaited(thing)
    match recognised.kind:
        case SourceKind.ASYNC_STREAM | SourceKind.ASYNC_MANAGER:
            return True
        case SourceKind.NOTHING:
            is_usual = _is_value(thing) or _has(thing, "__iter__") or _has(thing, "__enter__")
            return not is_usual and (
                inspect.isawaitable(thing) or _has(thing, "__aiter__") or _has(thing, "__aenter__")
            )
        case _:
            return False


def items(source: Any) -> Generator[Any, None, None]:
    """Yields the items of a stream, opening it first if necessary; of an HTTP response, its events.

    An object that is not a stream is its own only item. ``source`` may be a `Recognised`. However the reading ends,
    the stream is closed, and a context manager that was entered is left with the error, if there is one.
    """
    recognised = recognise_source(source)
    if is_response(recognised.thing):
        with closing(response_events(recognised.thing)) as batches:
            for events in batches:
                yield from events
        return
    with ExitStack() as stack:
        if recognised.kind is SourceKind.MANAGER or _must_be_entered(recognised, "__enter__", "__iter__"):
            recognised = recognise_source(stack.enter_context(recognised.thing))
        if _is_single(recognised):
            yield recognised.thing
            return
        stream = recognised.thing
        if isinstance(stream, Mapping):  # a response that contains its stream, which is what has to be closed
            stream = items_of(stream)
        stack.callback(close_quietly, stream)
        yield from cast("Iterable[Any]", items_of(stream))


async def items_async(source: Any) -> AsyncGenerator[Any, None]:
    """Yields the items of a source that `is_asynchronous`, as `items` does. An awaitable may give any source."""
    async with AsyncExitStack() as stack:
        recognised = recognise_source(source)
        if recognised.kind is SourceKind.NOTHING and inspect.isawaitable(recognised.thing):
            recognised = recognise_source(await recognised.thing)
        if is_response(recognised.thing) and must_be_awaited(recognised.thing):
            batches = await stack.enter_async_context(aclosing(response_events_async(recognised.thing)))
            async for events in batches:
                for event in events:
                    yield event
            return
        if recognised.kind is SourceKind.ASYNC_MANAGER or _must_be_entered(recognised, "__aenter__", "__aiter__"):
            recognised = recognise_source(await stack.enter_async_context(recognised.thing))
        if not is_asynchronous(recognised):
            for item in items(recognised):
                yield item
            return
        stack.push_async_exit(_AsyncClosing(recognised.thing))
        async for item in cast("AsyncIterable[Any]", items_of(recognised.thing)):
            yield item


class _AsyncClosing:
    """Closes an asynchronous stream with its ``aclose``, or with its ``close``, which some SDKs have instead."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        close = getattr(self._stream, "aclose", None) or getattr(self._stream, "close", None)
        with suppress(Exception):
            result = close() if callable(close) else None
            if inspect.isawaitable(result):
                await result


class ItemReader:
    """Returns the events of items of any kind: text, events, chunks, whole replies, also one after the other.

    `take` raises `UsageError` for an item of no known kind. ``is_empty``: there was no item. ``is_whole``: all items
    were texts and whole replies, which say themselves what they hold. ``format`` is that of the first item, which the
    caller may know already; it is None for text and whole replies.
    """

    def __init__(self, format: Format | None = None) -> None:
        self.is_empty = self.is_whole = True
        self.format = format
        self._text = Assembler()
        self._is_text = True
        self._adapter: Adapter | None = None

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one item."""
        if isinstance(item, str):
            self.is_empty = False
            return self._text.text(item)
        if self._adapter is None and is_keepalive(item):
            return []
        events = [*self._text.end_block(), *self._read(item)]
        self.is_empty = self._is_text = False
        return events

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open."""
        if self._is_text:
            return [] if self.is_empty else self._text.close()
        return [*self._text.end_block(), *(self._adapter.close() if self._adapter is not None else ())]

    def _read(self, item: Any) -> list[Event]:
        if isinstance(item, Event):
            self.is_whole = False
            return [item]
        if self._adapter is None:
            format = (self.format if self.is_empty else None) or format_of_item(item)
            if format is None:
                if (whole := format_of_whole(item)) is not None:
                    return [*whole.read_whole(item)]
                raise unreadable(item)
            if self.is_empty:
                self.format = format
            self._adapter, self.is_whole = format.adapter(), False
        return self._adapter.take(item)


def _is_single(source: Recognised) -> bool:
    """Whether it is an item or a whole thing by itself, and not a stream."""
    is_no_stream = (
        source.kind is SourceKind.NOTHING and not _has(source.thing, "__iter__") and not _has(source.thing, "__aiter__")
    )
    is_value = _is_value(source.thing) and source.kind is not SourceKind.STREAM
    return is_value or source.kind is SourceKind.WHOLE or is_no_stream


def _is_value(thing: Any) -> bool:
    """Whether it is a value although it can be iterated over."""
    return isinstance(thing, str | bytes | Mapping | Event) or _has(thing, "model_dump")


def _must_be_entered(source: Recognised, enter: str, iterate: str) -> bool:
    return source.kind is SourceKind.NOTHING and _has(source.thing, enter) and not _has(source.thing, iterate)


def _has(thing: Any, method: str) -> bool:
    """Whether its type has a method, since Python itself looks up special methods there."""
    return hasattr(type(thing), method)
