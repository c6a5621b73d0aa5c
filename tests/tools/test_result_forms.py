"""`tools.Result`: a result has a form for programs, one for people and one for the model."""

from __future__ import annotations

from typing import Any

import pytest

from toolcall_nb.core.call_display import MAX_DISPLAYS
from toolcall_nb.core.contents import file_piece, json_piece, text_piece
from toolcall_nb.core.result_text import RESULT_LIMIT
from toolcall_nb.tools import Outcome, Result, Tool
from toolcall_nb.tools.results.failures import ToolFailed
from toolcall_nb.tools.results.json_values import MAX_TEXT


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


# Results of several pieces ------------------------------------------------------------------------------------


class Picture:
    def __init__(self, data: bytes = b"png") -> None:
        self.data = data

    def _repr_png_(self) -> bytes:
        return self.data


def outcome_of(result: Any) -> Outcome:
    return Tool.from_function(lambda: result, name="look").run({})


RED, BLUE = file_piece("image/png", b"red"), file_piece("image/png", b"blue")


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_list_of_pictures_and_texts_is_kept_in_order(kind: Any) -> None:
    outcome = outcome_of(kind([Picture(b"red"), "between", Picture(b"blue"), {"sum": 3}]))
    assert outcome.contents == [RED, text_piece("between"), BLUE, json_piece({"sum": 3})]
    assert outcome.output == '<image/png, 3 bytes>\nbetween\n<image/png, 4 bytes>\n{"sum":3}'
    assert outcome.display is None


@pytest.mark.parametrize("value", [["a", "b"], [{"type": "text", "text": "a"}], [], [object], ("a", 1), ["a", b"png"]])
def test_a_list_without_pictures_is_a_value(value: Any) -> None:
    assert outcome_of(value).contents is None


@pytest.mark.parametrize("field", ["contents", "display"])
def test_a_result_may_have_several_pictures_beside_its_output(field: str) -> None:
    outcome = outcome_of(Result({"sum": 3}, **{field: ["two", Picture(b"red"), BLUE]}))
    assert (outcome.output, outcome.contents) == ({"sum": 3}, [text_piece("two"), RED, BLUE])
    assert (outcome.display, outcome.model_text) == (None, None)


def test_without_an_output_the_text_of_the_contents_is_the_output() -> None:
    outcome = outcome_of(Result(contents=["a", Picture(b"red")], display={"text/html": "<b>x</b>"}))
    assert outcome.output == "a\n<image/png, 3 bytes>"
    assert outcome.display == {"text/html": "<b>x</b>"}


def test_a_failure_may_have_pictures() -> None:
    def look() -> None:
        raise ToolFailed("it broke", contents=[Picture(b"red")])

    outcome = Tool.from_function(look).run({})
    assert (outcome.error, outcome.contents) == ("it broke", [RED])


@pytest.mark.parametrize("output", [Picture(b"red"), [Picture(b"red")]])
def test_pictures_that_a_failed_tool_had_made_stand_behind_its_text(output: Any) -> None:
    def look() -> None:
        raise ToolFailed("it broke", output=output)

    outcome = Tool.from_function(look).run({})
    assert (outcome.error, outcome.contents) == ("it broke", [text_piece("it broke"), RED])


def test_a_drawing_is_a_file_too() -> None:
    class Drawing:
        def _repr_svg_(self) -> str:
            return "<svg/>"

    assert outcome_of([Drawing()]).contents == [file_piece("image/svg+xml", b"<svg/>")]


def test_pictures_beyond_the_limits_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = outcome_of([*[Picture()] * (MAX_DISPLAYS + 1), None, "end"])
    assert outcome.contents is not None
    assert [piece["type"] for piece in outcome.contents[:MAX_DISPLAYS]] == ["file"] * MAX_DISPLAYS
    assert outcome.contents[MAX_DISPLAYS:] == [text_piece("<Picture, not kept>"), json_piece(None), text_piece("end")]
    monkeypatch.setattr("toolcall_nb.tools.results.result.MAX_DISPLAY", 30)
    outcome = outcome_of([Picture(b"red"), Picture(b"blue")])
    assert outcome.contents == [RED, text_piece("<image/png, 4 bytes, not kept>")]


def test_long_texts_among_the_contents_are_cut() -> None:
    outcome = outcome_of(["x" * 2 * MAX_TEXT, Picture(b"red")])
    assert outcome.contents is not None
    assert "characters left out" in outcome.contents[0]["text"]
    assert outcome.contents[1] == RED
    assert len(outcome.model_text or "") < 2 * RESULT_LIMIT


def test_a_figure_among_the_contents_is_not_displayed_again() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    def look() -> Any:
        return ["a figure", pyplot.figure(figsize=(1, 1))]

    outcome = Tool.from_function(look).run({}, lambda _: None)
    assert outcome.contents is not None
    assert [piece["type"] for piece in outcome.contents] == ["text", "file"]
    assert (outcome.display, pyplot.get_fignums()) == (None, [])
