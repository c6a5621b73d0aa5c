"""A call as Python source."""

from __future__ import annotations

import ast
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import json_values
from toolcall_nb.core.call_code import call_code
from toolcall_nb.core.text import well_formed_json
from toolcall_nb.core.transcript import ToolCall


def test_a_call_is_one_line_of_keyword_arguments() -> None:
    call = ToolCall(id="call_1", name="weather", input={"city": "Porto", "days": 3})
    assert call.to_code() == "weather(city='Porto', days=3)"


def test_a_call_without_an_input_has_no_arguments() -> None:
    assert ToolCall(id="call_1", name="now").to_code() == "now()"


def test_long_arguments_are_written_on_separate_lines() -> None:
    code = call_code("search", {"query": "x" * 80, "tags": ["a" * 50, "b" * 50]})
    lines = ["search(", f"    query='{'x' * 80}',", f"    tags=['{'a' * 50}',", f"     '{'b' * 50}'],", ")"]
    assert code.splitlines() == lines


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("web-search", {"q": 1}, "from toolcall_nb.tools import registry\n\nregistry['web-search'].function(q=1)"),
        ("f", {"class": 1, "x": None}, "f(**{'class': 1, 'x': None})"),
        ("f", ["a"], "f(['a'])"),
        ("f", {"x": math.inf, "y": [math.nan]}, 'f(x=float("inf"), y=[float("nan")])'),
    ],
)
def test_names_and_values_that_python_cannot_write_have_a_substitute(name: str, arguments: Any, code: str) -> None:
    assert call_code(name, arguments) == code


@given(st.dictionaries(st.text(max_size=5), json_values(), max_size=3))
def test_the_source_gives_the_same_arguments(arguments: dict[str, Any]) -> None:
    arguments = well_formed_json(arguments)  # with the one NaN that equals itself
    source = call_code("f", arguments)
    assert well_formed_json(eval(source, {"f": lambda **given: given})) == arguments
    assert len(ast.parse(source).body) == 1
