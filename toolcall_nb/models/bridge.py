"""Asynchronous streams for callers that are not: one event loop in a thread of its own.

The loop is made when it is first needed and stays, since the clients of SDKs keep connections that belong to the loop
on which they were opened.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import queue
import threading
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import suppress
from typing import Any, Generic, TypeVar

from msgspec import Struct

from toolcall_nb.errors import ModelError, UsageError

__all__ = ["iterate"]

_T = TypeVar("_T")

AHEAD = 64
"""Items that a stream may be ahead of whoever reads it."""

_LOOK = 0.1
"""Seconds after which a thread that waits looks whether it was interrupted; only the main thread is woken by that."""

_END_WITHIN = 5.0
"""Seconds that a cancelled stream may take to close what it holds; then it is left to itself."""


def iterate(stream: Callable[[], AsyncIterator[_T]]) -> Generator[_T, None, None]:
    """The items of ``stream()``, which runs as one task on the loop of this module, in the caller's context.

    What it raises is raised here. ``close``, an interrupt, and whatever else ends the reading, cancel the task at
    once and wait until it has ended. Raises `UsageError` on that loop itself, which cannot wait for itself.
    """
    if threading.current_thread() is _thread:
        raise UsageError("An asynchronous model cannot be waited for by another one: await what it calls instead.")
    task = _Task(stream, _running_loop())
    task.start()
    try:
        yield from task.items()
    finally:
        task.close()


class _End(Struct):
    error: BaseException | None


class _Task(Generic[_T]):
    """One stream on its way from the loop's thread to the reader's."""

    def __init__(self, stream: Callable[[], AsyncIterator[_T]], loop: asyncio.AbstractEventLoop) -> None:
        self._stream = stream
        self._loop = loop
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._room = asyncio.Semaphore(AHEAD)
        self._ended = threading.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def start(self) -> None:
        """Begin, with the context variables of the caller: what the stream prints finds the caller's cell."""
        self._loop.call_soon_threadsafe(self._begin, context=contextvars.copy_context())

    def items(self) -> Generator[_T, None, None]:
        """Each as soon as it is there."""
        while True:
            item = self._next()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            self._loop.call_soon_threadsafe(self._room.release)
            yield item

    def close(self) -> None:
        """Cancel what still runs, and wait for its end."""
        if not self._ended.is_set() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)
            self._ended.wait(_END_WITHIN)

    def _next(self) -> Any:
        while True:
            try:
                return self._items.get(timeout=_LOOK)
            except queue.Empty:
                continue

    # On the loop

    def _begin(self) -> None:
        if self._is_closed:
            self._ended.set()
            return
        self._task = self._loop.create_task(self._run())

    def _cancel(self) -> None:
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        error: BaseException | None = None
        try:
            await self._pass_on()
        except asyncio.CancelledError:
            if not self._is_closed:
                error = ModelError("The stream was cancelled by its own side. Ask again to go on.", may_retry=True)
        except BaseException as raised:
            error = raised
        self._items.put(_End(error))
        self._ended.set()

    async def _pass_on(self) -> None:
        items = self._stream()
        try:
            async for item in items:
                await self._room.acquire()
                self._items.put(item)
        finally:
            close = getattr(items, "aclose", None)
            if close is not None:
                await close()


# The loop --------------------------------------------------------------------------------------------------------

_starting = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop, _thread
    with _starting:
        if _loop is None or _thread is None or not _thread.is_alive():  # it is not after a fork
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_loop.run_forever, name="toolcall_nb-async", daemon=True)
            _thread.start()
        return _loop


def _stop() -> None:
    """At the end of the interpreter: what still runs is cancelled first, and a loop that is not closed complains."""
    if _loop is None or _thread is None or not _thread.is_alive():
        return
    cancelled = asyncio.run_coroutine_threadsafe(_cancel_all(), _loop)
    with suppress(Exception):
        cancelled.result(_END_WITHIN)
    _loop.call_soon_threadsafe(_loop.stop)
    _thread.join(1)
    if not _thread.is_alive():
        _loop.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_END_WITHIN / 2)


atexit.register(_stop)
