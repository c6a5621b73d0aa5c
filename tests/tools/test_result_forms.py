"""`tools.Result`: a result has a form for programs, one for people and one for the model."""

from __future__ import annotations

from typing import Any

import pytest

from toolcall_nb.tools import Result, Tool


@pytest.mark.parametrize(
    ("result", "output", "display", "model_text"),
    [
        (Result(3), 3, None, None),
        (Result({"a": 1}, model="one a"), {"a": 1}, None, "one a"),
        (Result({"a": 1}, model={"b": 2}), {"a": 1}, None, '{"b":2}'),
        (Result(display={"text/html": "<b>x</b>"}, model="x in bold"), "x in bold", {"text/html": "<b>x</b>"}, None),
        (Result(0, display={"text/html": "<b>0</b>"}, model=""), 0, {"text/html": "<b>0</b>"}, ""),
        (Result(), None, None, None),
    ],
)
def test_a_result_has_a_form_for_programs_people_and_the_model(
    result: Result, output: Any, display: Any, model_text: str | None
) -> None:
    outcome = Tool.from_function(lambda: result, name="make").run({})
    assert (outcome.error, outcome.output, outcome.display, outcome.model_text) == (None, output, display, model_text)


def test_a_result_s_display_may_be_an_object_that_a_notebook_shows() -> None:
    class Chart:
        def _repr_svg_(self) -> str:
            return "<svg/>"

    outcome = Tool.from_function(lambda: Result([1], display=Chart()), name="make").run({})
    assert (outcome.output, outcome.display) == ([1], {"image/svg+xml": "<svg/>"})


def test_what_a_model_is_told_is_cut_to_the_tool_s_limit() -> None:
    outcome = Tool.from_function(lambda: Result([1], model="x" * 100), name="make", limit=10).run({})
    assert "90 characters left out" in str(outcome.model_text)
