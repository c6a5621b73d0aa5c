"""The first line of the HTML that a notebook saves, which JupyterLab shows in place of a collapsed output."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup, Comment

from tests.support.saved_runs import short_run
from toolcall_nb import Chat, MockModel, diff, read_many, run_many
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.notebook import batch_widget, cell_outputs
from toolcall_nb.render.output_summary import summary_line
from toolcall_nb.render.saved_output import saved_bundle


def _run(*events: Event, name: str = "weather") -> Transcript:
    def call(call_id: str) -> ev.ToolInputAvailable:
        return ev.ToolInputAvailable(call_id, name, {})

    calls: list[Event] = [
        call("a"),
        call("b"),
        call("c"),
        ev.ToolOutputAvailable("a", 1),
        ev.ToolOutputError("b", "no"),
    ]
    return Transcript.from_events([ev.Start(), *calls, ev.ToolOutputAvailable("c", 2), *events])


def _first_line(html: str) -> str:
    return html.partition("\n")[0]


@pytest.mark.parametrize(
    ("events", "end"),
    [
        ([ev.Finish()], "ended"),
        ([ev.Finish(finish_reason="stop")], "ended"),
        ([ev.Finish(finish_reason="length")], "cut-off"),
        ([ev.Finish(finish_reason="--><img src=x>")], "ended"),
        ([ev.Abort()], "stopped"),
        ([ev.Abort(reason="--><img src=x>")], "stopped"),
        ([ev.Error("refused")], "error"),
        ([ev.Error("refused"), ev.Finish()], "error"),
    ],
)
def test_the_first_line_of_a_saved_run_says_what_it_is_and_how_it_ended(events: list[Event], end: str) -> None:
    html = saved_bundle(_run(*events), line="mock", is_run=True)["text/html"]
    assert _first_line(html) == f"<!-- Run: 3 tool calls, 1 failed · {end} -->"


def test_a_run_without_calls_says_so() -> None:
    transcript = Transcript.from_events([ev.Start(), ev.TextDelta("t", "Hello."), ev.Finish()])
    html = saved_bundle(transcript, line="mock", is_run=True)["text/html"]
    assert _first_line(html) == "<!-- Run: no tool calls · ended -->"


def test_calls_that_were_denied_or_interrupted_or_never_ended_are_counted_in_the_first_line() -> None:
    calls: list[Event] = [ev.ToolInputAvailable(call, "weather", {}) for call in "abcd"]
    events = [*calls, ev.ToolOutputDenied("a"), ev.ToolInterrupted("b"), ev.ToolOutputAvailable("c", 1), ev.Finish()]
    html = saved_bundle(Transcript.from_events([ev.Start(), *events]), is_run=True)["text/html"]
    assert _first_line(html) == "<!-- Run: 4 tool calls, 1 denied, 1 interrupted, 1 without a result · ended -->"


def _chat(_: Path) -> Chat:
    chat = Chat(model=MockModel(script=["Fine."]))
    chat.send("How are you?")
    return chat


_RUN = _run(ev.Finish())
_DISPLAYS: list[tuple[Callable[[Path], Any], str]] = [
    (lambda _: _RUN, "Transcript: 1 message, 3 tool calls, 1 failed"),
    (lambda _: Transcript(), "Transcript: 0 messages"),
    (lambda _: short_run().messages[0], "Transcript: 1 message, 1 tool call"),
    (lambda _: _RUN.calls["b"], "Tool call: weather · Error"),
    (lambda _: _RUN.calls, "Table: 3 tool calls, 1 failed"),
    (lambda _: diff(_RUN, _RUN), "Comparison: No differences · 3 equal"),
    (_chat, "Transcript: 2 messages"),
    (lambda _: run_many(["Hi", "Ho"], models="mock"), "Batch: 2 of 2 done"),
    (read_many, "Table: 2 runs, 4 tool calls, 1 failed"),
    (lambda folder: read_many(folder)[0], "Transcript: 1 message, 3 tool calls, 1 failed"),
    (lambda folder: read_many(folder).calls, "Table: 4 tool calls, 1 failed"),
    (lambda folder: read_many(folder).search("weather"), "Search: 4 places in 2 runs"),
]


@pytest.mark.parametrize(("make", "summary"), _DISPLAYS)
def test_every_display_begins_with_a_short_true_line_which_the_page_does_not_show(
    make: Callable[[Path], Any], summary: str, tmp_path: Path
) -> None:
    _RUN.write(tmp_path / "a.md")
    short_run().write(tmp_path / "b.md")
    html = make(tmp_path)._repr_mimebundle_()["text/html"]
    assert _first_line(html) == f"<!-- {summary} -->"
    page = BeautifulSoup(html, "html.parser")
    page.style.decompose()
    assert [f"{text}".strip() for text in page.find_all(string=lambda text: isinstance(text, Comment))] == [summary]
    assert summary not in page.get_text()


@pytest.mark.parametrize("html", [cell_outputs.MEANWHILE["text/html"], batch_widget._MEANWHILE["text/html"]])
def test_the_output_of_a_live_view_begins_with_a_short_line(html: str) -> None:
    assert re.fullmatch(r"<!-- (Run|Batch): not finished, or cut off before its end -->", _first_line(html))


@pytest.mark.parametrize(
    "name", ["--><img src=x onerror=a()>", "a\n<b>", "--!>", "<!--", "x" * 1_000, "\u202e\x00", "-"]
)
def test_no_name_of_a_tool_ends_the_first_line_or_its_comment(name: str) -> None:
    call = _run(ev.Finish(), name=name).calls["a"]
    html = call._repr_mimebundle_()["text/html"]
    line = _first_line(html)
    assert re.fullmatch(r"<!-- (?:(?!--)[^<>\n])* -->", line)
    assert len(line) < 300
    assert len(BeautifulSoup(line, "html.parser").contents) == 1


def test_no_text_ends_the_comment() -> None:
    assert summary_line("---> a\n\nb <!--") == "<!-- - - -&gt; a b &lt;!- - -->\n"


def test_a_line_below_leaves_the_first_line_as_it_is() -> None:
    html = saved_bundle(_RUN, line="notes.md")["text/html"]
    assert _first_line(html) == "<!-- Transcript: 1 message, 3 tool calls, 1 failed -->"
    assert html.count("<!-- ") == 1
