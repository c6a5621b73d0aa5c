"""Timeouts, generators, and interrupts of both, in any thread."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from toolcall_nb.errors import UsageError
from toolcall_nb.tools import Log, Outcome, Preliminary, Registry, Tool, ToolProgress, stop_thread, tool
from toolcall_nb.tools.execution import workers as workers_module
from toolcall_nb.tools.execution.deadlines import Deadline

SOON = 0.05
LONG = 600
_WITHIN = 30


@pytest.fixture(autouse=True)
def _little_grace(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(workers_module, "_GRACE_SECONDS", 0.2)
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


def run(function: Callable[..., Any], timeout: float | None = SOON, tell: Any = None) -> Outcome:
    return Tool.from_function(function, name="f", timeout=timeout).run({}, tell)


def run_elsewhere(function: Callable[..., Any], timeout: float | None = SOON, tell: Any = None) -> Outcome:
    """The same in a thread that is not the main one."""
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(run(function, timeout, tell)))
    thread.start()
    thread.join(_WITHIN)
    return outcomes[0]


anywhere = pytest.mark.parametrize("run", [run, run_elsewhere], ids=["main thread", "another thread"])


# Time ---------------------------------------------------------------------------------------------------------


def sleep() -> str:
    time.sleep(LONG)
    return "never"


def spin() -> str:
    while True:
        pass


async def sleep_async() -> None:
    await asyncio.sleep(LONG)


def yield_slowly() -> Iterator[int]:
    yield 1
    time.sleep(LONG)


def yield_forever() -> Iterator[int]:
    while True:
        try:
            yield 1
        except GeneratorExit:
            return
        except BaseException:  # swallows the interrupt too
            continue


async def yield_slowly_async() -> AsyncIterator[int]:
    yield 1
    await asyncio.sleep(LONG)


@anywhere
@pytest.mark.parametrize("function", [sleep, spin, sleep_async, yield_slowly, yield_forever, yield_slowly_async])
def test_a_tool_that_takes_too_long_is_ended(run: Callable[..., Outcome], function: Callable[..., Any]) -> None:
    outcome = run(function)
    assert outcome.error == "TimeoutError: no result within 0.05 s (@tool(timeout=…) allows more)"
    assert outcome.timed_out
    assert isinstance(outcome.exception, TimeoutError)


@anywhere
@pytest.mark.parametrize("function", [lambda: 3, lambda: iter_of(3), lambda: later(3)])
def test_a_tool_that_is_quick_enough_has_its_result(run: Callable[..., Outcome], function: Callable[..., Any]) -> None:
    outcome = run(function, timeout=LONG)
    assert (outcome.output, outcome.timed_out) == (3, False)


def iter_of(value: Any) -> Iterator[Any]:
    yield value


async def later(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


def test_the_traceback_of_a_timeout_ends_where_the_tool_was() -> None:
    outcome = run(sleep)
    lines = (outcome.traceback or "").splitlines()
    assert [line for line in lines if line.startswith("  File")] == [lines[1]]
    assert lines[2] == "    time.sleep(LONG)"
    assert lines[-1].startswith("TimeoutError: no result within")


@anywhere
def test_a_tool_can_clean_up_after_a_timeout_but_not_change_the_result(run: Callable[..., Outcome]) -> None:
    tidied = threading.Event()

    def f() -> str:
        try:
            for _ in range(LONG * 100):
                time.sleep(0.01)
        except BaseException:
            tidied.set()
        return "all is well"

    assert run(f).timed_out
    assert tidied.wait(_WITHIN)


def test_outside_the_main_thread_a_tool_that_ignores_its_timeout_is_left_behind() -> None:
    release = threading.Event()

    def f() -> None:
        while True:
            try:
                release.wait()
            except BaseException:
                continue
            return

    try:
        assert run_elsewhere(f).timed_out
    finally:
        release.set()


@anywhere
def test_a_timeout_error_that_the_tool_raises_is_not_a_timeout_of_the_call(run: Callable[..., Outcome]) -> None:
    def f() -> None:
        raise TimeoutError("the server is slow")

    outcome = run(f, timeout=LONG)
    assert (outcome.error, outcome.timed_out) == ("TimeoutError: the server is slow", False)


@anywhere
def test_a_tool_with_a_timeout_may_run_another(run: Callable[..., Outcome]) -> None:
    inner: list[Outcome] = []

    def f() -> str:
        inner.append(Tool.from_function(sleep, timeout=SOON).run({}))
        return "went on"

    outcome = run(f, timeout=LONG)
    assert outcome.output == "went on"
    assert inner[0].timed_out


def test_the_timeout_of_an_outer_tool_interrupts_the_inner_one() -> None:
    interrupted: list[BaseException] = []
    inner = Tool.from_function(sleep, timeout=LONG)

    def f() -> None:
        try:
            inner.run({})
        except BaseException as error:
            interrupted.append(error)
            raise

    assert run(f, timeout=0.5).timed_out
    assert isinstance(interrupted[0], KeyboardInterrupt)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "30"])
def test_an_invalid_timeout_is_refused(timeout: Any) -> None:
    with pytest.raises(UsageError, match="A timeout is a number of seconds above 0, or None, but is"):
        Tool.from_function(sleep, timeout=timeout)


@pytest.mark.parametrize("limit", [-1, 1.5, None, True])
def test_an_invalid_limit_is_refused(limit: Any) -> None:
    with pytest.raises(UsageError, match="A limit is a number of characters, at least 0, but is"):
        Tool.from_function(sleep, limit=limit)


def test_a_timeout_longer_than_a_thread_can_wait_is_no_error() -> None:
    assert run(lambda: 1, timeout=1e300).output == 1


def test_the_decorator_takes_timeout_parallel_and_limit() -> None:
    registry = Registry()
    tool(into=registry, timeout=2.5, parallel=True, limit=7)(sleep)
    assert (registry["sleep"].timeout, registry["sleep"].parallel, registry["sleep"].limit) == (2.5, True, 7)


# Interrupts ---------------------------------------------------------------------------------------------------


@contextmanager
def ctrl_c(begin: threading.Event | None = None) -> Iterator[None]:
    """A real Ctrl+C, as the kernel sends it; again where Python did not notice, as people do."""
    over = threading.Event()

    def send() -> None:
        assert begin is None or begin.wait(_WITHIN)
        wait = SOON
        while not over.wait(wait):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            wait = 2.0

    sender = threading.Thread(target=send)
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt) as raised:
            yield
        assert raised.type is KeyboardInterrupt
    finally:
        over.set()
        sender.join()


@pytest.mark.parametrize("function", [sleep, sleep_async, yield_slowly, yield_slowly_async])
@pytest.mark.parametrize("timeout", [None, LONG])
def test_ctrl_c_ends_a_tool_at_once_and_is_raised(function: Callable[..., Any], timeout: float | None) -> None:
    with ctrl_c():
        run(function, timeout)


def test_ctrl_c_before_a_timeout_is_a_keyboard_interrupt() -> None:
    """The tool takes its time to end, and in that time the other interrupt comes."""
    ending = threading.Event()

    def f() -> None:
        try:
            sleep()
        finally:
            ending.set()
            time.sleep(LONG)

    with ctrl_c(ending):
        run(f, timeout=0.5)


def test_ctrl_c_followed_by_the_timeout_is_a_keyboard_interrupt() -> None:
    def f() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            time.sleep(LONG)

    with pytest.raises(KeyboardInterrupt):
        run(f, timeout=0.2)


def test_a_signal_handler_that_python_did_not_set_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert run(spin).timed_out
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


_IGNORED = """
import signal, threading, time
from toolcall_nb import events as ev
from toolcall_nb.live_runs.run import Run
from toolcall_nb.tools import Tool

assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN

def timed(act):
    began = time.monotonic()
    return act(), time.monotonic() - began

def sleep():
    time.sleep(60)

def swallow():
    try:
        time.sleep(60)
    except Exception:
        pass

for function in (sleep, swallow):
    outcome, took = timed(lambda: Tool.from_function(function, timeout=0.5).run({}))
    assert outcome.timed_out and took < 20, (outcome, took)
def interrupted():
    signal.raise_signal(signal.SIGINT)
    return "went on"

assert Tool.from_function(interrupted, timeout=20).run({}).output == "went on"
assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN

class Face:
    shown = []
    def show(self, event): self.shown.append(event)
    def close(self, info): pass

def source(show):
    yield ev.Start()
    signal.raise_signal(signal.SIGINT)
    Tool.from_function(sleep, timeout=LIMIT).run({})

for LIMIT in (None, 600):
    face = Face()
    run = Run(source, stop=lambda: None, info=lambda run: "")
    threading.Timer(0.5, run.stop).start()
    _, took = timed(lambda: run.play(face))
    assert took < 20 and isinstance(face.shown[-1], ev.Abort), (took, face.shown)
assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
signal.raise_signal(signal.SIGINT)
print("all as it should be")
"""


@pytest.mark.skipif(os.name == "nt", reason="no process is started with SIGINT ignored there")
def test_a_timeout_and_a_stop_end_a_blocking_call_in_a_process_that_ignores_sigint() -> None:
    command = ["sh", "-c", 'trap \'\' INT; exec "$0" -c "$1"', sys.executable, _IGNORED]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (ended.stdout, ended.stderr) == ("all as it should be\n", "")


def test_calls_that_end_at_their_deadline_have_a_result_or_a_timeout() -> None:
    """A signal that is under way when the tool returns is not left for whoever comes after it."""

    def f() -> int:
        time.sleep(0.002)
        return 1

    for number in range(100):
        outcome = run(f, timeout=0.0019 + number * 4e-6)
        assert outcome.timed_out or outcome.output == 1
    time.sleep(SOON)


def test_a_call_that_is_left_behind_does_not_block_traced_threads() -> None:
    """CPython 3.11 would, for as long as that sleeps: see `toolcall_nb.threads.interrupts`."""
    over = threading.Event()

    def f() -> None:
        with suppress(BaseException):
            time.sleep(20)
        over.set()

    before = sys.gettrace()
    assert run_elsewhere(f, timeout=SOON).timed_out
    sys.settrace(lambda *_: None)
    try:
        Deadline(None)
    finally:
        sys.settrace(before)
    assert not over.is_set()


def test_a_thread_that_runs_a_tool_can_be_stopped() -> None:
    raised: list[type] = []
    begun = threading.Event()

    def waiting() -> None:
        begun.set()
        time.sleep(LONG)

    def body() -> None:
        try:
            run(waiting, timeout=None)
        except BaseException as error:
            raised.append(type(error))

    thread = threading.Thread(target=body)
    thread.start()
    assert begun.wait(_WITHIN)
    assert stop_thread(thread)
    thread.join(_WITHIN)
    assert raised == [KeyboardInterrupt]


def test_a_thread_that_does_not_run_is_not_stopped() -> None:
    thread = threading.Thread(target=lambda: None)
    assert not stop_thread(thread)
    thread.start()
    thread.join()
    assert not stop_thread(thread)


def test_where_python_cannot_stop_threads_nothing_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.pythonapi", SimpleNamespace())
    assert not stop_thread(threading.main_thread())


# Generators ---------------------------------------------------------------------------------------------------


def told_by(function: Callable[..., Any]) -> tuple[Outcome, list[ToolProgress]]:
    told: list[ToolProgress] = []
    return run(function, None, told.append), told


def count() -> Iterator[int]:
    yield 1
    yield 2


def count_and_return() -> Generator[int, None, str]:
    yield 1
    return "done"


async def count_async() -> AsyncIterator[int]:
    yield 1
    await asyncio.sleep(0)
    yield 2


def nothing() -> Iterator[int]:
    yield from ()


@pytest.mark.parametrize(
    ("function", "told", "output"),
    [
        (count, [1, 2], 2),
        (count_and_return, [1], "done"),
        (count_async, [1, 2], 2),
        (nothing, [], None),
        (lambda: (number for number in (1, 2)), [1, 2], 2),
        (lambda: iter_of({1, 2}), [[1, 2]], [1, 2]),
    ],
)
@anywhere
def test_each_yielded_value_is_reported_and_the_last_is_the_result(
    run: Callable[..., Outcome], function: Callable[..., Any], told: list[Any], output: Any
) -> None:
    found: list[ToolProgress] = []
    assert run(function, None, found.append).output == output
    assert found == [Preliminary(value) for value in told]
    assert run(function, None).output == output


def test_a_reported_value_does_not_change_afterwards() -> None:
    def f() -> Iterator[list[int]]:
        items: list[int] = []
        for number in range(2):
            items.append(number)
            yield items

    _, told = told_by(f)
    assert told == [Preliminary([0]), Preliminary([0, 1])]


@pytest.mark.parametrize("timeout", [None, LONG])
def test_an_interrupt_closes_a_generator(timeout: float | None) -> None:
    closed = threading.Event()

    def f() -> Iterator[int]:
        try:
            yield 1
            time.sleep(LONG)
        finally:
            closed.set()

    with ctrl_c():
        run(f, timeout)
    assert closed.is_set()


def test_values_that_were_yielded_before_an_exception_are_reported() -> None:
    def f() -> Iterator[int]:
        yield 1
        raise ValueError("then this")

    outcome, told = told_by(f)
    assert (outcome.error, told) == ("ValueError: then this", [Preliminary(1)])


@anywhere
def test_after_its_end_a_tool_reports_nothing(run: Callable[..., Outcome]) -> None:
    release, over = threading.Event(), threading.Event()
    told: list[ToolProgress] = []

    def f() -> Iterator[int]:
        def late() -> None:
            release.wait(_WITHIN)
            print("late")
            over.set()

        threading.Thread(target=late).start()
        yield 1

    assert run(f, None, told.append).output == 1
    release.set()
    assert over.wait(_WITHIN)
    assert [piece for piece in told if isinstance(piece, Log)] == []


# Threads ------------------------------------------------------------------------------------------------------


def test_a_tool_runs_in_the_main_thread_where_it_is_called_there() -> None:
    assert run(lambda: threading.current_thread() is threading.main_thread()).output is True


def test_a_tool_in_another_thread_has_the_context_of_its_caller() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")

    def body() -> Outcome:
        variable.set("seen")
        return run(lambda: variable.get(), None)

    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(body()))
    thread.start()
    thread.join()
    assert outcomes[0].output == "seen"


@anywhere
@pytest.mark.parametrize("error", [SystemExit(3), KeyError("k"), GeneratorExit()])
def test_system_exit_in_a_tool_ends_only_its_call(run: Callable[..., Outcome], error: BaseException) -> None:
    def f() -> None:
        raise error

    assert run(f).error.startswith(type(error).__name__)
