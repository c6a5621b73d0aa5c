"""Nothing that a terminal would obey reaches standard output or standard error."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from toolcall_nb.cli import main
from toolcall_nb.core import events as ev
from toolcall_nb.render import TerminalFace

HOSTILE = "\x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b]52;c;aGk=\x07\x1b[2J\x9b2J\u202eabc\x08\x7f"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
OWN_ESCAPES = re.compile(r"\x1b\[[\d;]*m|\x1b\[\?25[lh]|\x1b\[\d*[AK]|\r(?=\x1b|$)")
PIECES = st.sampled_from(
    [
        HOSTILE,
        "</kbd>",
        "<kbd>",
        "&#27;[2J",
        "&#155;",
        "**",
        "`",
        "[b]",
        "[/b]",
        "\n\n",
        "- ",
        "| a |\n|-|\n",
        "x",
        "1. ",
    ]
)


def _drawn(text: str, *, is_terminal: bool) -> str:
    file = io.StringIO()
    with TerminalFace(Console(file=file, force_terminal=is_terminal, width=60, height=12)) as face:
        for event in (ev.Start(), ev.TextStart("t"), ev.TextDelta("t", text), ev.TextEnd("t"), ev.Finish()):
            face.apply(event)
    return file.getvalue()


@given(st.lists(PIECES | st.text(), max_size=8).map("".join))
def test_no_text_of_a_model_raises_or_reaches_the_terminal_as_a_control_character(text: str) -> None:
    output = sys.stdout
    assert not OBEYED.search(OWN_ESCAPES.sub("", _drawn(text, is_terminal=True)))
    assert not OBEYED.search(_drawn(text, is_terminal=False))
    assert sys.stdout is output


def test_html_of_a_reply_is_shown_as_text() -> None:
    assert "Press </kbd> now" in _drawn("Press </kbd> now", is_terminal=True)


def test_standard_output_is_restored_when_drawing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no drawing")

    output = sys.stdout
    face = TerminalFace(Console(force_terminal=True))
    with pytest.raises(RuntimeError), face:
        monkeypatch.setattr(face, "_print_rest", fail)
    assert sys.stdout is output


@pytest.mark.parametrize(
    "command",
    [
        ["render", "FILE"],
        ["render", "FILE", "-o", f"{HOSTILE}.pdf"],
        ["events", "FILE"],
        ["events", "FILE", "--format", "stages"],
        ["check", "FILE"],
        ["check", "FILE", "--stages"],
        ["diff", "FILE", "OTHER"],
        ["search", "a", "FOLDER"],
        ["search", "a", "FOLDER", "--files"],
        ["search", "-E", f"({HOSTILE}", "FOLDER"],
        ["view", HOSTILE],
        [HOSTILE],
        ["render", f"{HOSTILE}.md"],
        ["render", f"{HOSTILE}.json"],
        ["events", "FILE", f"--{HOSTILE}"],
        ["events", "FILE", "--format", HOSTILE],
        ["chat", HOSTILE, "--speed", "0"],
        ["chat", "hello", "--model", HOSTILE],
        ["chat", "hello", "--tools", HOSTILE],
        ["chat", "hello", "--dialect", HOSTILE],
        ["serve", "--store", f"/dev/null/{HOSTILE}"],
        ["serve", "--port", HOSTILE],
    ],
    ids=lambda command: " ".join(command).replace(HOSTILE, "HOSTILE"),
)
def test_no_command_prints_a_control_character(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = HOSTILE.replace("/", "")
    file, other = tmp_path / f"a {name}.md", tmp_path / f"b {name}.md"
    text = (
        f"a {HOSTILE}\n\n```\n{HOSTILE}\n```\n\n> [!tool se{HOSTILE}arch c1]\n> input:\n>   a: {HOSTILE}\n> outp: {{\n"
    )
    file.write_text(text, "utf-8")
    other.write_text("a b\n\n> [!tool search c2]\n> output: a\n", "utf-8")
    with ZipFile(tmp_path / f"{name}.eval", "w") as archive:
        archive.writestr(f"{HOSTILE}.json", "{a")
    words = {"FILE": f"{file}", "OTHER": f"{other}", "FOLDER": f"{tmp_path}"}
    assert main([words.get(word, word) for word in command]) in (0, 1, 2)
    printed = capsys.readouterr()
    assert not OBEYED.search(printed.out)
    assert not OBEYED.search(printed.err)
    assert "Traceback" not in printed.err


def test_the_standard_streams_are_restored_after_each_command() -> None:
    streams = sys.stdout, sys.stderr
    assert main(["render", "none.md"]) == 2
    assert (sys.stdout, sys.stderr) == streams
