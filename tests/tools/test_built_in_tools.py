"""The tools ``edit``, ``show`` and ``bash``: their results and their texts, to the letter (seed 004)."""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcall_nb.tools import registry
from toolcall_nb.tools.built_in import BUILT_IN_NAMES, built_in_tool
from toolcall_nb.tools.built_in import bash as bash_module
from toolcall_nb.tools.built_in import files as files_module
from toolcall_nb.tools.output import Log, ToolProgress
from toolcall_nb.tools.output.head_and_tail import HeadAndTail
from toolcall_nb.tools.workspaces import workspace

needs_a_shell = pytest.mark.skipif(os.name == "nt", reason="there is no bash or sh here")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    workspace.root = tmp_path
    yield tmp_path
    workspace.root = None


def run(name: str, **arguments: Any) -> Any:
    """The output of a call that succeeds."""
    tool = built_in_tool(name)
    assert tool is not None
    outcome = tool.run(arguments)
    assert outcome.error is None
    return outcome.output


def error(name: str, **arguments: Any) -> str:
    """The text of a call that does not."""
    tool = built_in_tool(name)
    assert tool is not None
    outcome = tool.run(arguments)
    assert outcome.error is not None
    return outcome.error


# Which there are --------------------------------------------------------------------------------------------


def test_built_in_tools_are_only_there_when_asked_for_by_name() -> None:
    assert BUILT_IN_NAMES == ("edit", "show", "bash")
    assert [tool.name for name in BUILT_IN_NAMES if (tool := built_in_tool(name))] == list(BUILT_IN_NAMES)
    assert built_in_tool("rm") is None
    assert not set(BUILT_IN_NAMES) & set(registry)


def test_descriptions_begin_as_in_the_seed() -> None:
    descriptions = [tool.description for name in BUILT_IN_NAMES if (tool := built_in_tool(name))]
    openings = [
        "Edit a file by replacing old_string with new_string",
        "Show the contents of a file with line numbers",
        "Execute a shell command",
    ]
    assert [text[: len(opening)] for text, opening in zip(descriptions, openings, strict=True)] == openings


@pytest.mark.parametrize("name", ["edit", "show"])
def test_a_missing_parameter_is_named(name: str) -> None:
    assert "\n- file_path: is missing" in error(name)


# edit -------------------------------------------------------------------------------------------------------


def test_edit_replaces_the_one_occurrence(folder: Path) -> None:
    file = folder / "crates" / "main.rs"
    file.parent.mkdir()
    file.write_text("fn main() {\n}\n")
    result = run("edit", file_path="crates/main.rs", old_string="fn main() {", new_string="fn main() {\n    go();")
    assert result == {"success": True, "message": f"File edited successfully: {file}", "data": None}
    assert file.read_text() == "fn main() {\n    go();\n}\n"


def test_edit_replaces_every_occurrence_where_asked_to(folder: Path) -> None:
    (folder / "a").write_text("x x x")
    run("edit", file_path="a", old_string="x", new_string="y", replace_all=True)
    assert (folder / "a").read_text() == "y y y"


def test_edit_says_that_there_was_nothing_to_replace(folder: Path) -> None:
    (folder / "a").write_text("x")
    before = (folder / "a").stat()
    result = run("edit", file_path="a", old_string="z", new_string="y", replace_all=True)
    assert result["success"] is True
    assert result["message"] == (
        f"File edited successfully: {folder / 'a'}\nold_string was not found in it: nothing was replaced."
    )
    assert (folder / "a").stat().st_ino == before.st_ino


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("z", "y", "old_string not found in file: {path}"),
        ("x", "y", "old_string appears 2 times in file, use replace_all=true or make it unique"),
        ("x", "x", "old_string and new_string are identical"),
        ("", "", "old_string and new_string are identical"),
        ("", "y", "old_string is empty; give the text to replace, or a line next to which text is to come"),
        ("x\n", "\ud800", "new_string holds half a character (a lone surrogate)"),
    ],
)
def test_edit_refuses_invalid_replacements(folder: Path, old: str, new: str, text: str) -> None:
    file = folder / "a"
    file.write_text("x x\n")
    assert error("edit", file_path="a", old_string=old, new_string=new) == f"Invalid input: {text.format(path=file)}"
    assert file.read_text() == "x x\n"
    assert os.listdir(folder) == ["a"]


def test_edit_needs_a_file_that_is_there(folder: Path) -> None:
    text = f"Invalid input: File does not exist: {folder / 'testing.md'}"
    assert error("edit", file_path="testing.md", old_string="same", new_string="same") == text


def test_edit_fills_an_empty_file(folder: Path) -> None:
    (folder / "a").touch()
    run("edit", file_path="a", old_string="", new_string="first line\n")
    assert (folder / "a").read_text() == "first line\n"


@pytest.mark.parametrize(
    ("raw", "old", "new", "after"),
    [
        (b"a\r\nb\r\n", "a\nb", "a\nx\nb", b"a\r\nx\r\nb\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "c\r\nd", b"c\r\nd\r\n"),
        (b"a\r\nb\r\n", "a", "a\nx", b"a\r\nx\r\nb\r\n"),
        (b"a\nb\r\n", "a\nb", "c", b"c\r\n"),
        (b"a\nb", "b", "b\r\n", b"a\nb\r\n"),
        (b"\xef\xbb\xbfa", "a", "b", b"\xef\xbb\xbfb"),
        ("größe 😀".encode(), "ö", "oe", "groeße 😀".encode()),
        (b"a\rb", "b", "c", b"a\rc"),
    ],
)
def test_edit_keeps_line_ends_and_byte_order_mark(folder: Path, raw: bytes, old: str, new: str, after: bytes) -> None:
    (folder / "a").write_bytes(raw)
    run("edit", file_path="a", old_string=old, new_string=new)
    assert (folder / "a").read_bytes() == after


@pytest.mark.parametrize(
    ("content", "old", "new", "replace_all", "size"),
    [
        ("a" * 1_000_000, "a", "b" * 1_000, True, "1,000,000,000"),
        ("a" * 1_000_000, "a", "ä" * 6, True, "12,000,000"),
        ("\r\n" * 1_000_000, "\n", "\n" * 6, True, "12,000,000"),
        ("ab", "a", "b" * 20_000_000, False, "20,000,001"),
        ("", "", "b" * 10_000_001, False, "10,000,001"),
    ],
    ids=["replace_all", "bytes and not characters", "line ends", "once", "an empty file"],
)
def test_an_edit_that_would_make_a_file_too_large_is_refused_before_it_is_made(
    folder: Path, content: str, old: str, new: str, replace_all: bool, size: str
) -> None:
    path = folder / "a.txt"
    path.write_bytes(content.encode())
    tracemalloc.start()
    try:
        said = error("edit", file_path="a.txt", old_string=old, new_string=new, replace_all=replace_all)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert said == f"Invalid input: File would become too large: {path} would hold {size} bytes, more than 10,000,000"
    assert peak < 100_000_000
    assert path.read_bytes() == content.encode()


def test_a_file_that_becomes_as_large_as_it_may_is_edited(folder: Path) -> None:
    (folder / "a.txt").write_text("a" * 5_000_000)
    run("edit", file_path="a.txt", old_string="a", new_string="bc", replace_all=True)
    assert (folder / "a.txt").stat().st_size == 10_000_000


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x89PNG\r\n", "File is not UTF-8 text: {path} (byte 0 is 0x89)"),
        ("größe".encode("latin-1"), "File is not UTF-8 text: {path} (byte 2 is 0xf6)"),
        (b"a\0b", "File is not text: {path} (it holds a NUL character)"),
        (b"x" * 101, "File is too large to edit: {path} holds 101 bytes, more than 100"),
    ],
)
def test_edit_refuses_files_that_are_not_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch, raw: bytes, text: str
) -> None:
    monkeypatch.setattr(files_module, "_MAX_BYTES", 100)
    (folder / "a").write_bytes(raw)
    assert error("edit", file_path="a", old_string="a", new_string="b") == f"Invalid input: {text}".format(
        path=folder / "a"
    )
    assert (folder / "a").read_bytes() == raw


def test_edit_keeps_the_mode_and_follows_a_link_to_its_file(folder: Path) -> None:
    file = folder / "run.sh"
    file.write_text("old")
    file.chmod(0o750)
    (folder / "link").symlink_to("run.sh")
    assert run("edit", file_path="link", old_string="old", new_string="new")["message"].endswith("run.sh")
    assert (folder / "link").is_symlink()
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o750
    assert sorted(os.listdir(folder)) == ["link", "run.sh"]


def test_edit_leaves_the_file_whole_when_writing_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (folder / "a").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    text = error("edit", file_path="a", old_string="old", new_string="new")
    assert text == f"IO error: No space left on device: {folder / 'a'}"
    assert (folder / "a").read_text() == "old"
    assert os.listdir(folder) == ["a"]


def test_edit_does_not_write_over_what_another_program_wrote(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "a"
    file.write_text("old")
    flushed = os.fsync

    def slowly(handle: int) -> None:
        file.write_text("theirs, old")
        flushed(handle)

    monkeypatch.setattr(os, "fsync", slowly)
    text = error("edit", file_path="a", old_string="old", new_string="new")
    assert text == f"IO error: File was changed by another program while it was edited: {file}"
    assert file.read_text() == "theirs, old"


def test_edit_writes_nothing_into_a_folder_that_has_left_the_workspace(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (folder / "src").mkdir()
    (folder / "src" / "a").write_text("old")
    opened = workspace.open

    def moved(path: Path) -> Any:
        file = opened(path)
        (folder / "src").rename(outside / "src")
        (folder / "src").symlink_to(outside / "src")
        return file

    monkeypatch.setattr(workspace, "open", moved)
    assert "leaves the workspace" in error("edit", file_path="src/a", old_string="old", new_string="new")
    assert (outside / "src" / "a").read_text() == "old"
    assert os.listdir(outside / "src") == ["a"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_edit_respects_that_a_file_may_not_be_written(folder: Path) -> None:
    (folder / "a").write_text("old")
    (folder / "a").chmod(0o444)
    assert error("edit", file_path="a", old_string="old", new_string="new").startswith("IO error: Permission denied")


# show -------------------------------------------------------------------------------------------------------


def test_show_numbers_the_lines(folder: Path) -> None:
    (folder / "a").write_text("one\ntwo\n\nfour")
    assert run("show", file_path="a") == {
        "success": True,
        "message": f"Showing lines 1-4 of {folder / 'a'}",
        "data": {"content": "    1 | one\n    2 | two\n    3 | \n    4 | four"},
    }


@pytest.mark.parametrize(
    ("start", "end", "message", "content"),
    [
        (2, 3, "2-3", "    2 | b\n    3 | c"),
        (2, None, "2-3", "    2 | b\n    3 | c"),
        (None, 1, "1-1", "    1 | a"),
        (3, 99, "3-3", "    3 | c"),
    ],
)
def test_show_takes_a_range(folder: Path, start: int | None, end: int | None, message: str, content: str) -> None:
    (folder / "f").write_text("a\nb\nc\n")
    result = run("show", file_path="f", start_line=start, end_line=end)
    assert result["message"] == f"Showing lines {message} of {folder / 'f'}"
    assert result["data"]["content"] == content


def test_show_does_not_show_line_ends_and_byte_order_mark(folder: Path) -> None:
    (folder / "a").write_bytes(b"\xef\xbb\xbfa\r\nb\x0bc\x85\r\n".replace(b"\x85", "\u2028".encode()))
    assert run("show", file_path="a")["data"]["content"] == "    1 | a\n    2 | b\x0bc\u2028"


def test_a_wide_line_number_widens_its_column(folder: Path) -> None:
    (folder / "a").write_text("\n" * 100_000)
    content = run("show", file_path="a", start_line=99_999)["data"]["content"]
    assert content == "99999 | \n100000 | "


@pytest.mark.parametrize(
    ("raw", "arguments", "text"),
    [
        (b"a\nb\n", {"start_line": 3}, "start_line 3 exceeds file length 2"),
        (b"", {}, "start_line 1 exceeds file length 0"),
        (b"a\nb\n", {"start_line": 2, "end_line": 1}, "end_line 1 comes before start_line 2"),
        (b"a\n\xff\n", {}, "File is not UTF-8 text: {path} (line 2)"),
        (b"a\n\0\n", {}, "File is not text: {path} (line 2 holds a NUL character)"),
        (b"a\n" * 51, {}, "Too much to show: more than 100 bytes of {path}, use start_line and end_line"),
        (b"a" * 101, {"start_line": 2}, "Too much to show: more than 100 bytes of {path}, use start_line and end_line"),
    ],
)
def test_show_refuses_invalid_ranges_and_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch, raw: bytes, arguments: dict[str, int], text: str
) -> None:
    monkeypatch.setattr(files_module, "_MAX_BYTES", 100)
    (folder / "a").write_bytes(raw)
    assert error("show", file_path="a", **arguments) == f"Invalid input: {text.format(path=folder / 'a')}"


def test_show_shows_some_lines_of_a_file_that_is_larger_than_it_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_module, "_MAX_BYTES", 100)
    (folder / "a").write_bytes(b"a line\n" * 1000 + b"\xff\xff\n")
    assert (
        run("show", file_path="a", start_line=999, end_line=1000)["data"]["content"] == "  999 | a line\n 1000 | a line"
    )


def test_show_counts_lines_from_one(folder: Path) -> None:
    (folder / "a").write_text("a")
    assert "\n- start_line: " in error("show", file_path="a", start_line=0)


def test_show_needs_a_file_that_is_there(folder: Path) -> None:
    assert error("show", file_path="x.md") == f"Invalid input: File does not exist: {folder / 'x.md'}"
    assert error("show", file_path=".") == f"Invalid input: Not a file: {folder}"
    assert "leaves the workspace" in error("show", file_path="../x.md")


# bash -------------------------------------------------------------------------------------------------------


@needs_a_shell
def test_bash_runs_a_command_in_the_workspace(folder: Path) -> None:
    assert run("bash", command="pwd; echo to stderr >&2") == {
        "success": True,
        "message": "Command executed successfully (exit code: 0)",
        "data": {"stdout": f"{folder}\n", "stderr": "to stderr\n", "exit_code": 0},
    }


@needs_a_shell
def test_bash_tells_that_a_command_failed() -> None:
    result = run("bash", command="echo half; exit 3")
    assert result["success"] is False
    assert result["message"] == "Command failed with exit code: 3"
    assert result["data"] == {"stdout": "half\n", "stderr": "", "exit_code": 3}


@needs_a_shell
def test_bash_says_which_signal_ended_a_command_as_shells_do() -> None:
    assert run("bash", command="kill -KILL $$")["message"] == "Command failed with exit code: 137"


@needs_a_shell
def test_bash_runs_where_it_is_told_to_within_the_workspace(folder: Path) -> None:
    (folder / "below").mkdir()
    assert run("bash", command="pwd", working_dir="below")["data"]["stdout"] == f"{folder / 'below'}\n"
    assert "\n- working_dir: the path '..' leaves" in error("bash", command="pwd", working_dir="..")
    text = f"Invalid input: Working directory does not exist: {folder / 'nothing'}"
    assert error("bash", command="pwd", working_dir="nothing") == text


@needs_a_shell
def test_bash_gives_a_command_no_input() -> None:
    assert run("bash", command="cat; read line || echo none")["data"]["stdout"] == "none\n"


@needs_a_shell
def test_bash_prints_the_output_while_it_comes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = threading.Event()

    class Watched:
        def write(self, text: str) -> None:
            if "ready" in text:
                (folder / "go").touch()
                seen.set()

        def flush(self) -> None: ...

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", Watched())
        run("bash", command="echo ready; until [ -e go ]; do sleep 0.02; done")
    assert seen.is_set()
    run("bash", command="printf 'caf\\303'; sleep 0.2; printf '\\251'; echo e >&2")
    assert capsys.readouterr() == ("café", "e\n")


@needs_a_shell
def test_output_of_bash_is_in_the_call_s_log() -> None:
    tool = built_in_tool("bash")
    assert tool is not None
    told: list[ToolProgress] = []
    tool.run({"command": "echo out; sleep 0.2; echo err >&2"}, told.append)
    assert "".join(piece.text for piece in told if isinstance(piece, Log)) == "out\nerr\n"


def test_the_outcome_s_arguments_hold_the_resolved_path(folder: Path) -> None:
    tool = built_in_tool("show")
    assert tool is not None
    outcome = tool.run({"file_path": "no/../testing.md", "start_line": 1})
    assert outcome.arguments == {"file_path": str(folder / "testing.md"), "start_line": 1}


@needs_a_shell
def test_bash_replaces_what_is_not_utf8() -> None:
    assert run("bash", command="printf 'a\\377b'")["data"]["stdout"] == "a\ufffdb"


@needs_a_shell
def test_the_result_of_a_hundred_megabytes_is_small(capsys: pytest.CaptureFixture[str]) -> None:
    result = run("bash", command="echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last", timeout=300)
    stdout = result["data"]["stdout"]
    assert stdout.startswith("first\nxxx")
    assert stdout.endswith("xxx\nlast\n")
    left_out = 6 + 100_000_000 + 6 - bash_module._KEPT_BYTES
    assert f"\n… {left_out:,} bytes left out …\n" in stdout
    assert len(stdout) < bash_module._KEPT_BYTES + 100
    printed = capsys.readouterr().out
    assert len(printed) < bash_module._PRINTED_BYTES + 100
    assert printed.endswith("… more output comes, and is not shown while it does …\n")


@needs_a_shell
@pytest.mark.parametrize(
    "command",
    [
        "sleep 1000",
        "yes",
        "trap '' TERM; while :; do sleep 0.05; done",
        "exec >&- 2>&-; sleep 1000",
        "(trap '' TERM; while :; do sleep 0.05; done) & wait",
    ],
    ids=["sleeps", "prints for ever", "ignores SIGTERM", "has closed its output", "has a child that ignores SIGTERM"],
)
def test_a_command_that_never_ends_is_ended(command: str) -> None:
    text = error("bash", command=f"echo $$ > pid; {command}", timeout=0.5)
    assert text == "Tool execution failed: Command timed out after 0.5 seconds"
    assert group_is_gone(workspace.root / "pid")


@needs_a_shell
@pytest.mark.parametrize("command", ["sleep 1000 &", "sleep 1000 >/dev/null 2>&1 &", "yes >&2 &"])
def test_background_processes_do_not_delay_the_call_and_end_with_it(command: str) -> None:
    result = run("bash", command=f"echo $$ > pid; {command} echo done", timeout=300)
    assert result["data"]["stdout"] == "done\n"
    assert result["success"]
    assert group_is_gone(workspace.root / "pid")


@needs_a_shell
def test_output_that_comes_just_after_the_shell_s_end_is_kept() -> None:
    assert run("bash", command="(sleep 0.2; echo late) &")["data"]["stdout"] == "late\n"


@needs_a_shell
def test_all_of_a_command_s_output_is_read_however_slowly(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 60_000  # which a pipe holds: the command ends before any of it is read

    class Slow:
        def write(self, text: str) -> None:
            while not (folder / "done").exists():
                threading.Event().wait(0.02)
            threading.Event().wait(0.2)

        def flush(self) -> None: ...

    monkeypatch.setattr("toolcall_nb.tools.built_in.bash._GRACE_SECONDS", 0)
    monkeypatch.setattr(sys, "stderr", Slow())
    command = f"echo first >&2; sleep 0.2; head -c {size} /dev/zero | tr '\\0' x; touch done"
    assert run("bash", command=command)["data"]["stdout"] == "x" * size


@needs_a_shell
def test_an_interrupt_ends_the_command(folder: Path) -> None:
    tool = built_in_tool("bash")
    assert tool is not None
    interrupt = threading.Thread(target=interrupt_when_there, args=(folder / "pid",))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        tool.run({"command": "sleep 1000 & echo $$ > part; mv part pid; wait", "timeout": 300})
    interrupt.join()
    assert group_is_gone(folder / "pid")


@needs_a_shell
def test_a_command_is_killed_when_its_output_callback_raises(folder: Path) -> None:
    class Closed:
        def write(self, text: str) -> None:
            raise BrokenPipeError(32, "Broken pipe")

        def flush(self) -> None: ...

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", Closed())
        text = error("bash", command="echo $$ > pid; yes", timeout=300)
    assert "Broken pipe" in text
    assert group_is_gone(folder / "pid")


@needs_a_shell
@pytest.mark.parametrize("command", ["echo a\0b", "echo \ud800"])
def test_bash_refuses_a_command_that_cannot_be_written(command: str) -> None:
    assert error("bash", command=command).startswith("Invalid input: The command holds a character that no command")


def test_bash_says_that_there_is_no_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert error("bash", command="true").startswith("Tool execution failed: There is no bash or sh here.")


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_timeout_of_zero_is_refused(timeout: float) -> None:
    assert "\n- timeout: " in error("bash", command="true", timeout=timeout)


def interrupt_when_there(path: Path) -> None:
    while not path.exists():
        threading.Event().wait(0.02)
    os.kill(os.getpid(), signal.SIGINT)


def group_is_gone(path: Path) -> bool:
    """Whether nothing of the group runs whose leader wrote its id there; the system may take a moment to end it."""
    group = int(path.read_text())
    for _ in range(500):
        if not is_running(group):
            return True
        threading.Event().wait(0.02)
    return False


def is_running(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    if not Path("/proc/self/stat").exists():
        return True
    return any(state != "Z" for state, its in map(state_and_group, Path("/proc").glob("[0-9]*/stat")) if its == group)


def state_and_group(stat_file: Path) -> tuple[str, int]:
    """From Linux's record of a process; one that has ended, and waits to be noticed, is in state Z."""
    try:
        fields = stat_file.read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return "Z", 0
    return fields[0], int(fields[2])


# The beginning and the end of an output ----------------------------------------------------------------------


@given(st.lists(st.binary(max_size=30)), st.integers(0, 50))
def test_a_short_output_is_kept_whole(pieces: list[bytes], more: int) -> None:
    data = b"".join(pieces)
    kept = HeadAndTail(2 * len(data) + more)
    for piece in pieces:
        kept.feed(piece)
    assert kept.text == data.decode("utf-8", "replace")


@given(st.text(st.sampled_from("aé€😀"), min_size=30), st.integers(8, 40), st.integers(1, 20))
def test_both_ends_of_a_long_output_are_kept_and_the_rest_is_counted(text: str, limit: int, size: int) -> None:
    data = text.encode()
    kept = HeadAndTail(limit)
    for start in range(0, len(data), size):
        kept.feed(data[start : start + size])
    if len(data) <= 2 * (limit // 2):
        assert kept.text == text
        return
    head, middle, tail = kept.text.split("\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    left_out = len(data) - len(head.encode()) - len(tail.encode())
    assert middle == f"… {left_out:,} bytes left out …"
    assert len(head.encode()) + len(tail.encode()) <= limit
