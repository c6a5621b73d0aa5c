"""What people hold, opened: the items of a stream, whichever way it wants to be read, and the events of anything."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable, Mapping
from contextlib import AsyncExitStack, ExitStack, aclosing, closing, suppress
from typing import TYPE_CHECKING, Any, cast

from toolcall_nb.adapters import AnyAdapter, events_of, format_of_item, format_of_whole
from toolcall_nb.adapters.assembling import Assembler
from toolcall_nb.adapters.recognise import Kind, items_of, kind_of
from toolcall_nb.core.events import Event
from toolcall_nb.models.over_http.responses import is_response, must_be_awaited, response_events, response_events_async

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Reader", "close_quietly", "is_async", "items", "items_async"]


def is_async(thing: Any) -> bool:
    """Whether it must be awaited, entered or read on an event loop. Nothing of it is called."""
    if is_response(thing):
        return must_be_awaited(thing)
    match kind_of(thing):
        case Kind.ASYNC_STREAM | Kind.ASYNC_MANAGER:
            return True
        case Kind.NOTHING:
            is_usual = _is_value(thing) or _has(thing, "__iter__") or _has(thing, "__enter__")
            return not is_usual and (
                inspect.isawaitable(thing) or _has(thing, "__aiter__") or _has(thing, "__aenter__")
            )
        case _:
            return False


def items(thing: Any) -> Generator[Any, None, None]:
    """The items of a stream; of what must be entered first, those of what is in it; and what is no stream, itself.

    Of a response of an HTTP package they are its events.

    Whatever ends the reading, the stream is closed and what was entered is left, told of the error if there is one.
    """
    if is_response(thing):
        with closing(response_events(thing)) as batches:
            for events in batches:
                yield from events
        return
    with ExitStack() as stack:
        if kind_of(thing) is Kind.MANAGER or _must_be_entered(thing, "__enter__", "__iter__"):
            thing = stack.enter_context(thing)
        if _is_one(thing):
            yield thing
            return
        if isinstance(thing, Mapping):  # a response that holds its stream, which is what is closed
            thing = items_of(thing)
        stack.callback(close_quietly, thing)
        yield from cast("Iterable[Any]", items_of(thing))


async def items_async(thing: Any) -> AsyncGenerator[Any, None]:
    """As `items`, of anything that `is_async`, or that becomes such a thing, or a usual stream, when it is awaited."""
    async with AsyncExitStack() as stack:
        if kind_of(thing) is Kind.NOTHING and inspect.isawaitable(thing):
            thing = await thing
        if is_response(thing) and must_be_awaited(thing):
            batches = await stack.enter_async_context(aclosing(response_events_async(thing)))
            async for events in batches:
                for event in events:
                    yield event
            return
        if kind_of(thing) is Kind.ASYNC_MANAGER or _must_be_entered(thing, "__aenter__", "__aiter__"):
            thing = await stack.enter_async_context(thing)
        if not is_async(thing):
            for item in items(thing):
                yield item
            return
        stack.push_async_exit(_closing(thing))
        async for item in cast("AsyncIterable[Any]", items_of(thing)):
            yield item


def close_quietly(stream: Any) -> None:
    """Close what can be closed; how a stream takes its end is no news to whoever has read it."""
    with suppress(Exception):
        getattr(stream, "close", lambda: None)()


class _closing:
    """``aclose``, or ``close`` where that is what an asynchronous stream has (SDKs differ), awaited if need be."""

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


class Reader:
    """The events of items of any kind: text, events, chunks, whole replies, also one after the other.

    `take` raises `UsageError` for what is none of these. ``is_empty``: there was no item.
    """

    def __init__(self) -> None:
        self.is_empty = True
        self._text = Assembler()
        self._is_text = True
        self._stream: AnyAdapter | None = None

    def take(self, item: Any) -> list[Event]:
        """The events of one item."""
        if isinstance(item, str):
            self.is_empty = False
            return self._text.text(item)
        found = [*self._text.end_block(), *self._read(item)]
        self.is_empty = self._is_text = False
        return found

    def close(self) -> list[Event]:
        """The ends of what is open."""
        if self._is_text:
            return [] if self.is_empty else self._text.close()
        return [*self._text.end_block(), *(self._stream.close() if self._stream is not None else ())]

    def _read(self, item: Any) -> list[Event]:
        if isinstance(item, Event):
            return [item]
        if self._stream is None and format_of_item(item) is None and format_of_whole(item) is not None:
            return [*events_of(item)]
        self._stream = self._stream or AnyAdapter()
        return self._stream.take(item)


def _is_one(thing: Any) -> bool:
    """Whether it is an item or a whole thing by itself, and no stream."""
    kind = kind_of(thing)
    is_no_stream = kind is Kind.NOTHING and not _has(thing, "__iter__") and not _has(thing, "__aiter__")
    return (_is_value(thing) and kind is not Kind.STREAM) or kind is Kind.WHOLE or is_no_stream


def _is_value(thing: Any) -> bool:
    """What can be iterated, but says nothing so."""
    return isinstance(thing, str | bytes | Mapping | Event) or _has(thing, "model_dump")


def _must_be_entered(thing: Any, enter: str, iterate: str) -> bool:
    return _has(thing, enter) and not _has(thing, iterate) and kind_of(thing) is Kind.NOTHING


def _has(thing: Any, method: str) -> bool:
    """By its type, as Python itself looks up methods of this kind."""
    return hasattr(type(thing), method)
