"""A user's file is replaced as a whole or not at all, and only regular files are read."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from toolcall_nb import Transcript
from toolcall_nb.core.files import open_regular, replaced_file
from toolcall_nb.core.recording import Recording
from toolcall_nb.errors import UsageError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links, modes and pipes of POSIX")


def _write(path: Path | str, content: bytes = b"new") -> None:
    with replaced_file(path) as file:
        file.write(content)


def _fail_after(path: Path) -> None:
    with replaced_file(path) as file:
        file.write(b"half")
        raise OSError(28, "No space left on device")


def test_a_failure_keeps_the_old_file_and_leaves_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="No space"):
        _fail_after(path)
    assert path.read_bytes() == b"old"
    with pytest.raises(OSError, match="No space"):
        _fail_after(tmp_path / "b.md")
    assert [*tmp_path.iterdir()] == [path]


def test_the_permissions_and_the_links_stay(tmp_path: Path) -> None:
    target, link = tmp_path / "target.md", tmp_path / "link.md"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to("target.md")
    _write(link)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    dangling = tmp_path / "dangling.md"
    dangling.symlink_to("later.md")
    _write(dangling)
    assert (tmp_path / "later.md").read_bytes() == b"new"
    _write(tmp_path / ("x" * 250))
    assert not [*tmp_path.glob(".*")]


def test_a_pipe_and_an_open_file_are_written_straight(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    _write(f"/proc/self/fd/{writing}")
    assert os.read(reading, 9) == b"new"
    os.close(reading)
    os.close(writing)
    fifo, path = tmp_path / "fifo", tmp_path / "redirected.txt"
    os.mkfifo(fifo)
    handle = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    _write(fifo)
    assert os.read(handle, 9) == b"new"
    os.close(handle)
    with path.open("wb") as file:  # as a shell redirects standard output
        _write(f"/proc/self/fd/{file.fileno()}")
        assert os.fstat(file.fileno()).st_ino == path.stat().st_ino


@pytest.mark.parametrize("suffix", [".md", ".json", ".jsonl", ".html"])
def test_a_disk_that_is_full_keeps_the_old_transcript_and_the_old_recording(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(UsageError, match="No space"):
        Transcript.from_markdown("new").write(path)
    with pytest.raises(UsageError, match="No space"):
        Recording().write(path)
    assert path.read_bytes() == b"old"
    assert [*tmp_path.iterdir()] == [path]


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    fifo, device = tmp_path / "fifo", tmp_path / "device"
    os.mkfifo(fifo)
    device.symlink_to("/dev/zero")
    for path, kind in ((fifo, "a pipe"), (device, "a device"), (tmp_path, "a folder")):
        with pytest.raises(OSError, match=f"it is {kind}, not a regular file"):
            open_regular(path)
