"""Calls in parallel: each in its own thread, with its updates in order and one outcome."""

from __future__ import annotations

import contextvars
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from toolcall_nb.threads.interrupts import STOP, stop_thread
from toolcall_nb.tools import Job, Outcome, Preliminary, Started, Tool, run_together
from toolcall_nb.tools.execution.parallel import MAX_THREADS

_WITHIN = 30
LONG = 600


def job(function: Callable[..., Any], timeout: float | None = None, **arguments: Any) -> Job:
    return Job(Tool.from_function(function, name="f", timeout=timeout), arguments)


def outcomes(*jobs: Job) -> list[Outcome]:
    """In the order of the jobs; each has exactly one."""
    found = [(job, what) for job, what in run_together(jobs) if isinstance(what, Outcome)]
    assert Counter(id(job) for job, _ in found) == Counter(map(id, jobs))
    return [next(what for done, what in found if done is job) for job in jobs]


def test_jobs_run_at_the_same_time_and_not_in_this_thread() -> None:
    meeting = threading.Barrier(3)

    def f() -> bool:
        meeting.wait(_WITHIN)
        return threading.current_thread() is threading.main_thread()

    assert [outcome.output for outcome in outcomes(job(f), job(f), job(f))] == [False] * 3


def test_one_job_or_none_can_be_run() -> None:
    assert outcomes(job(lambda: 1))[0].output == 1
    assert outcomes() == []


def test_more_jobs_than_threads_all_run() -> None:
    lock, running, most = threading.Lock(), 0, 0

    def f() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1

    assert all(outcome.error is None for outcome in outcomes(*(job(f) for _ in range(3 * MAX_THREADS))))
    assert most <= MAX_THREADS


def test_jobs_with_equal_arguments_are_different_jobs() -> None:
    def f() -> int:
        return 1

    tool = Tool.from_function(f)
    assert len(outcomes(Job(tool, {}), Job(tool, {}))) == 2


def test_the_updates_of_a_job_end_with_its_outcome() -> None:
    goes_on = threading.Event()

    def slow() -> Iterator[int]:
        yield 1
        goes_on.wait(_WITHIN)
        yield 2

    def quick() -> str:
        return "quick"

    first, second = job(slow), job(quick)
    told: list[Any] = []
    for done, what in run_together([first, second]):
        if isinstance(what, Started):
            continue
        told.append((done is first, what.output))
        if (False, "quick") in told and (True, 1) in told:
            goes_on.set()
    assert sorted(told[:2]) == [(False, "quick"), (True, 1)]
    assert told[2:] == [(True, 2), (True, 2)]


def test_a_job_that_fails_does_not_affect_the_others() -> None:
    def f(fails: bool) -> str:
        if fails:
            raise SystemExit("no")
        return "yes"

    bad, good, wrong = outcomes(job(f, fails=True), job(f, fails=False), job(f))
    assert (bad.error, good.output, wrong.wrong_input) == ("SystemExit: no", "yes", True)


def test_a_keyboard_interrupt_that_a_tool_raises_is_an_error() -> None:
    def f() -> None:
        raise KeyboardInterrupt

    assert outcomes(job(f))[0].error == "KeyboardInterrupt"


def test_a_job_that_takes_too_long_is_ended_and_the_others_are_not() -> None:
    late, good = outcomes(job(lambda: time.sleep(LONG), timeout=0.05), job(lambda: 1, timeout=LONG))
    assert (late.timed_out, good.output) == (True, 1)


def test_jobs_get_a_copy_of_the_caller_s_context() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")

    def f(value: str) -> str:
        before = variable.get()
        variable.set(value)
        return before

    variable.set("before")
    assert [outcome.output for outcome in outcomes(job(f, value="a"), job(f, value="b"))] == ["before"] * 2
    assert variable.get() == "before"


def waiting(stopped: threading.Semaphore) -> Callable[[], Iterator[int]]:
    def f() -> Iterator[int]:
        try:
            yield 1
            while True:
                time.sleep(0.01)
        finally:
            stopped.release()

    return f


def test_closing_stops_the_jobs() -> None:
    stopped = threading.Semaphore(0)
    news = run_together([job(waiting(stopped)), job(waiting(stopped))])
    told = (what for _, what in news if not isinstance(what, Started))
    assert [next(told), next(told)] == [Preliminary(1)] * 2
    news.close()
    assert stopped.acquire(timeout=_WITHIN)
    assert stopped.acquire(timeout=_WITHIN)
    assert list(news) == []


def test_queued_jobs_do_not_start_after_the_end() -> None:
    begun = threading.Semaphore(0)

    def f() -> Iterator[int]:
        begun.release()
        yield 1
        time.sleep(LONG)

    news = run_together([job(f) for _ in range(2 * MAX_THREADS)])
    next(news)
    news.close()
    assert sum(begun.acquire(timeout=0.01) for _ in range(2 * MAX_THREADS)) <= MAX_THREADS


def test_an_interrupt_while_waiting_is_raised_and_stops_the_jobs() -> None:
    stopped, over = threading.Semaphore(0), threading.Event()

    def interrupt() -> None:
        while not over.wait(0.5):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    sender = threading.Thread(target=interrupt)
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        outcomes(job(waiting(stopped)))
    over.set()
    sender.join()
    assert stopped.acquire(timeout=_WITHIN)


def test_setting_stop_ends_the_calls_that_its_context_waits_for() -> None:
    """So a run in the background is stopped: no exception is thrown into its thread."""
    stopped, stop, begun = threading.Semaphore(0), threading.Event(), threading.Event()
    raised: list[type] = []

    def body() -> None:
        STOP.set(stop)
        for run in (lambda: outcomes(job(waiting(stopped))), lambda: job(waiting(stopped)).tool.run({})):
            begun.set()
            try:
                run()
            except BaseException as error:
                raised.append(type(error))

    thread = threading.Thread(target=body)
    thread.start()
    assert begun.wait(_WITHIN)
    stop.set()
    thread.join(_WITHIN)
    assert raised == [KeyboardInterrupt] * 2


def endless(begun: threading.Event, ended: threading.Event) -> Callable[[], None]:
    def f() -> None:
        begun.set()
        try:
            while True:
                time.sleep(0.001)
        finally:
            ended.set()

    return f


def test_an_interrupt_between_two_polls_ends_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(one: Job) -> None:
        with suppress(KeyboardInterrupt):
            list(run_together((one,)))

    monkeypatch.setattr("toolcall_nb.tools.execution.parallel.POLL_SECONDS", 0.002)
    for _ in range(5):
        begun, ended = threading.Event(), threading.Event()
        waiting = threading.Thread(target=wait, args=(job(endless(begun, ended)),))
        waiting.start()
        assert begun.wait(_WITHIN)
        stop_thread(waiting)
        assert ended.wait(_WITHIN)
        waiting.join()
