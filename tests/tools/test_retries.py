"""Tools that are called again when they raise: ``@tool(retries=…)``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from toolcall_nb import Chat, MockModel
from toolcall_nb.errors import UsageError
from toolcall_nb.tools import Log, Registry, Tool, tool
from toolcall_nb.tools.results.failures import InvalidInput, ToolFailed


class Flaky:
    """Fails a number of times, then returns the number of its call."""

    def __init__(self, failures: int, error: BaseException | None = None) -> None:
        self.calls, self._failures, self._error = 0, failures, error or ConnectionError("no line")

    def __call__(self, city: str = "Oslo") -> int:
        self.calls += 1
        if self.calls <= self._failures:
            raise self._error
        return self.calls


def made(function: Any, **options: Any) -> Tool:
    return Tool.from_function(function, name="flaky", **options)


def log_of(run: Tool) -> tuple[Any, str]:
    pieces: list[str] = []
    outcome = run.run({}, lambda progress: pieces.append(progress.text) if isinstance(progress, Log) else None)
    return outcome, "".join(pieces)


def test_a_tool_that_raises_is_called_again_and_each_try_is_in_the_log() -> None:
    outcome, log = log_of(made(Flaky(2), retries=2))
    assert (outcome.error, outcome.output) == (None, 3)
    assert log == "Try 1 of 3 failed: ConnectionError: no line\nTry 2 of 3 failed: ConnectionError: no line\n"


def test_the_last_failure_is_the_result() -> None:
    function = Flaky(9, ToolFailed("the shelf is empty"))
    outcome, log = log_of(made(function, retries=1))
    assert (outcome.error, function.calls) == ("the shelf is empty", 2)
    assert log == "Try 1 of 2 failed: the shelf is empty\n"


def test_without_retries_a_tool_is_called_once() -> None:
    function = Flaky(1)
    assert made(function).run({}).error == "ConnectionError: no line"
    assert function.calls == 1


@pytest.mark.parametrize("error", [InvalidInput("no such city"), SystemExit(1)])
def test_what_another_try_cannot_change_is_not_repeated(error: BaseException) -> None:
    function = Flaky(9, error)
    assert made(function, retries=3).run({}).error is not None
    assert function.calls == 1


def test_wrong_arguments_are_not_tried_again() -> None:
    function = Flaky(0)
    assert made(function, retries=3).run({"town": 1}).wrong_input
    assert function.calls == 0


def test_an_interrupt_is_not_tried_again() -> None:
    function = Flaky(9, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        made(function, retries=3).run({})
    assert function.calls == 1


def test_the_timeout_is_for_all_tries_together_and_is_not_tried_again() -> None:
    calls: list[int] = []

    def slow() -> None:
        calls.append(1)
        if len(calls) == 2:
            time.sleep(60)
        raise ConnectionError("no line")

    outcome = made(slow, retries=5, timeout=0.3).run({})
    assert (outcome.timed_out, len(calls)) == (True, 2)


def test_a_generator_and_a_coroutine_are_called_again() -> None:
    calls: list[str] = []

    def counting() -> Iterator[int]:
        calls.append("generator")
        yield 1
        if len(calls) == 1:
            raise ConnectionError("no line")
        yield 2

    async def waiting() -> int:
        calls.append("coroutine")
        if len(calls) == 3:
            raise ConnectionError("no line")
        return 3

    assert made(counting, retries=1).run({}).output == 2
    assert made(waiting, retries=1).run({}).output == 3
    assert calls == ["generator", "generator", "coroutine", "coroutine"]


def test_each_try_is_called_with_the_arguments_as_they_were() -> None:
    seen: list[list[int]] = []

    def greedy(rows: list[int]) -> int:
        seen.append(list(rows))
        rows.clear()
        if len(seen) == 1:
            raise ConnectionError("no line")
        return len(seen)

    assert made(greedy, retries=1).run({"rows": [1, 2]}).output == 2
    assert seen == [[1, 2], [1, 2]]


def test_the_decorator_declares_retries_and_the_card_s_log_has_the_tries() -> None:
    own = Registry()

    @tool(retries=2, timeout=30, into=own)
    def fetch(city: str) -> str:
        """Fetches."""
        attempts.append(city)
        if len(attempts) < 3:
            raise ConnectionError("no line")
        return f"clear in {city}"

    attempts: list[str] = []
    assert (own["fetch"].retries, own["fetch"].timeout) == (2, 30)
    chat = Chat(MockModel(script=[[("fetch", {"city": "Oslo"})], "Clear."], speed=None), tools=own)
    chat.send("How is Oslo?")
    (call,) = chat.calls
    assert chat.calls[call].output == "clear in Oslo"
    assert chat.calls[call].log == (
        "Try 1 of 3 failed: ConnectionError: no line\nTry 2 of 3 failed: ConnectionError: no line\n"
    )


@pytest.mark.parametrize("retries", [-1, 1.5, True, "2", None])
def test_a_number_of_retries_that_is_none_is_refused(retries: Any) -> None:
    with pytest.raises(UsageError, match="retries is a number of further tries"):
        made(Flaky(0), retries=retries)
