"""Running a tool once: every end of it is an `Outcome`, but the user's own interrupt.

An async tool runs on a loop of its own in a worker thread, since a notebook's kernel has a running loop in the
main thread; the main thread waits where an interrupt can reach it.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import Any

from msgspec import Struct

from toolcall_nb.events import Json
from toolcall_nb.tools.schema import Signature, WrongArguments
from toolcall_nb.tools.values import json_value

__all__ = ["Outcome", "error_text", "run"]


POLL = 0.2
"""Seconds between looks for an interrupt: one that another thread caught does not wake a lock."""


class Outcome(Struct, frozen=True, kw_only=True):
    """How one run of a tool ended.

    ``output`` is the JSON form of ``value``, what the function returned. After a failure ``error`` is its text
    and ``exception`` what was raised, with its traceback; ``wrong_input`` says that the function was not called.
    """

    value: Any = None
    output: Json = None
    error: str | None = None
    exception: BaseException | None = None
    wrong_input: bool = False


def run(function: Callable[..., Any], signature: Signature, arguments: Json) -> Outcome:
    """Check the arguments, call the function, wait for it. Only `KeyboardInterrupt` gets out."""
    try:
        positional, named = signature.bind(arguments)
    except WrongArguments as error:
        return Outcome(error=str(error), exception=error, wrong_input=True)
    try:
        value = function(*positional, **named)
        if inspect.isawaitable(value):
            value = _wait_for(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: a tool must not end the kernel
        return Outcome(error=error_text(error), exception=error)
    return Outcome(value=value, output=json_value(value))


def error_text(error: BaseException) -> str:
    """``ValueError: message``, or the name alone where there is no message."""
    name = type(error).__name__
    try:
        message = str(error).strip()
    except Exception:  # an exception's own __str__ may raise
        message = ""
    return f"{name}: {message}" if message else name


def _wait_for(awaitable: Awaitable[Any]) -> Any:
    """The result of an awaitable, run on a loop in a worker thread that lives as long as the call."""
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = Future()
    done: Future[Any] = Future()

    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        started.set_result((asyncio.get_running_loop(), task))
        try:
            done.set_result(await awaitable)
        except BaseException as error:  # handed over whole: SystemExit would end the loop, and nobody would answer
            done.set_exception(error)

    def body() -> None:
        try:
            asyncio.run(work())
        except BaseException as error:  # no loop could be made; the caller waits for one answer or the other
            if not done.done():
                done.set_exception(error)

    context = contextvars.copy_context()
    thread = Thread(target=context.run, args=(body,), name="toolcall-nb async tool", daemon=True)
    thread.start()
    try:
        while not wait((done,), POLL).done:
            pass
        return done.result()
    except KeyboardInterrupt:
        if started.done() and not done.done():
            loop, task = started.result()
            loop.call_soon_threadsafe(task.cancel)
        raise
    finally:
        if done.done():
            thread.join(timeout=1.0)
