"""The streams of agents inside calls: `with_nested` merges them into the stream of the agent around the call.

`NestedReader` reads their items, and `nested_events` puts the events of a nested agent into the call that started it.

The id of a call of a nested agent is its path: the framework's ids of the calls around it, outermost first, and its
own, joined by `SEPARATOR`. So the same id in two agents is not the same call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event

SEPARATOR = "\x1f"
"""Separates the ids of a path: the unit separator of ASCII, which no framework puts into an id."""


class StreamReader(Protocol):
    """Reads the items of one stream as events."""

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one item."""
        ...

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open."""
        ...


class NestedItem(Struct, frozen=True):
    """An item of the stream of an agent that runs inside the call with the path ``parent``."""

    parent: str
    item: Any


class NestedReader:
    """Reads the items of nested agents: their calls get paths and a parent, their text is the log of the call around.

    ``make_reader`` creates the reader of one agent's stream.
    """

    def __init__(self, make_reader: Callable[[], StreamReader]) -> None:
        self._make_reader = make_reader
        self._readers: dict[str, StreamReader] = {}

    def events_of(self, nested: NestedItem) -> list[Event]:
        """Returns the events of one item."""
        parent = nested.parent
        if isinstance(nested.item, Event):
            return [nested.item]
        if parent not in self._readers:
            self._readers[parent] = self._make_reader()
        events: list[Any] = [*self._readers[parent].take(nested.item)]
        for index, event in enumerate(events):
            if (call_id := getattr(event, "tool_call_id", None)) is not None:
                events[index] = replace(event, tool_call_id=call_path(parent, call_id))
        return nested_events(events, parent)


def call_path(parent: str, call_id: str) -> str:
    """Returns the path of a call with this id inside the call with the path ``parent``, which may be empty."""
    return f"{parent}{SEPARATOR}{call_id}" if parent else call_id


# Watching -----------------------------------------------------------------------------------------------------

_watcher: ContextVar[Callable[[Any], None] | None] = ContextVar("toolcall_nb_nested_watcher", default=None)
_path: ContextVar[str] = ContextVar("toolcall_nb_call_path", default="")


def nested_watcher() -> Callable[[Any], None] | None:
    """Returns the function that takes the items of nested agents in this context; None where nobody watches."""
    return _watcher.get()


def current_path() -> str:
    """Returns the path of the call that the code of this context runs inside of; empty outside of calls."""
    return _path.get()


@contextmanager
def inside_call(path: str) -> Iterator[None]:
    """Marks what runs within as the inside of the call with this path."""
    token = _path.set(path)
    try:
        yield
    finally:
        _path.reset(token)


async def with_nested(make_items: Callable[[], AsyncIterator[Any]]) -> AsyncIterator[Any]:
    """Yields the items of a run, and the items that `nested_watcher` is given meanwhile, as they come.

    The run is a task of its own, in whose context the watcher is set. Closing this iterator cancels the run and waits
    for its end.
    """
    queue: asyncio.Queue[Any] = asyncio.Queue()
    end = object()

    loop = asyncio.get_running_loop()

    def put(item: Any) -> None:  # also from a tool's thread, which may run an agent on a loop of its own
        loop.call_soon_threadsafe(queue.put_nowait, item)

    async def run() -> None:
        _watcher.set(put)
        _path.set("")
        items = make_items()
        try:
            async for item in items:
                put(item)
        finally:
            close = getattr(items, "aclose", None)
            if close is not None:
                await close()
            put(end)

    task = asyncio.create_task(run())
    try:
        while (item := await queue.get()) is not end:
            yield item
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


# Events of nested agents ------------------------------------------------------------------------------------

_DROPPED = (
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
    return [nested for event in events if (nested := _nested(event, parent)) is not None]


def _nested(event: Event, parent: str) -> Event | None:
    if isinstance(event, ev.TextDelta | ev.ReasoningDelta):
        return ev.ToolLog(parent, event.delta)
    if isinstance(event, ev.TextEnd | ev.ReasoningEnd):
        return ev.ToolLog(parent, "\n")
    if isinstance(event, _DROPPED):
        return None
    metadata = getattr(event, "tool_metadata", None) or {}
    if (isinstance(event, _CALL) or metadata) and "parent" not in metadata:
        return replace(event, tool_metadata={**metadata, "parent": parent})
    return event
