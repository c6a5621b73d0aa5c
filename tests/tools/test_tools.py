"""Tools: made by the decorator, kept in a registry, run once, and never raising."""

from __future__ import annotations

import asyncio
import collections
import contextvars
import dataclasses
import datetime
import decimal
import enum
import json
import signal
import threading
import types
import uuid
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcall_nb import tools
from toolcall_nb.errors import UsageError
from toolcall_nb.threads.interrupts import run_to_end
from toolcall_nb.tools import Registry, Tool, as_tool, tool
from toolcall_nb.tools.results.json_values import _MAX_DEPTH, to_json_value

# The decorator ----------------------------------------------------------------------------------------------


def test_a_decorated_function_is_called_as_before() -> None:
    registry = Registry()

    @tool(into=registry)
    def double(n: int) -> int:
        """Twice the number."""
        return 2 * n

    assert double(4) == 8
    assert isinstance(double, types.FunctionType)
    assert registry["double"].description == "Twice the number."
    assert as_tool(double) is registry["double"]


def test_the_bare_decorator_adds_to_the_session_s_registry() -> None:
    @tool
    def only_in_this_test(n: int) -> int:
        return n

    try:
        assert tools.registry["only_in_this_test"].run({"n": 3}).output == 3
    finally:
        tools.registry.remove("only_in_this_test")


def test_name_and_description_can_be_given() -> None:
    registry = Registry()
    tool(name="twice", description="Doubles.", into=registry)(lambda n: 2 * n)
    assert (registry["twice"].description, registry["twice"].run({"n": 2}).output) == ("Doubles.", 4)


@pytest.mark.parametrize("name", ["", "two words", "line\nbreak", "<lambda>", "x" * 129])
def test_an_invalid_tool_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="not a valid name for a tool"):
        Tool.from_function(lambda: None, name=name)


def test_only_a_function_can_be_a_tool() -> None:
    with pytest.raises(UsageError, match="A tool is a function"):
        as_tool(3)  # type: ignore[arg-type] # that is the point


# The registry -----------------------------------------------------------------------------------------------


def weather(city: str) -> str:
    return city


def wind(city: str) -> str:
    return city


def test_a_registry_keeps_the_order_and_can_be_restricted() -> None:
    registry = Registry([weather, wind])
    assert list(registry) == ["weather", "wind"]
    assert list(registry.restrict(["wind", "weather"])) == ["wind", "weather"]
    registry.remove("weather")
    assert "weather" not in registry


def test_a_cell_that_is_run_again_replaces_its_tool() -> None:
    registry = Registry()
    for number in (1, 2):
        scope: dict[str, Any] = {"number": number, "__name__": "__main__"}
        exec("def f() -> int:\n    return number", scope)
        registry.add(scope["f"])
    assert registry["f"].run({}).output == 2


def test_another_function_of_the_same_name_is_refused() -> None:
    registry = Registry([weather])
    with pytest.raises(UsageError, match=r"There is a tool 'weather' already.*@tool\(name=") as error:
        registry.add(Tool.from_function(wind, name="weather"))
    assert "registry.remove('weather')" in str(error.value)


def test_the_error_for_an_unknown_name_lists_the_tools() -> None:
    registry = Registry([weather, wind])
    with pytest.raises(UsageError, match=r"no tool 'wether'. Did you mean 'weather'\? Tools: weather, wind\."):
        registry.restrict(["wether"])
    with pytest.raises(UsageError, match="There are no tools"):
        Registry().remove("x")


# Running ----------------------------------------------------------------------------------------------------


def run(function: Any, **arguments: Any) -> tools.Outcome:
    return Tool.from_function(function, name="f").run(arguments)


def test_an_exception_is_a_result_with_its_traceback() -> None:
    def f() -> None:
        raise ValueError("no such city")

    outcome = run(f)
    assert outcome.error == "ValueError: no such city"
    assert isinstance(outcome.exception, ValueError)
    assert outcome.exception.__traceback__ is not None
    assert not outcome.wrong_input


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError(), "KeyError"),
        (SystemExit(3), "SystemExit: 3"),
        (GeneratorExit(), "GeneratorExit"),
        (_Unprintable(), "_Unprintable"),
        (asyncio.CancelledError(), "CancelledError"),
        (RecursionError("too deep"), "RecursionError: too deep"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_whatever_a_tool_raises_is_an_error_text(error: BaseException, text: str, is_async: bool) -> None:
    def f() -> None:
        raise error

    async def g() -> None:
        raise error

    assert run(g if is_async else f).error == text


@pytest.mark.parametrize("is_async", [False, True])
def test_a_keyboard_interrupt_is_raised(is_async: bool) -> None:
    def f() -> None:
        raise KeyboardInterrupt

    async def g() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(g if is_async else f)


def test_a_real_interrupt_ends_an_async_tool_that_waits() -> None:
    cancelled = threading.Event()

    async def f() -> None:
        asyncio.get_running_loop().call_later(0.05, signal.raise_signal, signal.SIGINT)
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    with pytest.raises(KeyboardInterrupt):
        run(f)
    assert cancelled.wait(10)


def test_an_async_tool_runs_while_another_event_loop_runs() -> None:
    async def f(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    async def cell() -> tools.Outcome:
        return run(f, n=1)

    assert asyncio.run(cell()).output == 2


def test_an_async_tool_may_run_another() -> None:
    async def inner() -> str:
        return "in"

    async def outer() -> str:
        return f"{run(inner).output} and out"

    assert run(outer).output == "in and out"


def test_an_async_tool_sees_the_caller_s_context() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")

    async def f() -> str:
        return variable.get()

    variable.set("seen")
    assert run(f).output == "seen"


def test_a_function_that_returns_an_awaitable_is_awaited() -> None:
    async def later() -> int:
        return 7

    assert run(lambda: later()).output == 7


# What tools return ------------------------------------------------------------------------------------------


class _Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class _Record:
    name: str
    inner: Any = None


class _Struct(msgspec.Struct, rename="camel"):
    long_name: int


class _BadRepr:
    def __repr__(self) -> str:
        raise RuntimeError


class _Plain:
    pass


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ({"a": [1, 2.5, True, "x"]}, {"a": [1, 2.5, True, "x"]}),
        ((1, (2,)), [1, [2]]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({1: "a", None: "b", (1, 2): "c", _Colour.RED: "d"}, {"1": "a", "None": "b", "(1, 2)": "c", "red": "d"}),
        (range(3), [0, 1, 2]),
        (collections.deque([1]), [1]),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        (b"\x00\xff", "AP8="),
        (bytearray(b"a"), "YQ=="),
        (_Colour.RED, "red"),
        (_Record("a", _Record("b")), {"name": "a", "inner": {"name": "b", "inner": None}}),
        (_Struct(1), {"longName": 1}),
        (datetime.date(2025, 1, 2), "2025-01-02"),
        (datetime.timedelta(seconds=1.5), "PT1.5S"),
        (decimal.Decimal("1.10"), "1.10"),
        (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        (Path("a/b"), "a/b"),
        (numpy.array([1, 2.5]), [1, 2.5]),
        (numpy.float64(2.5), 2.5),
        (10**30, 10**30),
        (1 + 2j, "(1+2j)"),
        (_BadRepr(), "<_BadRepr>"),
        (ValueError("x"), "ValueError('x')"),
        (json, None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_object_is_a_json_value(value: Any, expected: Any) -> None:
    found = to_json_value(value)
    assert found == expected if expected is not None or value is None else isinstance(found, str)
    json.dumps(found)


def test_not_a_number_stays_a_float() -> None:
    found = to_json_value([float("nan"), float("inf")])
    assert found[0] != found[0]
    assert found[1] == float("inf")


def test_memory_addresses_are_left_out() -> None:
    assert to_json_value(_Plain()) == "<tests.tools.test_tools._Plain object>"


def test_a_cyclic_value_is_converted() -> None:
    items: list[Any] = [1]
    items.append(items)
    assert to_json_value(items) == [1, "<list: refers to itself>"]
    record = _Record("a")
    record.inner = record
    assert len(json.dumps(to_json_value(record))) < 100_000


def test_a_deeply_nested_value_is_converted() -> None:
    deep: Any = 0
    for _ in range(100_000):
        deep = {"a": deep}
    found, depth = to_json_value(deep), 0
    while isinstance(found, dict):
        found, depth = found["a"], depth + 1
    assert depth == _MAX_DEPTH
    assert found == "<dict: is nested too deeply>"


def test_lists_that_share_items_stay_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcall_nb.tools.results.json_values._MAX_ITEMS", 1000)
    bomb: Any = ["x"]
    for _ in range(60):
        bomb = [bomb, bomb]
    assert len(json.dumps(to_json_value(bomb))) < 100_000


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_json_value_is_unchanged(value: Any) -> None:
    assert to_json_value(value) == value


@given(st.from_type(object) | st.builds(object))
def test_conversion_to_json_never_raises(value: Any) -> None:
    to_json_value(value)


def test_a_second_interrupt_does_not_stop_the_handling_of_the_first() -> None:
    tries: list[None] = []

    def act() -> None:
        tries.append(None)
        if len(tries) < 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_to_end(act)
    assert len(tries) == 3
    run_to_end(act)
    assert len(tries) == 4
