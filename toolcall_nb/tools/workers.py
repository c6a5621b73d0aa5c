"""A call in a thread of its own, which can be waited for, interrupted and, in the end, given up.

An async tool runs there on a loop of its own, since a notebook's kernel has a running loop in the main thread.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any

from toolcall_nb.tools.deadlines import Deadline, TimedOut
from toolcall_nb.tools.interrupting import OwnThread, check_stop, surely
from toolcall_nb.tools.yields import Step, drain, drain_async

__all__ = ["POLL", "Worker", "in_worker", "is_async"]

POLL = 0.2
"""Seconds between looks for an interrupt: one that another thread caught does not wake a lock."""

GRACE = 1.0
"""Seconds that a call has, after its interrupt, to end in its own way."""


def in_worker(body: Callable[[], Any], step: Step, deadline: Deadline) -> Any:
    """What ``body`` gives in a thread of its own: a value, or the last one of an awaitable or a generator.

    Raises what it raised, `TimeoutError` where it takes longer, and `KeyboardInterrupt` where this thread is
    interrupted or asked to stop; what does not end even so is left behind.
    """
    worker = Worker(body, step)
    try:
        worker.start()
        if worker.wait(deadline.left):
            return worker.result()
        worker.stop(TimedOut)
        worker.wait(GRACE)
        raise deadline.error(worker.trace)
    except KeyboardInterrupt:
        surely(worker.stop)
        raise


def is_async(value: Any) -> bool:
    """Whether a loop is needed to get at what it stands for."""
    return inspect.isawaitable(value) or inspect.isasyncgen(value)


class Worker:
    """One call in a thread of its own, which has the context of the thread that made it."""

    def __init__(self, body: Callable[[], Any], step: Step) -> None:
        self._body, self._step = body, step
        self._answer: Future[Any] = Future()
        self._lock = threading.Lock()
        self._cancel: Callable[[], Any] | None = None
        self._stopped = False
        self._thread = OwnThread(self._live, "tool")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wait(self, seconds: float | None) -> bool:
        """Until there is an answer, at most this long; whether there is. An interrupt gets in within `POLL`."""
        end = None if seconds is None else time.monotonic() + seconds
        while not self._answer.done():
            check_stop()
            left = POLL if end is None else min(POLL, end - time.monotonic())
            if left <= 0:
                return False
            wait((self._answer,), left)
        return True

    def result(self) -> Any:
        """The answer; raises it where it is an exception. The thread gets a moment to end as well."""
        self._thread.join(GRACE)
        return self._answer.result()

    @property
    def trace(self) -> Any:
        """The traceback of the answer, if it is an exception."""
        error = self._answer.exception() if self._answer.done() else None
        return error.__traceback__ if error is not None else None

    def stop(self, exception: type[BaseException] = KeyboardInterrupt) -> None:
        """Interrupt it, unless there is an answer: a task is cancelled, other code gets the exception."""
        with self._lock:
            self._stopped = True
            if self._answer.done():
                return
            if self._cancel is not None:
                with suppress(RuntimeError):  # the loop has been closed meanwhile
                    self._cancel()
                return
        self._thread.stop(exception)

    def _live(self) -> None:
        try:
            value = self._body()
            if is_async(value):
                asyncio.run(self._await(value))
            elif inspect.isgenerator(value):
                self._tell(drain(value, self._step, lambda: self._stopped))
            else:
                self._tell(value)
        except BaseException as error:
            self._tell(error=error)

    async def _await(self, value: Any) -> None:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        with self._lock:
            if self._stopped:
                task.cancel()
            self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            self._tell(await (drain_async(value, self._step) if inspect.isasyncgen(value) else value))
        except BaseException as error:  # handed over whole: SystemExit would end the loop before there is an answer
            self._tell(error=error)

    def _tell(self, value: Any = None, error: BaseException | None = None) -> None:
        with self._lock:
            if self._answer.done():
                return
            if error is None:
                self._answer.set_result(value)
            else:
                self._answer.set_exception(error)
