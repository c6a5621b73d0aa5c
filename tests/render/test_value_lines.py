"""Values as lines, in one line and as tables, and the limits for large ones."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures.render.samples import body, call, saying
from tests.support.strategies import json_values
from toolcall_nb.render.value_lines import Drawing, draw_text, draw_value
from toolcall_nb.render.value_summary import one_line, table_of


def lines(value: Any) -> str:
    return "\n".join("".join(text for _, text in entry.tokens) for entry in draw_value(value))


@pytest.mark.parametrize(
    ("value", "drawn"),
    [
        ({"city": "Lyon", "days": 7, "at": "08:39"}, 'city: Lyon\ndays: 7\nat: "08:39"'),
        ({"no": None, "yes": True, "pi": 3.14}, "no: null\nyes: true\npi: 3.14"),
        (
            {"a": "", "b": " x", "c": "null", "d": "1e3", "e": "- x", "f": "k: v"},
            'a: ""\nb: " x"\nc: "null"\nd: "1e3"\ne: "- x"\nf: "k: v"',
        ),
        ({"text": "one\n  two"}, "text: |\n  one\n    two"),
        ({"a": {"b": {}, "c": []}}, "a:\n  b: {}\n  c: []"),
        (
            {"short": [1, "x", None], "long": ["x" * 40, "y" * 40]},
            f"short: [1, x, null]\nlong:\n  - {'x' * 40}\n  - {'y' * 40}",
        ),
        ([{"a": 1, "b": [{"c": 2}]}, [[1, {"d": 3}]]], "- a: 1\n  b:\n    - c: 2\n- - - 1\n    - d: 3"),
        ("plain", "plain"),
        ("two\nlines", "two\nlines"),
        (12.5, "12.5"),
        (None, "null"),
        ([], "[]"),
        (["a, b", "c"], '["a, b", c]'),
    ],
)
def test_a_value_reads_like_yaml(value: Any, drawn: str) -> None:
    assert lines(value) == drawn


@pytest.mark.parametrize(
    ("value", "drawn"),
    [
        ({"city": "Lyon", "days": 7, "at": "08:39"}, "city: Lyon, days: 7, at: 08:39"),
        (
            {"text": "one\n  two", "list": [1, 2], "deep": {"a": 1}, "many": list(range(20))},
            "text: one two, list: [1, 2], deep: {1 key}, many: [20 items]",
        ),
        ({}, ""),
        ("as\nit is", "as it is"),
        ({"long": "x" * 500}, "long: " + "x" * 79 + "…"),
    ],
)
def test_arguments_fit_on_one_line(value: Any, drawn: str) -> None:
    assert one_line(value) == drawn


@pytest.mark.parametrize(
    "value",
    [{str(n): "word" for n in range(10_000)}, "x\n" * 10_000, ["x" * 9] * 9999, {"k" * 999: "v" * 999}],
    ids=["many keys", "long text", "many items", "long key"],
)
def test_one_line_is_short_whatever_the_value(value: Any) -> None:
    assert len(one_line(value)) <= 160
    assert "\n" not in one_line(value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("x" * 10_000_000, "9,780,000 more characters: chat.calls[&#39;call_1&#39;].output"),
        ("line\n" * 1_000_000, "999,800 more lines"),
        ({"text": "x" * 1_000_000}, "more characters"),
        ({"deep": [{"text": "a\n" * 30_000}]}, "more characters"),
        ({"text": "x" * 20_000, "after": 1}, "1 more key"),
        ([[number] for number in range(100_000)], "99,800 more items"),
        ({str(number): number for number in range(100_000)}, "99,800 more keys"),
        ([{"row": number} for number in range(100_000)], "99,800 more rows"),
        ([{"row": "x" * 300} for number in range(1_000)], "more rows"),
        ([{"a": [{"b": ["c"] * 20}] * 210}] * 210, "more items"),
    ],
    ids=["text", "lines", "value", "nested", "key", "list", "object", "table", "wide table", "lists in lists"],
)
def test_a_large_value_is_drawn_in_part_and_counts_the_rest(value: Any, words: str) -> None:
    html = body(saying(call(output=value)))
    shown = re.sub(r'<details class="tc-more">.*?</details>', "", html, flags=re.DOTALL)
    assert words in html
    assert len(shown) < 150_000
    assert len(html) < 800_000


def test_a_value_of_any_depth_is_drawn() -> None:
    value: Any = 1
    for _ in range(200):
        value = {"a": [value]}
    assert "{1 key}" in lines(value) or "[1 item]" in lines(value)


@pytest.mark.parametrize(
    "value",
    [10**5000, float("nan"), float("-inf"), {1: 2}, {"x": b"bytes"}, {"x": object()}],
    ids=["huge", "nan", "inf", "key", "bytes", "object"],
)
def test_a_value_that_is_not_json_is_drawn_without_an_address(value: Any) -> None:
    assert "0x" not in lines(value) + one_line(value)


@given(st.lists(json_values(), max_size=5))
@settings(max_examples=150)
def test_a_repeated_drawing_is_the_same(values: list[Any]) -> None:
    drawing = Drawing()
    for value in (*values, *values):
        assert [entry.tokens for entry in drawing.draw(value)] == [entry.tokens for entry in draw_value(value)]


def test_a_repeated_drawing_draws_only_what_differs() -> None:
    drawing = Drawing()
    before = drawing.draw({"a": 1, "edits": [{"b": 1}, {"b": 2}], "c": True})
    after = drawing.draw({"a": 1, "edits": [{"b": 1}, {"b": 2}, {"b": 3}], "c": True})
    assert [entry is other for entry, other in zip(before, after, strict=False)] == [True] * 4 + [False]
    assert drawing.draw({"a": 1.0})[0].tokens[-1] == ("n", "1.0")


def test_a_list_of_flat_objects_is_a_table() -> None:
    table = table_of([{"day": "Mon", "high": 24.1}, {"day": "Tue", "low": None}])
    assert table is not None
    assert table == (("day", "high", "low"), (("Mon", "24.1", ""), ("Tue", "", "null")), 0, True)


@pytest.mark.parametrize("value", [[], [1], [{}], [{"a": {"b": 1}}], {"a": 1}, [{"a": 1}, {"b": 1}, {"c": 1}], "x"])
def test_other_lists_are_not_tables(value: Any) -> None:
    assert table_of(value) is None


def test_text_is_drawn_without_terminal_colours() -> None:
    assert draw_text("\x1b[1;31mred\x1b[0m  a: b\n\x1b]8;;http://h\x07link").tokens == [("", "red  a: b\nlink")]
    assert draw_text("").tokens == [("", "")]
