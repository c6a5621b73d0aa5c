"""The output of a running tool goes to its own log; the output of other code does not."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kernels import running_kernel
from tests.support.shells import the_shell
from toolcall_nb import Chat
from toolcall_nb.core.append_only import ConsoleText
from toolcall_nb.core.call_display import displayed_bundles
from toolcall_nb.tools import Job, Log, Outcome, Tool, ToolProgress, run_together
from toolcall_nb.tools.output import log_text as log_text_module
from toolcall_nb.tools.output.captured_output import CapturedOutput, captured_output

_WITHIN = 30


class Told:
    """Keeps what a tool tells."""

    def __init__(self) -> None:
        self.all: list[ToolProgress] = []
        self.some = threading.Event()

    def __call__(self, progress: ToolProgress) -> None:
        self.all.append(progress)
        self.some.set()

    @property
    def log(self) -> str:
        return "".join(progress.text for progress in self.all if isinstance(progress, Log))

    @property
    def shown(self) -> str:
        """The log as it reads in the card."""
        return str(ConsoleText().add(self.log))


def run(function: Callable[..., Any], **arguments: Any) -> tuple[Outcome, Told]:
    told = Told()
    outcome = Tool.from_function(function, name="f").run(arguments, told)
    return outcome, told


def log_of(function: Callable[[], Any]) -> str:
    outcome, told = run(function)
    assert outcome.error is None, outcome.error
    return told.log


@pytest.fixture(autouse=True)
def _everything_is_as_before() -> Iterator[None]:
    def methods() -> list[Any]:
        return [threading.Thread.start, *(vars(stream).get("write") for stream in (sys.stdout, sys.stderr))]

    before = methods()
    yield
    assert methods() == before


# What is heard ------------------------------------------------------------------------------------------------


def test_stdout_and_stderr_go_to_the_log_and_not_to_the_cell(capsys: pytest.CaptureFixture[str]) -> None:
    def f() -> None:
        print("out")
        print("err", file=sys.stderr)
        sys.stdout.writelines(["a", "b\n"])

    assert log_of(f) == "out\nerr\nab\n"
    assert capsys.readouterr() == ("", "")


def test_without_a_progress_callback_a_tool_prints_as_usual(capsys: pytest.CaptureFixture[str]) -> None:
    Tool.from_function(lambda: print("here"), name="f").run({})
    assert capsys.readouterr().out == "here\n"


def test_a_logging_handler_that_was_set_up_before_writes_to_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    logger, handler = logging.getLogger("a tool's own"), logging.StreamHandler(sys.stderr)
    logger.addHandler(handler)
    try:
        assert log_of(lambda: logger.warning("low on fuel")) == "low on fuel\n"
        logger.warning("afterwards")
        assert capsys.readouterr().err == "afterwards\n"
    finally:
        logger.removeHandler(handler)


def test_threads_that_a_tool_starts_print_into_its_log(capsys: pytest.CaptureFixture[str]) -> None:
    class Own(threading.Thread):
        def run(self) -> None:
            print("own")

    def f() -> None:
        for thread in (threading.Thread(target=print, args=("plain",)), Own()):
            thread.start()
            thread.join()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(print, "pooled").result()
        nested = threading.Thread(target=lambda: _and_wait(threading.Thread(target=print, args=("nested",))))
        _and_wait(nested)
        assert "run" not in vars(nested)

    assert log_of(f) == "plain\nown\npooled\nnested\n"
    assert capsys.readouterr() == ("", "")


def _and_wait(thread: threading.Thread) -> None:
    thread.start()
    thread.join()


def test_an_async_tool_prints_into_its_log_from_all_its_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    async def f() -> None:
        print("tool")
        await asyncio.create_task(asyncio.to_thread(print, "thread"))
        await asyncio.gather(asyncio.sleep(0), asyncio.create_task(_say("task")))

    assert log_of(f) == "tool\nthread\ntask\n"
    assert capsys.readouterr() == ("", "")


async def _say(word: str) -> None:
    print(word)


def test_prints_and_yields_of_a_generator_are_reported_in_order() -> None:
    def f() -> Iterator[int]:
        print("before")
        yield 1
        print("between")
        yield 2

    _, told = run(f)
    written = "".join(p.text if isinstance(p, Log) else f"<{p.output}>" for p in told.all)
    assert written == "before\n<1>between\n<2>"


# What is not heard --------------------------------------------------------------------------------------------


def test_output_of_other_threads_is_not_captured(capsys: pytest.CaptureFixture[str]) -> None:
    asked, done = threading.Event(), threading.Event()

    def other() -> None:
        asked.wait(_WITHIN)
        print("other")
        done.set()

    thread = threading.Thread(target=other)
    thread.start()

    def f() -> None:
        asked.set()
        assert done.wait(_WITHIN)
        print("tool")

    assert log_of(f) == "tool\n"
    thread.join()
    assert capsys.readouterr().out == "other\n"


def test_parallel_tools_print_each_into_their_own_log(capsys: pytest.CaptureFixture[str]) -> None:
    meeting = threading.Barrier(3)

    def f(name: str) -> str:
        for number in range(20):
            meeting.wait(_WITHIN)
            print(name, number)
        return name

    tool = Tool.from_function(f)
    logs: dict[str, str] = {}
    for job, what in run_together([Job(tool, {"name": name}) for name in "abc"]):
        print("main")
        if isinstance(what, Log):
            logs[job.arguments["name"]] = logs.get(job.arguments["name"], "") + what.text
    assert logs == {name: "".join(f"{name} {number}\n" for number in range(20)) for name in "abc"}
    assert set(capsys.readouterr().out.split()) == {"main"}


def test_a_stream_that_the_tool_replaces_itself_is_not_captured() -> None:
    def f() -> str:
        with redirect_stdout(io.StringIO()) as kept:
            print("kept")
        print("told")
        return kept.getvalue()

    outcome, told = run(f)
    assert (outcome.output, told.log) == ("kept\n", "told\n")


def test_a_thread_that_outlives_its_tool_prints_as_usual(capsys: pytest.CaptureFixture[str]) -> None:
    ended = threading.Event()
    threads: list[threading.Thread] = []

    def late() -> None:
        print("in time")
        ended.wait(_WITHIN)
        print("late")

    def f() -> None:
        threads.append(threading.Thread(target=late))
        threads[0].start()

    _, told = run(f)
    ended.set()
    threads[0].join()
    assert (told.log + capsys.readouterr().out).splitlines() == ["in time", "late"]
    assert "late" not in told.log


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_output_of_a_forked_process_is_not_captured(capfd: pytest.CaptureFixture[str]) -> None:
    def f() -> None:
        sys.stdout.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if not child:
            print("child", flush=True)
            os._exit(0)
        os.waitpid(child, 0)

    assert log_of(f) == ""
    assert capfd.readouterr().out == "child\n"


# One within another -------------------------------------------------------------------------------------------


def test_output_of_an_inner_tool_without_a_callback_goes_to_the_outer_log() -> None:
    def f() -> None:
        print("outer")
        Tool.from_function(lambda: print("inner"), name="g").run({})

    assert log_of(f) == "outer\ninner\n"


def test_output_of_an_inner_tool_with_a_callback_stays_out_of_the_outer_log() -> None:
    inner = Told()

    def f() -> None:
        print("before")
        Tool.from_function(lambda: print("inner"), name="g").run({}, inner)
        print("after")

    assert log_of(f) == "before\nafter\n"
    assert inner.log == "inner\n"


def test_a_tool_may_run_a_chat_with_tools() -> None:
    def speak() -> str:
        print("from within")
        return "spoken"

    def f() -> str:
        chat = Chat("mock", tools=[speak], speed=None)
        chat.send("speak")
        return next(call.log for call in chat.calls.values())

    outcome, told = run(f)
    assert outcome.output + told.log == "from within\n"


def test_what_the_progress_callback_prints_is_not_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    told = Told()

    def tell(progress: ToolProgress) -> None:
        print("teller")
        told(progress)

    Tool.from_function(lambda: print("tool"), name="f").run({}, tell)
    assert told.log == "tool\n"
    assert "teller" in capsys.readouterr().out


def test_a_progress_callback_that_raises_does_not_fail_the_tool(caplog: pytest.LogCaptureFixture) -> None:
    def tell(progress: ToolProgress) -> None:
        raise RuntimeError("no display")

    def f() -> Iterator[str]:
        print("a")
        yield "b"

    assert Tool.from_function(f).run({}, tell).output == "b"
    assert len(caplog.records) == 1


# When it is told ----------------------------------------------------------------------------------------------


def test_printed_text_is_reported_while_the_tool_runs() -> None:
    told = Told()

    def f() -> bool:
        print("now")
        return told.some.wait(_WITHIN)

    assert Tool.from_function(f).run({}, told).output is True


def test_many_prints_are_reported_in_few_pieces() -> None:
    told = Told()
    with captured_output(told, interval=600):
        for number in range(1000):
            print(number)
    assert told.log == "".join(f"{number}\n" for number in range(1000))
    assert len(told.all) <= 2


def test_with_interval_zero_each_write_is_reported() -> None:
    told = Told()
    with captured_output(told, interval=0):
        sys.stdout.write("a")
        sys.stdout.write("b")
    assert told.all == [Log("a"), Log("b")]


def test_output_before_an_exception_is_reported() -> None:
    def f() -> None:
        print("last words")
        raise ValueError

    outcome, told = run(f)
    assert (outcome.error, told.log) == ("ValueError", "last words\n")


# What is told -------------------------------------------------------------------------------------------------


def cleaned(*pieces: str) -> str:
    told = Told()
    printout = CapturedOutput(told, interval=0)
    for piece in pieces:
        printout.write(piece)
    printout.close()
    return str(ConsoleText().add(told.log))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b(Bplain\x1b=", "plain"),
        ("\x1b[2K\rnew", "new"),
        ("an escape \x1b", "an escape "),
        ("cut \x1b[3", "cut "),
        ("a\rb\n", "b\n"),
        ("windows\r\n", "windows\n"),
        ("", ""),
    ],
)
def test_escape_sequences_are_removed_wherever_they_are_cut(written: str, read: str) -> None:
    assert cleaned(written) == read
    assert cleaned(*written) == read


_WRITTEN = st.lists(st.sampled_from(["a", "bc", "\n", "\r", "\x1b[1m", "\x1b[0m", "\x1b]0;t\x07", "\x1b[2K"])).map(
    "".join
)


@given(_WRITTEN, st.data())
def test_the_log_does_not_depend_on_the_cuts_of_the_text(written: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(written)))
    assert cleaned(written[:place], written[place:]) == cleaned(written) == cleaned(*written)


@given(st.text(st.characters(exclude_characters="\r\x1b")), st.data())
def test_text_without_escapes_is_unchanged(written: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(written)))
    assert cleaned(written[:place], written[place:]) == written


@pytest.mark.parametrize("piece", [1, 3, 7, 100])
def test_a_log_is_bounded_and_counts_what_is_left_out(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(log_text_module, "MAX_LOG", 10)
    text = "12345\n789012345\n"
    pieces = [text[start : start + piece] for start in range(0, len(text), piece)]
    assert cleaned(*pieces) == "12345\n7890\n… 6 more characters were printed.\n"


def test_a_log_of_exactly_the_maximum_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_text_module, "MAX_LOG", 6)
    assert cleaned("12345\n") == "12345\n"


def test_a_redrawn_progress_bar_counts_as_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_text_module, "MAX_LOG", 10)
    assert cleaned(*(f"\r{number:3} %" for number in range(101))) == "100 %"


def test_a_flood_of_output_leaves_a_bounded_log() -> None:
    def f() -> None:
        for _ in range(3000):
            print("x" * 999)

    log = log_of(f)
    assert log.endswith("… 2,000,000 more characters were printed.\n")
    assert len(log) < log_text_module.MAX_LOG + 100


# ToolProgress bars ------------------------------------------------------------------------------------------------


def test_a_progress_bar_is_one_line() -> None:
    import tqdm

    def f() -> None:
        for _ in tqdm.tqdm(range(50), mininterval=0, desc="load"):
            pass

    _, told = run(f)
    assert told.shown.count("\n") == 1
    assert told.shown.startswith("load: 100%")


def test_nested_progress_bars_do_not_fill_the_log() -> None:
    lines = "".join(f"\n\rinner {number}\x1b[A" for number in range(20))
    assert cleaned(f"\router 0%{lines}\router 100%\n") == "outer 100%\n"


def test_a_progress_bar_for_notebooks_is_one_line_too() -> None:
    from tqdm import notebook

    display = notebook.tqdm_notebook.display

    def f() -> None:
        for _ in notebook.tqdm(range(50), mininterval=0, desc="load"):
            pass

    with the_shell():
        _, told = run(f)
    assert told.shown.startswith("load: 100%")
    assert told.shown.count("\n") == 1
    assert notebook.tqdm_notebook.display is display


# Displays -----------------------------------------------------------------------------------------------------


def test_display_of_plain_text_is_logged_and_not_in_the_cell(capsys: pytest.CaptureFixture[str]) -> None:
    from IPython.display import clear_output, display

    def f() -> int:
        handle = display({"text/plain": "one"}, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        handle.update({"text/plain": "two"}, raw=True)
        clear_output()  # type: ignore[no-untyped-call]
        return 1

    with the_shell() as shell:
        outcome, told = run(f)
        assert "publish" not in vars(shell.display_pub)
    assert (told.log, outcome.display) == ("one\ntwo\n", None)
    assert capsys.readouterr() == ("", "")


def test_displays_are_kept_in_order_and_are_not_in_the_log() -> None:
    from IPython.display import display

    def f() -> None:
        for text in ("<b>1</b>", "<b>2</b>"):
            display({"text/plain": "bold", "text/html": text}, raw=True)  # type: ignore[no-untyped-call]

    with the_shell():
        outcome, told = run(f)
    shown = [{"text/html": text, "text/plain": "bold"} for text in ("<b>1</b>", "<b>2</b>")]
    assert (outcome.output, displayed_bundles(outcome.display), told.log) == (None, shown, "")


# In a kernel --------------------------------------------------------------------------------------------------


OUTPUTS = ("stream", "display_data", "update_display_data", "execute_result", "error", "clear_output")

_CELL = """
import logging, sys, threading, warnings
from IPython.display import HTML, display
from toolcall_nb.tools import Log, Tool
logging.getLogger().addHandler(logging.StreamHandler())

def speak():
    print("printed")
    print("error", file=sys.stderr)
    warnings.warn("warned")
    logging.warning("logged")
    thread = threading.Thread(target=print, args=("threaded",))
    thread.start()
    thread.join()
    display(HTML("<b>shown</b>"))

told = []
outcome = Tool.from_function(speak).run({}, told.append)
"""


def test_in_a_kernel_no_output_of_a_tool_reaches_the_cell(tmp_path: Path) -> None:
    with running_kernel(tmp_path) as kernel:
        quiet = kernel.run(_CELL)
        assert [m["content"] for m in quiet if m["msg_type"] in OUTPUTS] == []
        said = kernel.run(
            "print(''.join(log.text for log in told if isinstance(log, Log)), outcome.display, outcome.error)"
        )
        text = "".join(m["content"]["text"] for m in said if m["msg_type"] == "stream")
        for word in (
            "printed\nerror\n",
            "UserWarning: warned",
            "logged\n",
            "threaded\n",
            "'text/html': '<b>shown</b>'",
        ):
            assert word in text, text
        after = kernel.run("logging.warning('afterwards')")
        assert [m["content"]["text"] for m in after if m["msg_type"] == "stream"] == ["afterwards\n"]
