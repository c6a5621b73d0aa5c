"""`watch` and ``%%toolchat --watch``: the calls of a block of code, live in its cell and static at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.kernels import Kernel, Messages, running_kernel
from tests.support.shells import the_shell
from toolcall_nb import tool, watch
from toolcall_nb.errors import UsageError
from toolcall_nb.tools import Registry
from toolcall_nb.watching import span_sources

_SETUP = """
%load_ext toolcall_nb
from toolcall_nb import tool, watch

@tool
def weather(city: str) -> str:
    "The weather in a city."
    return f"clear in {city}"
"""
_WITH = """
with watch() as run:
    print("before")
    weather("Lyon")
    print("after")
"""


@tool(into=Registry())
def weather(city: str) -> str:
    """The weather in a city."""
    return f"clear in {city}"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with running_kernel(tmp_path_factory.mktemp("kernel")) as kernel:
        kernel.run(_SETUP)
        yield kernel


def outputs(messages: Messages) -> list[tuple[str, Any]]:
    """The kinds of the outputs in order, with their text or MIME types; texts that follow each other are joined."""
    found: list[tuple[str, Any]] = []
    for message in messages:
        kind, content = message["msg_type"], message["content"]
        if kind == "stream" and found and found[-1][0] == "stream":
            found[-1] = ("stream", found[-1][1] + content["text"])
        elif kind == "stream":
            found.append((kind, content["text"]))
        elif kind in ("display_data", "update_display_data", "execute_result", "error"):
            found.append((kind, content.get("data", content.get("ename"))))
    return found


def test_live_the_cards_have_their_place_and_become_static(kernel: Kernel) -> None:
    (first, view), (second, text), (third, static) = outputs(kernel.run(_WITH))
    assert (first, second, third) == ("display_data", "stream", "update_display_data")
    assert "application/vnd.jupyter.widget-view+json" in view
    assert text == "before\nafter\n"
    assert "clear in Lyon" in static["text/html"]
    assert "clear in Lyon" in static["text/markdown"]


def test_where_nobody_watches_the_cards_are_static_at_the_end(kernel: Kernel) -> None:
    (first, text), (second, static) = outputs(kernel.run(_WITH, attended=False))
    assert (first, second) == ("stream", "display_data")
    assert text == "before\nafter\n"
    assert "clear in Lyon" in static["text/markdown"]


def test_a_cell_with_watch_runs_as_any_cell(kernel: Kernel) -> None:
    code = "%%toolchat --watch\nprint('before')\nanswer = weather('Oslo')\nanswer.upper()"
    (first, text), (_, value), (_, static) = outputs(kernel.run(code, attended=False))
    assert (first, text) == ("stream", "before\n")
    assert value["text/plain"] == "'CLEAR IN OSLO'"
    assert "clear in Oslo" in static["text/markdown"]
    assert outputs(kernel.run("answer, len(watched.calls)"))[0][1]["text/plain"] == "('clear in Oslo', 1)"


def test_an_error_in_a_cell_with_watch_is_that_of_the_cell(kernel: Kernel) -> None:
    messages = kernel.run("%%toolchat --watch\nweather('Oslo')\n1 / 0", attended=False)
    kinds = outputs(messages)
    assert ("error", "ZeroDivisionError") in kinds
    assert [kind for kind, _ in kinds] == ["display_data", "error"]
    report = "\n".join(next(m["content"]["traceback"] for m in messages if m["msg_type"] == "error"))
    assert "1 / 0" in report
    assert "watch.py" not in report


def test_a_cell_that_awaits_or_has_other_options_is_refused_with_what_to_do() -> None:
    with the_shell() as shell:
        shell.run_line_magic("load_ext", "toolcall_nb")
        with pytest.raises(Exception, match="cannot await at its top level"):
            shell.run_cell_magic("toolchat", "--watch", "import asyncio\nawait asyncio.sleep(0)\n")
        with pytest.raises(Exception, match="takes no other option, but got --model"):
            shell.run_cell_magic("toolchat", "--watch --model mock", "1\n")


def test_in_a_terminal_calls_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with watch() as run:
        weather("Lyon")
    printed = capsys.readouterr().out
    assert "weather · Completed" in printed
    assert "clear in Lyon" in printed
    assert repr(run) == "<WatchedRun: <Transcript: 1 messages, 1 tool calls>>"
    assert "clear in Lyon" in run._repr_mimebundle_()["text/html"]
    assert run.recording.transcript == run.transcript


def test_a_watch_that_saw_nothing_says_so() -> None:
    with watch() as run:
        pass
    assert "watched · no call of a model or tool" in run._repr_mimebundle_()["text/html"]


def test_requests_that_a_watch_cannot_see_are_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(span_sources, "_INSTRUMENTORS", {"json": (("absent_instrumentation", "Instrumentor"),)})
    with watch():
        weather("Lyon")
    said = "Requests of the package json are not shown. Install absent-instrumentation.\n"
    assert capsys.readouterr().err.endswith(said)


def test_a_watch_that_is_interrupted_says_so_and_raises(capsys: pytest.CaptureFixture[str]) -> None:
    run = watch()

    def body() -> None:
        with run:
            weather("Lyon")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        body()
    assert run.transcript[-1].aborted == "interrupted"
    assert "clear in Lyon" in capsys.readouterr().out


def test_a_watch_is_for_one_block() -> None:
    run = watch()
    with run:
        pass
    with pytest.raises(UsageError, match="Make a new one"), run:
        pass
