"""Pictures and tables that a tool displays while it runs stand in its own card, live and saved."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.kernels import Kernel, running_kernel
from toolcall_nb.core.call_display import (
    DISPLAYED,
    MAX_DISPLAY,
    MAX_DISPLAYS,
    displayed_bundles,
    with_displayed_bundles,
)
from toolcall_nb.core.events import Json
from toolcall_nb.core.transcript import Message, State, ToolCall, Transcript
from toolcall_nb.render import to_html, to_text
from toolcall_nb.render.card_sections import sections
from toolcall_nb.stages import to_stages
from toolcall_nb.tools import Job, Outcome, Preliminary, Tool, ToolProgress, run_together

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(8)).decode()


@pytest.fixture
def pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    assert not pyplot.get_fignums()
    yield pyplot
    assert not pyplot.get_fignums()


def run(function: Any) -> tuple[Outcome, list[ToolProgress]]:
    told: list[ToolProgress] = []
    return Tool.from_function(function).run({}, told.append), told


def kinds(display: dict[str, Json] | None) -> list[list[str]]:
    return [sorted(kind for kind in bundle if kind != "text/plain") for bundle in displayed_bundles(display)]


# Figures, without a notebook ----------------------------------------------------------------------------------


def test_a_figure_that_is_shown_is_displayed_whatever_the_tool_returns(pyplot: Any) -> None:
    for result in ("three points", None, 3):

        def f(result: Any = result) -> Any:
            pyplot.plot([1, 2, 3])
            pyplot.show()
            return result

        outcome, told = run(f)
        assert outcome.output == result
        assert kinds(outcome.display) == [["image/png"]]
        live = [each.display for each in told if isinstance(each, Preliminary)]
        assert kinds(live[0]) == [["image/png"]]  # while it ran


def test_each_figure_is_displayed_once_and_so_is_one_that_is_left_open(pyplot: Any) -> None:
    def f() -> None:
        for points in ([1, 2], [2, 1]):
            pyplot.plot(points)
            pyplot.show()
        pyplot.show()
        pyplot.figure()
        pyplot.plot([3])

    outcome, _ = run(f)
    assert kinds(outcome.display) == [["image/png"]] * 3
    assert len({bundle["image/png"] for bundle in displayed_bundles(outcome.display)}) == 3


def test_a_figure_that_is_the_result_is_not_repeated_among_what_was_displayed(pyplot: Any) -> None:
    for is_shown in (False, True):

        def f(is_shown: bool = is_shown) -> Any:
            figure, axes = pyplot.subplots()
            axes.plot([1, 2])
            if is_shown:
                pyplot.show()
            return figure

        outcome, _ = run(f)
        assert set(outcome.display or {}) == {"image/png"}


def test_a_tool_that_fails_keeps_its_displays(pyplot: Any) -> None:
    def f() -> None:
        pyplot.plot([1, 2])
        raise ValueError("no more")

    outcome, told = run(f)
    assert outcome.error == "ValueError: no more"
    assert isinstance(told[-1], Preliminary)
    assert kinds(told[-1].display) == [["image/png"]]


def test_tools_that_run_in_parallel_keep_their_figures_apart(pyplot: Any) -> None:
    from threading import Barrier

    together = Barrier(2, timeout=30)

    def draw(width: int) -> int:
        figure = pyplot.figure(figsize=(width, 1))
        figure.add_subplot().plot([1, width])
        together.wait()
        pyplot.show()
        together.wait()
        return width

    tool = Tool.from_function(draw, parallel=True)
    jobs = [Job(tool, {"width": width}) for width in (2, 7)]
    outcomes = {job.arguments["width"]: what for job, what in run_together(jobs) if isinstance(what, Outcome)}
    widths = {}
    for width, outcome in outcomes.items():
        (bundle,) = displayed_bundles(outcome.display)
        widths[width] = int.from_bytes(base64.b64decode(bundle["image/png"])[16:20], "big")
    assert widths[2] < widths[7]


# In a kernel --------------------------------------------------------------------------------------------------

_TOOLS = """
%load_ext toolcall_nb
%matplotlib inline
import threading
import matplotlib.pyplot as plt, pandas
from PIL import Image as Picture
from IPython.display import HTML, SVG, Image, Markdown, clear_output, display, update_display
from toolcall_nb import tool

frame = pandas.DataFrame({"city": ["Lyon", "Oslo"], "days": [3, 7]})

@tool
def shows() -> str:
    "Show a chart."
    plt.plot([1, 2, 3]); plt.show()
    return "a chart of three points"

@tool
def leaves():
    "Leave charts open."
    plt.figure(); plt.plot([1, 2])
    plt.figure(); plt.plot([2, 1])

@tool
def displays():
    "Display everything."
    display(frame)
    display(HTML("<b>bold</b>"), Markdown("*slanted*"))
    display(SVG('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>'))
    display(Picture.new("RGB", (3, 3)))
    display(frame.style)
    thread = threading.Thread(target=lambda: display(Picture.new("RGB", (4, 4))))
    thread.start(); thread.join()

@tool
def updates():
    "Display, and then better."
    handle = display(Markdown("first"), display_id=True)
    display(Markdown("beside"))
    handle.update(Markdown("second"))

@tool
def clears():
    "Display, clear, display."
    display(Markdown("before"))
    clear_output(wait=True)
    display(Markdown("after"))

@tool
def interacts():
    "Display a widget."
    import ipywidgets
    display(ipywidgets.IntSlider())
    display({"application/vnd.plotly.v1+json": {"data": []}, "text/html": "<div></div><script>1</script>"}, raw=True)
    return 1
"""


def said(kernel: Kernel, code: str) -> str:
    """What the cell printed; nothing else may reach it."""
    messages = kernel.run(code)
    assert not [m for m in messages if m["msg_type"] in ("display_data", "execute_result", "error")], messages
    return "".join(m["content"]["text"] for m in messages if m["msg_type"] == "stream")


def test_in_a_kernel_a_tools_displays_are_in_its_card_and_nowhere_else(tmp_path: Path) -> None:
    with running_kernel(tmp_path) as kernel:
        assert not [m for m in kernel.run(_TOOLS) if m["msg_type"] == "error"]
        found: dict[str, Any] = {}
        for name in ("shows", "leaves", "displays", "updates", "clears", "interacts"):
            cell = f"%%toolchat --new --model mock:call --tools {name}\n{name}"
            shown = [m["content"] for m in kernel.run(cell, attended=False) if m["msg_type"] == "display_data"]
            assert len(shown) == 1, shown
            html = shown[0]["data"]["text/html"]
            read = Transcript.from_markdown(shown[0]["data"]["text/markdown"])
            (found[name],) = read.calls.values()
            assert "<details open>" in html, name
            code = "import json; call, = chat.calls.values(); print(json.dumps([call.display, call.output]))"
            assert json.loads(said(kernel, code)) == [found[name].display, found[name].output]
        assert found["shows"].output == "a chart of three points"
        assert kinds(found["shows"].display) == [["image/png"]]
        assert kinds(found["leaves"].display) == [["image/png"]] * 2
        assert kinds(found["displays"].display) == [
            *(["text/html"], ["text/html"], ["text/markdown"], ["image/svg+xml"], ["image/png"], ["text/html"]),
            ["image/png"],
        ]
        assert [each["text/markdown"] for each in displayed_bundles(found["updates"].display)] == ["second", "beside"]
        assert [each["text/markdown"] for each in displayed_bundles(found["clears"].display)] == ["after"]
        widget, plotly = (each["text/markdown"] for each in displayed_bundles(found["interacts"].display))
        assert "widget cannot be shown" in widget
        assert "picture" in plotly
        assert found["interacts"].output == 1


# What is kept, and how it is drawn ----------------------------------------------------------------------------


def call(display: dict[str, Json] | None, output: Json = None) -> ToolCall:
    return ToolCall(id="c1", name="plot", state=State.OUTPUT_AVAILABLE, input={}, output=output, display=display)


def page(of: ToolCall) -> str:
    return to_html(Transcript((Message("assistant", (of,)),)))


def test_a_result_with_a_picture_a_table_or_a_view_of_its_own_stays_open() -> None:
    rich = [
        call({"image/png": PNG}, "<Figure>"),
        call({"text/html": "<table><tr><td>1</td></tr></table>"}, "1"),
        call(None, [{"day": 1}, {"day": 2}]),
        call(with_displayed_bundles(None, [{"image/png": PNG}]), "text"),
        call(with_displayed_bundles(None, [{"text/markdown": "*x*"}])),
    ]
    assert all("<details open>" in page(each) for each in rich)
    assert all("<details>" in page(each) for each in (call(None, "text"), call(None, {"a": 1}), call(None)))


def test_a_card_that_the_reader_or_the_writer_closed_stays_closed() -> None:
    rich = call({"image/png": PNG}, "<Figure>")
    transcript = Transcript((Message("assistant", (rich,)),))
    assert "<details open>" not in to_html(transcript, opened={"c1": False})
    folded = ToolCall(id="c1", name="plot", state=State.OUTPUT_AVAILABLE, display={"image/png": PNG}, open=False)
    assert "<details open>" not in page(folded)


def test_displays_are_shown_beside_the_result_or_in_its_place() -> None:
    shown = with_displayed_bundles(None, [{"image/png": PNG, "text/plain": "<Figure>"}, {"text/markdown": "*two*"}])
    with_text, without = call(shown, "a result"), call(shown)
    assert [found.key for found in sections(with_text)] == ["i", "w", "o"]
    assert [found.key for found in sections(without)] == ["i", "w"]
    assert page(with_text).count("<img") == 1
    assert "<em>two</em>" in page(with_text)
    text = to_text(Transcript((Message("assistant", (without,)),)))
    assert "<Figure>" in text
    assert "*two*" in text


def test_a_call_with_displays_reads_back_and_its_pictures_are_in_the_stage_log() -> None:
    shown = with_displayed_bundles({"text/html": "<b>x</b>"}, [{"image/png": PNG}])
    transcript = Transcript((Message("assistant", (call(shown, "x"),)),))
    assert Transcript.from_markdown(transcript.to_markdown()) == transcript
    assert Transcript.from_events(transcript.events()) == transcript
    assert to_stages(transcript.events())[-1]["images"] == [{"data": PNG, "mediaType": "image/png"}]


def test_displays_are_bounded_and_say_how_many_are_left_out() -> None:
    many = [{"text/markdown": str(number)} for number in range(MAX_DISPLAYS + 5)]
    assert displayed_bundles(with_displayed_bundles(None, many))[-1] == {
        "text/markdown": "*… 5 more displays are left out*"
    }
    large = [{"text/html": f"{number}" + "x" * (MAX_DISPLAY // 3)} for number in range(4)]
    kept = displayed_bundles(with_displayed_bundles(None, large))
    assert (len(kept), kept[-1]) == (3, {"text/markdown": "*… 2 more displays are left out*"})
    assert with_displayed_bundles(None, []) is None
    assert with_displayed_bundles({"image/png": PNG}, [{"image/png": PNG}]) == {"image/png": PNG}
    assert DISPLAYED not in (with_displayed_bundles({"image/png": PNG}, []) or {})
