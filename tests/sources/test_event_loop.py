"""Asynchronous streams are read by synchronous code."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from toolcall_nb.errors import ModelError, UsageError
from toolcall_nb.sources.event_loop import MAX_AHEAD, iterate

WITHIN = 30


class Endless:
    """Yields numbers until it is closed; records how many, and whether it was cancelled."""

    def __init__(self) -> None:
        self.made = 0
        self.was_cancelled = threading.Event()

    async def __call__(self) -> AsyncIterator[int]:
        try:
            while True:
                self.made += 1
                yield self.made
                await asyncio.sleep(0)
        finally:
            self.was_cancelled.set()


async def three() -> AsyncIterator[int]:
    for number in range(3):
        await asyncio.sleep(0)
        yield number


def test_items_come_in_order() -> None:
    assert list(iterate(three)) == [0, 1, 2]


def test_it_works_inside_a_running_loop_as_in_a_cell() -> None:
    async def cell() -> list[int]:
        return list(iterate(three))

    assert asyncio.run(cell()) == [0, 1, 2]


def test_an_exception_of_the_stream_is_raised_after_the_items_before_it() -> None:
    async def broken() -> AsyncIterator[int]:
        yield 1
        raise ConnectionError("gone")

    stream = iterate(broken)
    assert next(stream) == 1
    with pytest.raises(ConnectionError):
        next(stream)


def test_a_stream_that_its_own_side_cancels_is_an_error_for_the_reader() -> None:
    async def cancelled() -> AsyncIterator[int]:
        yield 1
        raise asyncio.CancelledError

    with pytest.raises(ModelError, match="cancelled"):
        list(iterate(cancelled))


def test_closing_cancels_the_stream_and_waits_for_its_end() -> None:
    endless = Endless()
    stream = iterate(endless)
    assert [next(stream), next(stream)] == [1, 2]
    stream.close()
    assert endless.was_cancelled.is_set()


def test_closing_cancels_a_stream_that_waits() -> None:
    ended = threading.Event()

    async def waiting() -> AsyncIterator[int]:
        yield 1
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    stream = iterate(waiting)
    next(stream)
    stream.close()
    assert ended.is_set()


def test_a_stream_is_never_too_far_ahead_of_its_reader() -> None:
    endless = Endless()
    stream = iterate(endless)
    for _ in range(10):
        next(stream)
    settled = threading.Event()
    settled.wait(0.05)
    assert endless.made <= MAX_AHEAD + 11
    stream.close()


def test_the_stream_is_one_task_in_the_context_of_the_caller() -> None:
    cell = contextvars.ContextVar("cell", default="none")
    tasks: set[Any] = set()

    async def asked() -> AsyncIterator[str]:
        for _ in range(3):
            tasks.add(asyncio.current_task())
            yield cell.get()
            await asyncio.sleep(0)

    cell.set("this one")
    assert list(iterate(asked)) == ["this one"] * 3
    assert len(tasks) == 1


def test_an_asynchronous_iterator_without_aclose_is_read_too() -> None:
    class Counting:
        def __init__(self) -> None:
            self.number = 0

        def __aiter__(self) -> Counting:
            return self

        async def __anext__(self) -> int:
            self.number += 1
            if self.number > 2:
                raise StopAsyncIteration
            return self.number

    assert list(iterate(Counting)) == [1, 2]


def test_all_streams_share_one_loop() -> None:
    loops: set[Any] = set()

    async def asked() -> AsyncIterator[None]:
        loops.add(asyncio.get_running_loop())
        yield None

    for _ in range(2):
        list(iterate(asked))
    assert len(loops) == 1


def test_a_stream_that_blocks_the_loop_with_another_stream_is_refused() -> None:
    async def nested() -> AsyncIterator[int]:
        for number in iterate(three):
            yield number

    with pytest.raises(UsageError, match="await"):
        list(iterate(nested))


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())  # other tests may have left tools that never end
    yield
    names = {thread.name for thread in set(threading.enumerate()) - before}
    assert not {name for name in names if name.startswith("toolcall_nb")} - {"toolcall_nb-async"}
