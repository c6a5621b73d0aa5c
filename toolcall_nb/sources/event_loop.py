"""Reads asynchronous streams from synchronous code, on one event loop in a thread of its own. `iterate` does it.

The loop is made when it is first needed and then stays: the clients of SDKs keep connections that belong to the loop
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

_T = TypeVar("_T")

MAX_AHEAD = 64
"""Items that a stream may be ahead of its reader."""

WHILE_WAITING: contextvars.ContextVar[Callable[[], None] | None] = contextvars.ContextVar(
    "toolcall_nb_while_waiting", default=None
)
"""A function that is called from time to time while a stream is waited for. What it raises ends the waiting."""

_CHECK_SECONDS = 0.1
"""After this time a waiting thread checks whether it was interrupted; only the main thread is woken by a signal."""

_CLOSE_SECONDS = 5.0
"""A cancelled stream may take so long to close its connection. Then it is left alone."""


def iterate(stream: Callable[[], AsyncIterator[_T]]) -> Generator[_T, None, None]:
    """Yields the items of ``stream()``, which runs as one task on the event loop, in the caller's context.

    Exceptions of the stream are raised here. When the reader closes this generator or is interrupted, the task is
    cancelled at once, and its end is awaited. Raises `UsageError` on the event loop itself, which cannot wait for
    itself.
    """
    if threading.current_thread() is _thread:
        raise UsageError("An asynchronous model cannot be waited for by another one: await what it calls instead.")
    task = _Task(stream, _running_loop())
    try:
        task.start()
        while True:
            try:
                item = task.items.get(timeout=_CHECK_SECONDS)
            except queue.Empty:
                if (check := WHILE_WAITING.get()) is not None:
                    check()
                continue
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            task.loop.call_soon_threadsafe(task.room.release)
            yield item
    finally:
        task.close()


class _End(Struct):
    error: BaseException | None


class _Task(Generic[_T]):
    """Carries the items of one stream from the loop's thread to the reader's."""

    def __init__(self, stream: Callable[[], AsyncIterator[_T]], loop: asyncio.AbstractEventLoop) -> None:
        self.items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.room = asyncio.Semaphore(MAX_AHEAD)
        self.loop = loop
        self._stream = stream
        self._has_ended = threading.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def start(self) -> None:
        """Starts the task with the caller's context variables, so that what it prints goes to the caller's cell."""
        self.loop.call_soon_threadsafe(self._begin, context=contextvars.copy_context())

    def close(self) -> None:
        """Cancels the task if it still runs, and waits for its end."""
        if not self._has_ended.is_set() and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._cancel)
            self._has_ended.wait(_CLOSE_SECONDS)

    # On the loop

    def _begin(self) -> None:
        if self._is_closed:
            self._has_ended.set()
        else:
            self._task = self.loop.create_task(self._run())

    def _cancel(self) -> None:
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        error: BaseException | None = None
        try:
            items = self._stream()
            try:
                async for item in items:
                    await self.room.acquire()
                    self.items.put(item)
            finally:
                close = getattr(items, "aclose", None)
                if close is not None:
                    await close()
        except asyncio.CancelledError:
            if not self._is_closed:
                error = ModelError("The stream was cancelled by its own side. Ask again to go on.", may_retry=True)
        except BaseException as raised:
            error = raised
        self.items.put(_End(error))
        self._has_ended.set()


# The loop --------------------------------------------------------------------------------------------------------

_starting = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop, _thread
    with _starting:
        if _loop is None or _thread is None or not _thread.is_alive():  # a fork leaves the thread behind
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_loop.run_forever, name="toolcall_nb-async", daemon=True)
            try:
                _thread.start()
            except RuntimeError as error:
                _loop.close()
                _loop = _thread = None
                raise UsageError(
                    f"An asynchronous model or agent needs a thread for its event loop, but {error} here. "
                    "Pyodide and JupyterLite have none: use a synchronous model there."
                ) from None
        return _loop


@atexit.register
def _stop_loop() -> None:
    """Cancels running tasks before the interpreter exits; otherwise asyncio warns about pending tasks."""
    if _loop is None or _thread is None or not _thread.is_alive():
        return
    cancelled = asyncio.run_coroutine_threadsafe(_cancel_all(), _loop)
    with suppress(Exception):
        cancelled.result(_CLOSE_SECONDS)
    _loop.call_soon_threadsafe(_loop.stop)
    _thread.join(1)
    if not _thread.is_alive():
        _loop.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_CLOSE_SECONDS / 2)


def close_quietly(stream: Any) -> None:
    """Closes a stream if it can be closed. Errors are ignored, since its items have been read."""
    with suppress(Exception):
        getattr(stream, "close", lambda: None)()
