"""One connection to an MCP server: the official client, on an event loop in a thread of its own.

The client wants to be entered and left by one task, and a notebook's own loop is busy while a cell runs; so a
daemon thread holds the client open, and other threads hand it coroutines and wait where an interrupt reaches
them.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

__all__ = ["Connection", "Lost", "Tell"]

POLL = 0.2
"""Seconds between looks for an interrupt, and for a connection that has ended."""

CLOSING = 15.0
"""Seconds that a server has to end, before it is left to the system; the client itself kills it after six."""

T = TypeVar("T")
Tell = Callable[[str], None]
Client = AbstractAsyncContextManager[Any]


class Lost(Exception):
    """The connection has ended, for a ``reason`` where one is known."""

    def __init__(self, reason: BaseException | None) -> None:
        super().__init__("the connection was lost")
        self.reason = reason


class Connection:
    """A client that is open, until it is closed or lost.

    ``clients`` are tried in order, and the first that connects is the one. The constructor waits for it, up to
    ``seconds``; it raises what the first client raised, or `TimeoutError`.
    """

    def __init__(self, clients: Sequence[Callable[[], Client]], seconds: float) -> None:
        self._clients = clients
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._reason: BaseException | None = None
        self._ready: Future[Any] = Future()
        self._thread = threading.Thread(target=self._body, name="toolcall-nb MCP client", daemon=True)
        self._thread.start()
        try:
            self._client = _waited(self._ready, seconds)
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        """Whether the client still runs; it may not have noticed yet that the server is gone."""
        return self._thread.is_alive() and not self._closing.is_set()

    def run(self, work: Callable[[Any, Tell], Awaitable[T]], tell: Tell) -> T:
        """What ``work(client, tell)`` gives, on the client's loop; ``tell`` is called here, in this thread.

        An interrupt cancels the work, and the client tells the server so. Raises `Lost`, or what ``work`` raises.
        """
        if not self.is_open:
            raise self._lost()
        news: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        call = _Call()

        async def body() -> T:
            call.begin()
            return await work(self._client, news.put)

        try:
            future = self._submitted(body())
            future.add_done_callback(lambda _: news.put(None))
            while (line := self._next(news)) is not None:
                tell(line)
        except BaseException:
            with contextlib.suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(call.cancel)
            raise
        if future.cancelled():
            raise self._lost()
        return future.result()

    def close(self) -> None:
        """End the connection, and the server with it where that was started for it. Waits for that."""
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            self._loop.call_soon_threadsafe(self._stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(CLOSING)

    def _submitted(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # the loop ended in this very moment
            work.close()
            raise self._lost() from None

    def _next(self, news: queue.SimpleQueue[str | None]) -> str | None:
        while True:
            with contextlib.suppress(queue.Empty):
                return news.get(timeout=POLL)
            if not self._thread.is_alive() and news.empty():
                raise self._lost()

    def _lost(self) -> Lost:
        self._thread.join(CLOSING)
        return Lost(self._reason)

    def _stop(self) -> None:
        self._closing.set()
        if self._task is not None and not self._ready.done():
            self._task.cancel()

    def _body(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._hold())
        except BaseException as error:  # handed to who waits for the client, or to the calls that find it lost
            self._reason = error
            if not self._ready.done():
                self._ready.set_exception(error)

    async def _hold(self) -> None:
        self._task = asyncio.current_task()
        async with AsyncExitStack() as stack:
            client = await self._entered(stack)
            self._ready.set_result(client)
            await self._closing.wait()

    async def _entered(self, stack: AsyncExitStack) -> Any:
        first: Exception | None = None
        for client in self._clients:
            try:
                return await stack.enter_async_context(client())
            except Exception as error:
                first = first or error
        raise first or ValueError("there is no client to try")


class _Call:
    """What runs on the client's loop for one call, and can be cancelled before it is known there.

    An interrupt may come while the work is handed over: the loop has it then, and who waits for it holds nothing.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._is_cancelled = False

    def begin(self) -> None:
        """The current task is the call."""
        if self._is_cancelled:
            raise asyncio.CancelledError
        self._task = asyncio.current_task()

    def cancel(self) -> None:
        """Cancel the task, or keep it from beginning. On the loop, as `begin`."""
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()


def _waited(ready: Future[T], seconds: float) -> T:
    left = seconds
    while not wait((ready,), POLL).done:
        left -= POLL
        if left <= 0:
            raise TimeoutError(f"no answer within {seconds:g} s")
    return ready.result()
