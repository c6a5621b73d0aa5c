"""Portable Markdown says which version it is of; what a newer toolcall_nb wrote is read, told of, and left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.servers import ask, serving
from tests.support.shells import the_shell
from tests.support.strategies import json_values, texts, transcripts
from toolcall_nb import show
from toolcall_nb.cli import main
from toolcall_nb.core.transcript import Message, TextPart, Transcript
from toolcall_nb.markdown.front_matter import FORMAT_VERSION, VERSION_KEY, read_format_version

NEWER = """---
toolcall_nb: 2
model: mock
---

> [!user]
> Which is warmest?

> [!tool forecast call_1]
> state: output-available
> input: {}
> shading: warm
> output: 21

> [!chart]
> of: what version 1 does not know
"""


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    with the_shell() as shell:
        shell.run_line_magic("load_ext", "toolcall_nb")
        yield shell
        shell.run_line_magic("unload_ext", "toolcall_nb")


# Written ------------------------------------------------------------------------------------------------------


@given(transcripts(), st.dictionaries(texts(1), json_values(), max_size=2))
@example(Transcript(), {})
@example(Transcript(), {VERSION_KEY: 2})
@example(Transcript(), {"metadata": {}})
def test_a_file_always_says_its_version_and_reads_back_equal(transcript: Transcript, metadata: dict[str, Any]) -> None:
    transcript = Transcript(transcript.messages, metadata)
    written = transcript.to_markdown(versioned=True)
    assert written.startswith(f"---\n{VERSION_KEY}: {FORMAT_VERSION}\n")
    assert Transcript.from_markdown(written) == transcript


def test_a_cells_markdown_is_clean_and_of_version_1_by_definition() -> None:
    said = Transcript((Message("assistant", (TextPart("Hello"),)),))
    assert said.to_markdown() == said._repr_mimebundle_()["text/markdown"] == "Hello\n"
    assert read_format_version("Hello\n") == read_format_version("") == 1


def test_every_program_that_writes_a_file_writes_the_version(shell: Any, tmp_path: Path) -> None:
    shell.run_line_magic("toolchat", "save empty.md")
    assert (tmp_path / "empty.md").read_text() == "---\ntoolcall_nb: 1\n---\n"
    with serving(store=str(tmp_path / "threads")) as client:
        ask(client, "Hello")
        assert client.get("/api/threads/t", headers={"accept": "text/markdown"}).text.startswith(
            "---\ntoolcall_nb: 1\n"
        )
    assert (tmp_path / "threads" / "t.md").read_text().startswith("---\ntoolcall_nb: 1\n")


# Read ---------------------------------------------------------------------------------------------------------


def test_a_newer_text_is_read_as_far_as_it_is_known_and_nothing_is_lost() -> None:
    read = Transcript.from_markdown(NEWER)
    assert read.metadata == {"model": "mock"}
    assert [message.role for message in read.messages] == ["user", "assistant"]
    assert read.calls["call_1"].extra == {"shading": "warm"}
    assert read.messages[1].text == "> [!chart]\n> of: what version 1 does not know"
    assert Transcript.from_markdown(read.to_markdown()) == read
    (diagnostic,) = read.diagnostics
    assert (diagnostic.line, diagnostic.column) == (2, 1)
    assert diagnostic.message == (
        "version 2 of the format, and this toolcall_nb knows version 1; install a newer one to read it whole"
    )


@pytest.mark.parametrize(
    "front",
    [
        "toolcall_nb: true",
        "toolcall_nb: 0",
        "toolcall_nb: -1",
        "toolcall_nb: 1.0",
        "toolcall_nb: '1'",
        "toolcall_nb:",
        "toolcall_nb: next",
        "toolcall_nb: 9999999",
        f"toolcall_nb: 0x{'f' * 5000}",
        "toolcall_nb: 1\ntoolcall_nb: 2",
        "toolcall_nb: [",
    ],
    ids=lambda front: front[:30],
)
def test_an_invalid_version_is_reported_and_stays_text(front: str) -> None:
    text = f"---\n{front}\n---\n\nHello"
    read = Transcript.from_markdown(text)
    assert read.messages[0].text == text
    (diagnostic,) = read.diagnostics
    assert diagnostic.action == "The front matter was kept as text."
    assert 2 <= diagnostic.line <= 4
    assert Transcript.from_markdown(read.to_markdown(versioned=True)) == read


@pytest.mark.parametrize("text", ["---\ntitle: A page\n---\n\nHello", "---\n- a\n---\n", "---\n", "---\n[\n---\n"])
def test_front_matter_of_other_programs_is_text_without_a_diagnostic(text: str) -> None:
    read = Transcript.from_markdown(text)
    assert read.messages[0].text == text.removesuffix("\n")
    assert read.diagnostics == ()


@given(st.integers(2, 10**6), st.dictionaries(texts(1), json_values(), max_size=2), transcripts())
def test_of_any_newer_version_the_known_parts_are_read(
    version: int, metadata: dict[str, Any], said: Transcript
) -> None:
    transcript = Transcript(said.messages, metadata)
    written = transcript.to_markdown(versioned=True).replace(
        f"{VERSION_KEY}: {FORMAT_VERSION}\n", f"{VERSION_KEY}: {version}\n", 1
    )
    read = Transcript.from_markdown(written)
    assert read == transcript
    assert f"version {version} " in read.diagnostics[0].message


# Told, and left alone -----------------------------------------------------------------------------------------


def test_a_newer_file_is_reported_wherever_it_is_read(
    shell: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "talk.md").write_text(NEWER)
    told = "toolcall_nb: {} is of version 2 of the format, and this toolcall_nb knows version 1; install a newer one"
    readings: dict[str, list[Callable[[], Any]]] = {
        "talk.md": [
            lambda: shell.run_line_magic("toolchat", "load talk.md"),
            lambda: shell.run_line_magic("toolchat", "replay talk.md --speed 0"),
            lambda: show("talk.md"),
        ],
        "the text": [lambda: show(NEWER)],
        "the cell's text": [
            lambda: shell.run_cell_magic("toolchat", "--render", NEWER),
            lambda: shell.run_cell_magic("toolchat", "--replay --speed 0", NEWER),
        ],
    }
    for place, ways in readings.items():
        for read in ways:
            read()
            assert capsys.readouterr().err.count(told.format(place)) == 1


def test_the_command_line_reports_a_newer_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "talk.md"
    path.write_text(NEWER)
    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().out.startswith(f"{path}:2:1: version 2 of the format")
    assert main(["render", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "Which is warmest?" in out
    assert f"{path} is of version 2 of the format" in err


def test_saving_does_not_write_over_a_newer_file(
    shell: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell_magic("toolchat", "--model mock:text --speed 0", "Hello")
    capsys.readouterr()
    for text in (NEWER, NEWER.replace("\n", "\r\n"), "\ufeff" + NEWER):
        (tmp_path / "talk.md").write_bytes(text.encode())
        with pytest.raises(
            Exception, match=r"talk\.md is of version 2 .* It was left as it is: save under another name"
        ):
            shell.run_line_magic("toolchat", "save talk.md")
        assert (tmp_path / "talk.md").read_bytes() == text.encode()
    (tmp_path / "talk.md").write_text(NEWER.replace("toolcall_nb: 2", "toolcall_nb: 1"))
    shell.run_line_magic("toolchat", "save talk.md")
    assert capsys.readouterr().out == "Saved the thread 'main' to talk.md\n"
