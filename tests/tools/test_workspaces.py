"""The workspace: where a model's path leads, and which paths are refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcall_nb.errors import UsageError
from toolcall_nb.tools import Tool
from toolcall_nb.tools.results.failures import InputOutputFailed, InvalidInput, ToolFailed
from toolcall_nb.tools.workspaces import OutsideWorkspace, Workspace, WorkspacePath, workspace


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A workspace with one file in it, and a file beside it that nobody may see."""
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src" / "main.py").write_text("print()\n")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("s3cret\n")
    workspace.root = root
    yield root
    workspace.root = None


# Where a path leads -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "src/main.py",
        "./src/main.py",
        "src//main.py",
        "src/../src/main.py",
        "nothing/../src/main.py",
        "../root/src/main.py",
        "src\\main.py",
        ".\\src\\..\\src\\main.py",
    ],
)
def test_a_path_is_relative_to_the_root(folder: Path, path: str) -> None:
    assert workspace.resolve(path) == folder / "src" / "main.py"


def test_an_absolute_path_inside_is_taken_as_it_is(folder: Path) -> None:
    assert workspace.resolve(str(folder / "src")) == folder / "src"


@pytest.mark.parametrize("path", ["", ".", "./", "src/.."])
def test_the_empty_path_is_the_root(folder: Path, path: str) -> None:
    assert workspace.resolve(path) == folder


def test_a_file_need_not_be_there_yet(folder: Path) -> None:
    assert workspace.resolve("new/folder/file.txt") == folder / "new" / "folder" / "file.txt"


def test_a_resolved_path_has_the_annotated_type(folder: Path) -> None:
    assert isinstance(workspace.resolve("src"), WorkspacePath)
    assert isinstance(workspace.resolve("src") / "main.py", Path)


def test_a_link_that_stays_inside_is_followed(folder: Path) -> None:
    (folder / "link").symlink_to("src")
    assert workspace.resolve("link/main.py") == folder / "src" / "main.py"


def test_a_root_that_is_a_link_is_the_folder_that_it_means(tmp_path: Path, folder: Path) -> None:
    link = tmp_path / "shortcut"
    link.symlink_to(folder)
    other = Workspace(link)
    assert other.root == folder
    assert other.resolve("src/main.py") == other.resolve(str(link / "src" / "main.py")) == folder / "src" / "main.py"


def test_a_name_with_a_backslash_can_be_given_as_a_path(folder: Path) -> None:
    odd = folder / "a\\b"
    odd.write_text("x")
    assert workspace.resolve(odd) == odd
    with workspace.open(odd) as file:
        assert file.read() == b"x"


@given(st.text(st.sampled_from("ab./\\~ \0\ud800é:"), max_size=12))
def test_any_text_resolves_inside_the_workspace_or_is_refused(text: str) -> None:
    here = Workspace(Path(__file__).parents[1])
    try:
        found = here.resolve(text)
    except OutsideWorkspace:
        return
    assert found.is_absolute()
    assert found.is_relative_to(here.root)


# What is refused --------------------------------------------------------------------------------------------


def outside(tmp_path: Path) -> dict[str, str]:
    return {
        "by dots": "../secret/key",
        "by many dots": "../" * 50 + "etc/passwd",
        "by dots behind what is not there": "nothing/../../secret/key",
        "by backslashes": "..\\secret\\key",
        "absolute": str(tmp_path / "secret" / "key"),
        "the root's neighbour of a like name": f"{tmp_path / 'root'}-old/file",
        "the home folder": "~/.ssh/id_rsa",
        "a link to a file": "key.txt",
        "through a link to a folder": "secrets/key",
        "through a link that leads nowhere yet": "planned",
        "dots behind a link": "secrets/../secret/key",
    }


@pytest.mark.parametrize("case", outside(Path("/")))
def test_a_path_that_leaves_the_root_is_refused(tmp_path: Path, folder: Path, case: str) -> None:
    (folder / "key.txt").symlink_to(tmp_path / "secret" / "key")
    (folder / "secrets").symlink_to("../secret")
    (folder / "planned").symlink_to(tmp_path / "not-yet")
    path = outside(tmp_path)[case]
    with pytest.raises(OutsideWorkspace, match="leaves the workspace") as refused:
        workspace.resolve(path)
    assert repr(path) in str(refused.value)
    assert str(folder) in str(refused.value)


@pytest.mark.skipif(os.sep == "\\", reason="these are this system's own paths")
@pytest.mark.parametrize("path", ["C:\\Users\\me\\file", "C:/Users/me/file", "\\\\server\\share\\file"])
def test_a_path_with_a_drive_is_one_of_another_system(folder: Path, path: str) -> None:
    with pytest.raises(OutsideWorkspace, match="another system"):
        workspace.resolve(path)


@pytest.mark.parametrize(("path", "why"), [("a\0b", "NUL"), ("a\ud800", "half a character")])
def test_an_invalid_path_is_refused(folder: Path, path: str, why: str) -> None:
    with pytest.raises(OutsideWorkspace, match=why):
        workspace.resolve(path)


def test_a_circle_of_links_is_refused(folder: Path) -> None:
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("one")
    with pytest.raises(OutsideWorkspace, match="circle"):
        workspace.resolve("one/file")


def test_a_long_path_is_quoted_in_part(folder: Path) -> None:
    with pytest.raises(OutsideWorkspace) as refused:
        workspace.resolve("../" * 1000)
    assert len(str(refused.value)) < 1000


def test_another_folder_can_be_allowed(tmp_path: Path, folder: Path) -> None:
    wide = Workspace(folder)
    with pytest.raises(OutsideWorkspace) as refused:
        wide.resolve("../secret/key")
    assert f"workspace.allow({str(tmp_path / 'secret')!r})" in str(refused.value)
    wide.allow(tmp_path / "secret")
    assert wide.resolve("../secret/key") == tmp_path / "secret" / "key"
    assert Workspace(folder, also=[tmp_path / "secret"]).resolve(str(tmp_path / "secret" / "key"))


# The root ---------------------------------------------------------------------------------------------------


def test_the_root_is_the_current_directory_until_it_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Workspace()
    monkeypatch.chdir(tmp_path)
    assert here.root == tmp_path
    (tmp_path / "below").mkdir()
    here.root = "below"
    assert here.root == tmp_path / "below"
    here.root = None
    assert here.root == tmp_path


def test_a_root_must_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "nothing", tmp_path / "file"):
        with pytest.raises(UsageError, match="needs a folder"):
            Workspace(path)
        with pytest.raises(UsageError, match="needs a folder"):
            Workspace(tmp_path).allow(path)


# Opening ----------------------------------------------------------------------------------------------------


def test_a_link_that_came_after_the_check_is_refused_at_the_opening(tmp_path: Path, folder: Path) -> None:
    path = workspace.resolve("src/main.py")
    path.unlink()
    path.symlink_to(tmp_path / "secret" / "key")
    with pytest.raises(OutsideWorkspace):
        workspace.open(path)


def test_a_folder_that_became_a_link_after_the_check_is_refused_at_the_opening(tmp_path: Path, folder: Path) -> None:
    path = workspace.resolve("src/key")
    (folder / "src").rename(folder / "moved")
    (folder / "src").symlink_to(tmp_path / "secret")
    with pytest.raises(OutsideWorkspace):
        workspace.open(path)


def test_only_files_are_opened(folder: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^Invalid input: Not a file: .*src$"):
        workspace.open(folder / "src")
    with pytest.raises(InvalidInput, match=r"^Invalid input: File does not exist: .*nothing$"):
        workspace.open(folder / "nothing")
    with pytest.raises(InvalidInput, match=r"^Invalid input: File does not exist: .*below$"):
        workspace.open(folder / "src" / "main.py" / "below")
    with pytest.raises(InputOutputFailed, match=r"^IO error: File name too long: "):
        workspace.open(folder / ("x" * 5000))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(InvalidInput, match="Not a file"):
        workspace.open(folder / "pipe")


# As a parameter ---------------------------------------------------------------------------------------------


@dataclass
class Job:
    paths: list[WorkspacePath]


def one(file_path: WorkspacePath) -> str:
    return str(file_path)


def maybe(file_path: WorkspacePath | None = None) -> str:
    return str(file_path)


def nested(job: Job) -> str:
    return " ".join(map(str, job.paths))


def test_the_schema_says_that_a_path_is_relative_to_the_workspace() -> None:
    schema = {"type": "string", "format": "path", "description": "A path relative to the workspace root."}
    assert Tool.from_function(one).parameters["properties"]["file_path"] == schema


@pytest.mark.parametrize(
    ("function", "arguments", "names"),
    [
        (one, {"file_path": "src"}, ["src"]),
        (maybe, {"file_path": "src"}, ["src"]),
        (nested, {"job": {"paths": ["src", "."]}}, ["src", ""]),
    ],
)
def test_a_tool_gets_the_resolved_path(
    folder: Path, function: Callable[..., str], arguments: dict[str, object], names: list[str]
) -> None:
    outcome = Tool.from_function(function).run(arguments)
    assert outcome.output == " ".join(str(folder / name) for name in names)


@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (one, {"file_path": "../secret/key"}, "file_path"),
        (maybe, {"file_path": "../secret/key"}, "file_path"),
        (nested, {"job": {"paths": ["../secret/key"]}}, "job"),
    ],
)
def test_a_call_with_a_path_outside_names_the_parameter_and_does_not_run(
    folder: Path, function: Callable[..., str], arguments: dict[str, object], name: str
) -> None:
    outcome = Tool.from_function(function).run(arguments)
    assert outcome.wrong_input
    assert outcome.error is not None
    assert f"\n- {name}" in outcome.error
    assert "'../secret/key' leaves the workspace" in outcome.error


def test_a_tool_may_raise_the_refusal_itself(folder: Path) -> None:
    def finds() -> None:
        workspace.resolve("../secret")

    outcome = Tool.from_function(finds).run({})
    assert isinstance(outcome.exception, ToolFailed)
    assert outcome.error is not None
    assert outcome.error.startswith("the path '../secret' leaves the workspace")
