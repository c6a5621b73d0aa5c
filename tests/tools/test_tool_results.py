"""The three forms of a result: data, the display for people, and the text for the model."""

from __future__ import annotations

import base64
import dataclasses
import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.shells import the_shell
from toolcall_nb.core.events import MISSING
from toolcall_nb.core.result_text import RESULT_LIMIT, format_output, format_result, truncate_text
from toolcall_nb.core.transcript import Approval, State, ToolCall
from toolcall_nb.tools import Outcome, Result, Tool
from toolcall_nb.tools.results.result import _WIDGET_NOTICE, output_and_display

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(params=["with a shell", "without a shell"])
def _with_and_without_a_shell(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "without a shell":
        yield
    else:
        with the_shell():
            yield


both = pytest.mark.usefixtures("_with_and_without_a_shell")


class Html:
    def _repr_html_(self) -> str:
        return "<b>bold</b>"

    def __repr__(self) -> str:
        return "bold at 0x7f00"


class Picture:
    def _repr_png_(self) -> bytes:
        return PNG

    def _repr_latex_(self) -> None:
        return None


class Bundle:
    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return {"text/html": "<i>i</i>", "text/plain": "plain i", "application/json": {"a": (1,)}}, {"text/html": {}}


class Widget:
    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "IntSlider()"}


class Markdown:
    def _repr_markdown_(self) -> str:
        return "# Title"


class Failing:
    def _repr_html_(self) -> str:
        raise RuntimeError("no html")

    def _repr_markdown_(self) -> str:
        raise SystemExit

    def _repr_svg_(self) -> str:
        warnings.warn("odd", stacklevel=1)
        return "<svg/>"

    def _repr_png_(self) -> Any:
        return 3

    def __repr__(self) -> str:
        return "Failing()"


@dataclasses.dataclass
class Record:
    name: str

    def _repr_html_(self) -> str:
        return f"<b>{self.name}</b>"


@both
@pytest.mark.parametrize(
    ("value", "output", "display"),
    [
        (Html(), "bold", {"text/html": "<b>bold</b>"}),
        (Picture(), "<tests.tools.test_tool_results.Picture object>", {"image/png": base64.b64encode(PNG).decode()}),
        (Bundle(), "plain i", {"text/html": "<i>i</i>", "application/json": {"a": [1]}}),
        (Markdown(), "# Title", {"text/markdown": "# Title"}),
        (Widget(), "IntSlider()", {"text/markdown": _WIDGET_NOTICE}),
        (Record("a"), {"name": "a"}, {"text/html": "<b>a</b>"}),
        (Html, "<class 'tests.tools.test_tool_results.Html'>", None),
        (Result({"a": 1}, {"image/png": PNG, "text/plain": "x"}), {"a": 1}, {"image/png": "iVBORw0KGgo="}),
        (Result((1,)), [1], None),
        ({"a": [1]}, {"a": [1]}, None),
        (b"\x00\xff", "AP8=", None),
        (PNG, "iVBORw0KGgo=", {"image/png": "iVBORw0KGgo="}),
        (b"RIFF\0\0\0\0WAVE", "UklGRgAAAABXQVZF", None),
        (None, None, None),
        ("text", "text", None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_has_an_output_and_an_object_with_a_repr_method_a_display(
    value: Any, output: Any, display: Any
) -> None:
    assert output_and_display(value) == (output, display)


@both
def test_a_display_method_that_raises_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert output_and_display(Failing()) == ("Failing()", {"image/svg+xml": "<svg/>"})
    assert capsys.readouterr() == ("", "")


@both
def test_an_object_that_has_every_attribute_has_no_display() -> None:
    assert output_and_display(MagicMock(name="anything"))[1] is None


@both
def test_an_interrupt_in_a_display_method_is_raised() -> None:
    class Slow:
        def _repr_html_(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        output_and_display(Slow())


def test_formatters_of_ipython_are_used() -> None:
    class Foreign:
        def __repr__(self) -> str:
            return "foreign"

    with the_shell() as shell:
        shell.display_formatter.formatters["text/html"].for_type(Foreign, lambda value: "<u>f</u>")
        shell.display_formatter.formatters["text/plain"].for_type(Foreign, lambda value, p, cycle: p.text("pretty"))
        assert output_and_display(Foreign()) == ("pretty", {"text/html": "<u>f</u>"})
    assert output_and_display(Foreign()) == ("foreign", None)


# Values of other packages -------------------------------------------------------------------------------------


@both
def test_a_data_frame_is_a_table_for_the_person_and_text_for_the_model() -> None:
    import pandas

    frame = pandas.DataFrame({"city": ["Lyon", "Oslo"], "days": [3, 7]})
    output, display = output_and_display(frame)
    assert output == "index,city,days\n0,Lyon,3\n1,Oslo,7"
    assert display is not None
    assert set(display) == {"text/html"}
    assert "<td>Lyon</td>" in display["text/html"]


@both
def test_a_figure_is_a_picture_and_is_not_shown_a_second_time() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    axes.plot([1, 2])
    for value in (figure, axes):
        output, display = output_and_display(value)
        assert " at 0x" not in output
        assert base64.b64decode(display["image/png"]).startswith(PNG)  # type: ignore[index] # there is one
    assert not pyplot.get_fignums()


def test_a_figure_without_pyplot_is_a_picture() -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    assert output_and_display(figure)[1] is not None


@both
def test_an_image_is_a_picture() -> None:
    from PIL import Image

    image = Image.new("RGB", (2, 2))
    output, display = output_and_display(image)
    assert output == "<PIL.Image.Image image mode=RGB size=2x2>"
    assert base64.b64decode(display["image/png"]).startswith(PNG)  # type: ignore[index] # there is one


@both
def test_ipython_s_own_display_objects_are_displays() -> None:
    from IPython.display import HTML, Latex, Markdown

    html = HTML("<b>x</b>")  # type: ignore[no-untyped-call]
    assert output_and_display(html) == ("<IPython.core.display.HTML object>", {"text/html": "<b>x</b>"})
    assert output_and_display(Markdown("*x*")) == ("*x*", {"text/markdown": "*x*"})  # type: ignore[no-untyped-call]
    assert output_and_display(Latex("$x$")) == ("$x$", {"text/latex": "$x$"})  # type: ignore[no-untyped-call]


def test_nothing_is_imported_to_display_a_value() -> None:
    before = set(sys.modules)
    output_and_display(Html())
    assert set(sys.modules) == before


# What the model is told ---------------------------------------------------------------------------------------


def run(function: Any, limit: int = RESULT_LIMIT) -> Outcome:
    return Tool.from_function(function, name="f", limit=limit).run({})


def test_a_long_result_is_sent_in_part_with_a_count_of_what_is_left_out() -> None:
    outcome = run(lambda: "x" * 60 + "y" * 60, limit=100)
    assert outcome.model_text == "x" * 50 + "\n… 20 characters left out …\n" + "y" * 50
    assert outcome.output == "x" * 60 + "y" * 60


def test_a_short_result_is_sent_whole() -> None:
    assert run(lambda: "x" * 100, limit=100).model_text is None
    assert run(lambda: {"a": "x" * 100}, limit=100).model_text is not None


def test_the_display_does_not_count_towards_the_limit() -> None:
    assert run(lambda: Result("short", {"text/html": "x" * 500}), limit=100).model_text is None


@given(st.text(), st.integers(0, 50))
def test_what_is_left_out_is_counted_exactly(text: str, limit: int) -> None:
    found = truncate_text(text, limit)
    if len(text) <= limit:
        assert found == text
        return
    head, tail = text[: limit - limit // 2], text[len(text) - limit // 2 :]
    assert found == f"{head}\n… {len(text) - limit:,} characters left out …\n{tail}"


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("as it is", "as it is"),
        ({"a": [1, None, "é"]}, '{"a":[1,null,"é"]}'),
        (None, "null"),
        (MISSING, ""),
        (1.5, "1.5"),
    ],
)
def test_an_output_as_text(output: Any, text: str) -> None:
    assert format_output(output) == text


def call(state: State, **fields: Any) -> ToolCall:
    return ToolCall(id="1", name="f", state=state, **fields)


@pytest.mark.parametrize(
    ("ended", "text"),
    [
        (call(State.OUTPUT_AVAILABLE, output={"a": 1}), '{"a":1}'),
        (call(State.OUTPUT_AVAILABLE, output="whole", model_text="part"), "part"),
        (call(State.OUTPUT_ERROR, error="ValueError: no"), "ValueError: no"),
        (call(State.OUTPUT_ERROR), "The tool failed."),
        (call(State.OUTPUT_DENIED), "The call was denied."),
        (call(State.OUTPUT_DENIED, approval=Approval(id="a", approved=False, reason="no")), "The call was denied: no"),
        (call(State.INTERRUPTED), "The call was interrupted before it had a result."),
        (
            call(State.INTERRUPTED, output=[1]),
            "The call was interrupted before it had a result. Until then it gave:\n[1]",
        ),
        (call(State.INPUT_AVAILABLE), "The call has no result yet."),
    ],
)
def test_the_text_for_the_model_says_how_a_call_ended(ended: ToolCall, text: str) -> None:
    assert format_result(ended) == text


def test_the_text_of_an_error_is_bounded() -> None:
    error = "x" * (RESULT_LIMIT + 5)
    assert format_result(call(State.OUTPUT_ERROR, error=error)) == truncate_text(error, RESULT_LIMIT)
    assert "… 5 characters left out …" in truncate_text(error, RESULT_LIMIT)


def test_what_a_tool_was_called_with_is_json_after_conversion() -> None:
    def f(n: int, /, day: str = "", **more: float) -> None: ...

    found = Tool.from_function(f).run({"day": "x", "n": 1, "other": "2.5"})
    assert (found.error, found.arguments) == (None, {"day": "x", "n": 1, "other": 2.5})
    assert json.dumps(list(found.arguments)) == '["day", "n", "other"]'
