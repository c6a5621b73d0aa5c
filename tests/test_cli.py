"""The command line, run as people run it."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolcall_nb import events as ev
from toolcall_nb.cli import main
from toolcall_nb.transcript import State, Transcript

TEXT = """\
Let me see.

> [!tool search call_1]
> input:
>   query: cats
> output:
>   - All About Cats

Here they are: 🐈
"""
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "talk.md"
    path.write_text(TEXT, encoding="utf-8")
    return path


def stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="ascii"))


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "toolcall_nb", *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=60, **options)  # type: ignore[call-overload, no-any-return] # options are subprocess.run's own


# render -----------------------------------------------------------------------------------------------------


def test_render_makes_a_page(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "talk.html"
    assert main(["render", str(file), "-o", str(out)]) == 0
    assert main(["render", str(file)]) == 0
    page = out.read_text(encoding="utf-8")
    assert page == capsys.readouterr().out
    assert page.lower().startswith("<!doctype html>")
    assert "All About Cats" in page
    assert "🐈" in page


# events -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [None, "1", "7", "100000"])
def test_events_are_one_json_object_a_line(file: Path, cut: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", str(file), *(["--cut", cut] if cut else [])]) == 0
    events = [ev.from_dict(json.loads(line)) for line in capsys.readouterr().out.splitlines()]
    transcript = Transcript.from_events(events)
    assert transcript.calls["call_1"].state is State.OUTPUT_AVAILABLE
    assert transcript.calls["call_1"].output == ["All About Cats"]
    assert transcript.messages[0].text == "Let me see.\n\nHere they are: 🐈\n"


def test_events_that_json_cannot_say_are_null(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin(monkeypatch, b"> [!tool f 1]\n> input:\n>   a: .nan\n>   b: 1180591620717411303424\n")
    assert main(["events", "-"]) == 0
    lines = [json.loads(line, parse_constant=pytest.fail) for line in capsys.readouterr().out.splitlines()]
    assert {"a": None, "b": 2**70} in [line.get("input") for line in lines]


def test_nothing_has_no_events(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stdin(monkeypatch, b"")
    assert main(["events", "-"]) == 0
    assert capsys.readouterr().out == ""


# check ------------------------------------------------------------------------------------------------------


def test_check_of_a_good_file_says_nothing(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(file)]) == 0
    assert capsys.readouterr().out == ""


def test_check_tells_what_is_wrong_where_and_what_was_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin(monkeypatch, b"Hi\n\n> [!tool f 1]\n> state: weird\n\nna\xefve\n\n> [!tool g]\n> {\n")
    assert main(["check", "-"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("-:3:1: the state 'weird' ")
    assert lines[1] == "-:6:3: the byte 0xef is not UTF-8 — Such bytes were replaced by U+FFFD."
    assert lines[2].startswith("-:")
    assert all(" — " in line for line in lines)


def test_other_commands_go_on_with_broken_bytes_and_say_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin(monkeypatch, "\N{BYTE ORDER MARK}a".encode() + b"\xff")
    assert main(["events", "-"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("-:1:2: the byte 0xff is not UTF-8")
    assert "a\ufffd" in "".join(json.loads(line).get("delta", "") for line in out.splitlines())


# chat -------------------------------------------------------------------------------------------------------


@pytest.fixture
def tools_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "cli_tools.py").write_text(
        "from toolcall_nb.tools import tool\n\n"
        "@tool\ndef weather(city: str) -> str:\n    return f'sunny in {city}'\n\n"
        "def double(n: int) -> int:\n    return 2 * n\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    return "cli_tools"


@pytest.mark.parametrize("dialect", ["native", "callout"])
def test_chat_runs_the_tools_and_shows_the_answer(tools_module: str, dialect: str) -> None:
    done = run(
        *["chat", "What is the weather in Oslo?", "--tools", tools_module, "--dialect", dialect],
        *["--speed", "0", "--system", "Be brief."],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    shown = done.stdout.decode()
    assert done.returncode == 0, done.stderr.decode()
    for text in ("Be brief.", "What is the weather in Oslo?", "weather", "Completed", "sunny in Oslo"):
        assert text in shown


def test_chat_takes_single_functions_and_a_prompt_from_standard_input(tools_module: str) -> None:
    done = run(
        *["chat", "-", "--tools", f"{tools_module}:double", "--speed", "0"],
        input=b"double 21",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr.decode()
    assert "42" in done.stdout.decode()


# Mistakes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check", "no/such/file.md"], "toolcall-nb: no/such/file.md: No such file or directory"),
        (
            ["render", "-", "-o", "no/such/folder/x.html"],
            "toolcall-nb: no/such/folder/x.html: No such file or directory",
        ),
        (["chat", "hi", "--model", "mack"], "toolcall-nb: There is no model 'mack'. Did you mean 'mock'?"),
        (["chat", "hi", "--dialect", "x"], "toolcall-nb: There is no dialect 'x'."),
        (["chat", "hi", "--speed", "-1"], "toolcall-nb: A speed is a number above 0"),
        (["chat", "hi", "--tools", "no_such_module"], "toolcall-nb: The module 'no_such_module' cannot be imported"),
        (["chat", "hi", "--tools", "json:nope"], "toolcall-nb: The module 'json' has no 'nope'."),
        (["chat", "hi", "--tools", "json"], "toolcall-nb: The module 'json' has no function with @tool."),
    ],
)
def test_a_mistake_is_one_line_on_standard_error(
    arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin(monkeypatch, b"text")
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(says)
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["nope"], ["events", "-", "--cut", "0"], ["chat", "x", "--max-steps", "no"]])
def test_a_command_that_is_none_shows_the_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("usage: toolcall-nb")


def test_help_is_no_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(command in shown for command in ("render", "events", "check", "chat"))


# The world around -------------------------------------------------------------------------------------------


def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    long = tmp_path / "long.md"
    long.write_text("word " * 50_000, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "toolcall_nb", "events", str(long), "--cut", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 0


def test_output_is_utf_8_whatever_the_locale_says(file: Path) -> None:
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    assert "🐈" in run("render", str(file), env=plain, cwd=ROOT).stdout.decode("utf-8")


def test_ctrl_c_stops_the_answer_and_gives_130() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "toolcall_nb", "chat", "hello", "--model", "mock:long", "--speed", "0.5"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    shown = b""
    while b"A longer answer" not in shown:
        shown += process.stdout.readline()
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == b""
    assert b"nterrupted" in rest or b"topped" in rest
