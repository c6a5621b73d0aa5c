"""The streams of agents inside calls: `with_nested` merges them into the stream of the agent around the call.

`RunsReader` reads their items.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from msgspec import Struct

from toolcall_nb.adapters.nesting import RunSteps, with_paths
from toolcall_nb.core.events import Event


class StreamReader(Protocol):
    """Reads the items of one stream as events."""

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one item."""
        ...

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open."""
        ...


class AgentItem(Struct, frozen=True):
    """An item of an agent's stream: with the agent's name, and with the path of the call that the agent runs inside of.

    ``parent`` is empty for the run itself.
    """

    item: Any
    agent: str | None = None
    parent: str = ""


class RunsReader:
    """Reads the items of a run and of the runs inside its calls. All that a nested agent says belongs to the call.

    ``make_reader`` creates the reader of one agent's stream. ``agent`` names the run's first agent.
    """

    def __init__(self, make_reader: Callable[[], StreamReader], agent: str | None = None) -> None:
        self._make_reader = make_reader
        self._agent = agent
        self._runs: dict[str, tuple[StreamReader, RunSteps]] = {}

    def events_of(self, item: Any) -> Iterator[Event]:
        """Yields the events of one item."""
        if not isinstance(item, AgentItem):
            item = AgentItem(item)
        parent = item.parent
        if parent not in self._runs:
            self._runs[parent] = self._make_reader(), RunSteps(None if parent else self._agent, parent or None)
        reader, steps = self._runs[parent]
        steps.agent = item.agent or steps.agent
        is_event = parent and isinstance(item.item, Event)
        events = [item.item] if is_event else with_paths(reader.take(item.item), parent)
        yield from steps.events_of(events)

    def close(self) -> Iterator[Event]:
        """Yields the closing events, those of the run itself last."""
        self._runs.setdefault("", (self._make_reader(), RunSteps(self._agent)))
        for parent, (reader, steps) in sorted(self._runs.items(), reverse=True):
            yield from steps.events_of(with_paths(reader.close(), parent))


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
