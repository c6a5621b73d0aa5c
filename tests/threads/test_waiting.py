"""Threads that wait for the next task."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.support.servers import PATIENCE
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.live_runs.run import Run
from toolcall_nb.threads import waiting
from toolcall_nb.threads.waiting import WaitingThreads


def started(threads: WaitingThreads, task: Any) -> threading.Thread:
    thread = threads.start(task)
    assert thread is not None
    return thread


def thread_of(threads: WaitingThreads) -> threading.Thread:
    """Returns the thread of a task that has ended."""
    ended = threading.Event()
    thread = started(threads, ended.set)
    assert ended.wait(PATIENCE)
    while not threads._idle and thread.is_alive():
        thread.join(0.001)
    return thread


def test_a_task_gets_the_thread_that_waits() -> None:
    threads = WaitingThreads("test")
    assert len({thread_of(threads) for _ in range(5)}) == 1


def test_a_task_gets_a_new_thread_while_all_others_are_busy() -> None:
    threads, gate, both = WaitingThreads("test"), threading.Event(), threading.Barrier(3)

    def task() -> None:
        both.wait(PATIENCE)
        gate.wait(PATIENCE)

    first, second = started(threads, task), started(threads, task)
    both.wait(PATIENCE)
    gate.set()
    assert first is not second


def test_a_thread_ends_after_a_while_without_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_IDLE_SECONDS", 0.01)
    threads = WaitingThreads("test")
    thread = started(threads, lambda: None)
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert thread_of(threads) is not thread


def test_no_task_is_lost_while_threads_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_IDLE_SECONDS", 0.0)
    threads, ended = WaitingThreads("test"), threading.Semaphore(0)
    for _ in range(500):
        started(threads, ended.release)
    assert all(ended.acquire(timeout=PATIENCE) for _ in range(500))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_task_that_raises_ends_its_thread_only() -> None:
    threads = WaitingThreads("test")

    def fail() -> None:
        raise ValueError

    thread = started(threads, fail)
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert thread_of(threads).is_alive()


def test_a_run_that_is_interrupted_twice_closes_its_source() -> None:
    """The thread may live on, so the source cannot tell by it that nobody reads any more."""
    closed: list[bool] = []

    def source(_: Any) -> Iterator[Event]:
        try:
            yield ev.Start()
            yield ev.StartStep()
            yield ev.FinishStep()
        finally:
            closed.append(True)

    class Interrupting:
        def show(self, event: Event) -> None:
            if not isinstance(event, ev.Abort):
                raise KeyboardInterrupt

        def close(self, info: str) -> None:
            pass

    run = Run(source, stop=lambda: None, info=lambda _: "")
    with suppress(KeyboardInterrupt):
        run.play(Interrupting())  # type: ignore[arg-type]
    assert closed == [True]
