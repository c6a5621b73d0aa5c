"""Tracebacks of tools: their own frames only, the same text each time, and where a debugger opens."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.shells import the_shell
from toolcall_nb.tools import Outcome, Tool, ToolFailed, remember_for_debugger
from toolcall_nb.tools.results.tracebacks import _MAX_CHARACTERS

HERE = "tests/tools/test_tracebacks.py"


def run(function: Callable[..., Any], **arguments: Any) -> Outcome:
    return Tool.from_function(function, name="f").run(arguments)


def trace(function: Callable[..., Any], **arguments: Any) -> str:
    found = run(function, **arguments).traceback
    assert found is not None
    return found


def files(text: str) -> list[str]:
    return [line.split('"')[1] for line in text.splitlines() if line.strip(" |").startswith('File "')]


def fail() -> None:
    raise ValueError("no such city")


def test_a_traceback_begins_in_the_tool_and_ends_where_it_was_raised() -> None:
    lines = trace(fail).splitlines()
    number = fail.__code__.co_firstlineno + 1
    assert lines[:3] == [
        "Traceback (most recent call last):",
        f'  File "{HERE}", line {number}, in fail',
        '    raise ValueError("no such city")',
    ]
    assert lines[-1] == "ValueError: no such city"


async def fail_later() -> None:
    await asyncio.sleep(0)
    fail()


def fail_while_yielding() -> Iterator[int]:
    yield 1
    fail()


async def fail_while_yielding_later() -> AsyncIterator[int]:
    yield 1
    fail()


@pytest.mark.parametrize("function", [fail_later, fail_while_yielding, fail_while_yielding_later])
def test_whatever_way_a_tool_is_run_only_its_own_frames_are_shown(function: Callable[..., Any]) -> None:
    outcome = run(function)
    assert files(outcome.traceback or "") == [HERE, HERE]
    assert outcome.exception is not None
    assert outcome.exception.__traceback__.tb_frame.f_code is function.__code__


def test_a_tool_with_a_timeout_too() -> None:
    outcome = Tool.from_function(fail, timeout=60).run({})
    assert files(outcome.traceback or "") == [HERE]


def test_causes_are_kept() -> None:
    def f() -> None:
        try:
            fail()
        except ValueError as error:
            raise KeyError("b") from error

    text = trace(f)
    assert "ValueError: no such city\n\nThe above exception was the direct cause" in text
    assert text.endswith("KeyError: 'b'")
    assert set(files(text)) == {HERE}


def test_a_group_shows_its_members() -> None:
    def f() -> None:
        try:
            fail()
        except ValueError as error:
            raise ExceptionGroup("several", [error, TypeError("b")]) from None

    outcome = run(f)
    assert outcome.error == "ExceptionGroup: several (2 sub-exceptions)"
    assert "ValueError: no such city" in (outcome.traceback or "")
    assert "TypeError: b" in (outcome.traceback or "")
    assert set(files(outcome.traceback or "")) == {HERE}


def test_the_files_of_the_standard_library_and_of_packages_begin_with_their_package() -> None:
    def f() -> None:
        json.loads("{")

    assert files(trace(f)) == [HERE, "json/__init__.py", "json/decoder.py", "json/decoder.py"]

    def g() -> None:
        pytest.fail("x")

    assert files(trace(g))[1].startswith("_pytest/")


def test_a_file_outside_the_working_directory_is_named_from_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope: dict[str, Any] = {"__name__": "elsewhere"}
    exec(compile("def f():\n    raise ValueError", str(tmp_path / "elsewhere.py"), "exec"), scope)
    assert files(trace(scope["f"])) == [str(tmp_path / "elsewhere.py")]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files(trace(scope["f"])) == ["~/elsewhere.py"]
    monkeypatch.chdir(tmp_path)
    assert files(trace(scope["f"])) == ["elsewhere.py"]


def test_a_tool_without_frames_of_its_own_has_the_error_alone() -> None:
    def bind(arguments: Any) -> tuple[list[Any], dict[str, Any]]:
        return [[]], {}

    signature: Any = type("Signature", (), {"bind": staticmethod(bind)})
    tool = Tool(name="f", description="", parameters={}, function=max, signature=signature, origin="builtins:max")
    outcome = tool.run({})
    assert files(outcome.traceback or "") == []
    assert (outcome.traceback or "").startswith("ValueError: max()")
    assert outcome.exception is not None
    assert outcome.exception.__traceback__ is None


def test_memory_addresses_are_left_out() -> None:
    def f() -> None:
        raise ValueError(object())

    assert trace(f).endswith("ValueError: <object object>")


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class Hostile(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_an_exception_with_methods_that_raise_is_an_error_all_the_same() -> None:
    def f(kind: str) -> None:
        raise {"unprintable": Unprintable, "hostile": Hostile}[kind]

    assert trace(f, kind="unprintable").endswith("Unprintable: <exception str() failed>")
    assert run(f, kind="hostile").error == "Hostile"


def test_a_recursion_without_end_is_short() -> None:
    def f() -> None:
        f()

    outcome = run(f)
    assert (outcome.error or "").startswith("RecursionError: maximum recursion depth exceeded")
    assert "Previous line repeated" in (outcome.traceback or "")
    assert len(outcome.traceback or "") < 2_000


def test_a_mutual_recursion_is_bounded() -> None:
    def f() -> None:
        g()

    def g() -> None:
        f()

    text = trace(f)
    assert len(text) < _MAX_CHARACTERS + 100
    assert "characters left out" in text
    assert text.startswith("Traceback (most recent call last):")
    assert text.splitlines()[-1].startswith("RecursionError")


def test_a_memory_error_is_an_error() -> None:
    def f() -> None:
        raise MemoryError

    assert run(f).error == "MemoryError"


def test_a_failure_in_the_tool_s_own_words_has_no_traceback_but_its_frames() -> None:
    def f() -> None:
        raise ToolFailed("The sensor is asleep.")

    outcome = run(f)
    assert (outcome.error, outcome.traceback) == ("The sensor is asleep.", None)
    assert outcome.exception.__traceback__.tb_frame.f_code is f.__code__


def test_wrong_arguments_have_no_traceback() -> None:
    outcome = run(fail, city="Lyon")
    assert outcome.wrong_input
    assert outcome.traceback is None


# The debugger -------------------------------------------------------------------------------------------------


@pytest.fixture
def _last_error() -> Iterator[None]:
    yield
    for name in ("last_exc", "last_type", "last_value", "last_traceback"):
        vars(sys).pop(name, None)


CELL = """
def measure(depth):
    gauge = depth * 2
    raise ValueError(gauge)
"""


@pytest.mark.usefixtures("_last_error")
def test_the_debugger_opens_in_the_tool_s_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    with the_shell() as shell:
        monkeypatch.setattr(shell, "showtraceback", shell.InteractiveTB)
        shell.run_cell("1 / 0")  # an error before, whose frames the shell keeps
        shell.run_cell(CELL)
        outcome = run(shell.user_ns["measure"], depth=3)
        assert remember_for_debugger(outcome.exception)

        def interaction(debugger: Any, frame: Any, error: Any) -> None:
            debugger.setup(frame, error.__traceback__ if isinstance(error, BaseException) else error)
            opened.extend((debugger.curframe, debugger.stack))

        monkeypatch.setattr(shell.debugger_cls, "interaction", interaction)
        shell.run_line_magic("debug", "")
        frame, stack = opened
        assert frame.f_code.co_name == "measure"
        assert frame.f_locals == {"depth": 3, "gauge": 6}
        assert [entry[0].f_code.co_name for entry in stack] == ["measure"]


@pytest.mark.usefixtures("_last_error")
def test_in_a_cell_the_file_is_the_cell_and_the_same_each_time_that_it_runs() -> None:
    with the_shell() as shell:
        shell.run_cell(CELL, store_history=True)
        text = trace(shell.user_ns["measure"], depth=3)
        assert files(text) == ["Cell"]
        assert "    raise ValueError(gauge)" in text
        shell.run_cell(CELL, store_history=True)
        assert trace(shell.user_ns["measure"], depth=3) == text


@pytest.mark.usefixtures("_last_error")
def test_without_a_shell_the_error_is_python_s_last() -> None:
    outcome = run(fail)
    assert remember_for_debugger(outcome.exception)
    assert sys.last_value is outcome.exception
    assert sys.last_traceback.tb_frame.f_code is fail.__code__


@pytest.mark.usefixtures("_last_error")
def test_an_exception_without_frames_is_not_offered_to_the_debugger() -> None:
    assert not remember_for_debugger(None)
    assert not remember_for_debugger(ValueError())
    assert not hasattr(sys, "last_value")
