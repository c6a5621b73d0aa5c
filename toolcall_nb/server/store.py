"""Threads on disk: one portable Markdown file for each, which is always a whole old or a whole new one.

A thread's id is checked before it becomes a file name, and nothing else of a request does. The id also stands in
the file's front matter: on a file system that takes ``A`` and ``a`` for one name, a file of another thread is told
from this one's.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from pathlib import Path

from msgspec.structs import replace

from toolcall_nb.core.transcript import Transcript
from toolcall_nb.errors import ToolcallError, UsageError
from toolcall_nb.markdown.front_matter import FORMAT_VERSION, describe_newer_version, read_format_version
from toolcall_nb.redaction.masked_logging import logger

__all__ = ["THREAD_ID", "DamagedThread", "Store", "is_thread_id"]

log = logger("toolcall_nb.server")

THREAD_ID = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$"
"""What a thread may be called: no dots, slashes or blanks, so that it can be a file's name anywhere."""
_ID = re.compile(THREAD_ID)
_KEY = "thread"
_PART = ".toolcall_nb.part"
"""How the name of a file ends that is still being written."""


class DamagedThread(ToolcallError):
    """A stored thread that cannot be read as what was written. It is left as it is."""


def is_thread_id(name: object) -> bool:
    """Whether a thread may be called so."""
    return isinstance(name, str) and _ID.fullmatch(name) is not None and not name.endswith("\n")


class Store:
    """Threads as files in ``folder``.

    A folder that does not exist is made with the mode 0700, and each file has the mode 0600: what was said is for the
    owner alone. A folder that exists keeps its mode; where others may write into it, a warning is logged.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder).expanduser().resolve()
        if not self._folder.exists():
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
        if not self._folder.is_dir():
            raise UsageError(f"The store {str(self._folder)!r} is not a folder. Name one, or one that does not exist.")
        if os.name != "nt" and self._folder.stat().st_mode & 0o022:
            log.warning("Others may write into the store %s: chmod 700 keeps its threads yours", self._folder)
        for path in self._folder.glob(f".*{_PART}"):  # of a server that was killed while it wrote
            if not path.is_dir():
                path.unlink(missing_ok=True)

    def load(self, thread: str) -> Transcript | None:
        """The thread; None where there is none. Raises `DamagedThread`."""
        data = _file_bytes(thread, self._path(thread))
        return None if data is None else _read(thread, data)

    def save(self, thread: str, transcript: Transcript) -> None:
        """Write the thread. It is on disk when this returns; raises `OSError`, and then the old one is there still.

        `DamagedThread`: its name is taken by what a newer toolcall_nb wrote, or by something that is not a regular
        file. Both stay as they are.

        The rename is atomic, and both the file and the folder are flushed: after a loss of power, too, the name
        holds a whole file.
        """
        path = self._path(thread)
        _refuse_newer(thread, path)
        metadata = {**transcript.metadata, _KEY: thread}
        data = replace(transcript, metadata=metadata).to_markdown(versioned=True).encode("utf-8", "surrogatepass")
        # A new file with a name that nobody can guess, of mode 0600: no link that was laid there is followed.
        handle, part = tempfile.mkstemp(prefix=f".{thread}.", suffix=_PART, dir=self._folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except OSError:
            Path(part).unlink(missing_ok=True)
            raise
        _flush_folder(self._folder)

    def _path(self, thread: str) -> Path:
        if not is_thread_id(thread):
            raise ValueError(f"{thread!r:.100} is no thread's id.")
        return self._folder / f"{thread}.md"


def _read(thread: str, data: bytes) -> Transcript:
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise _damaged(thread, f"the byte {error.start} is not UTF-8") from None
    _refuse_version(thread, read_format_version(text))
    transcript = Transcript.from_markdown(text)
    if transcript.metadata.get(_KEY) != thread:
        raise _damaged(thread, f"its front matter does not say 'thread: {thread}'")
    if transcript.diagnostics and transcript.to_markdown() != text:
        found = transcript.diagnostics[0]
        raise _damaged(thread, f"line {found.line}: {found.message}")
    metadata = {key: value for key, value in transcript.metadata.items() if key != _KEY}
    return replace(transcript, metadata=metadata)


def _file_bytes(thread: str, path: Path) -> bytes | None:
    """Reads a regular file; returns None where there is none. Raises `DamagedThread` for anything else.

    No link is followed, and a FIFO is not waited for.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _damaged(thread, error.strerror or "it cannot be opened") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _damaged(thread, "it is not a regular file")
    with os.fdopen(handle, "rb") as file:
        return file.read()


def _refuse_newer(thread: str, path: Path) -> None:
    """What a newer server wrote into the same folder is not written over by what this one holds in memory."""
    data = _file_bytes(thread, path)
    if data is not None:
        _refuse_version(thread, read_format_version(data.decode("utf-8", "replace")))


def _refuse_version(thread: str, version: int) -> None:
    if version > FORMAT_VERSION:
        raise DamagedThread(
            f"The stored thread {thread!r} is of {describe_newer_version(version)}. It is left as it is: go on in a "
            "thread of another name."
        )


def _damaged(thread: str, why: str) -> DamagedThread:
    return DamagedThread(
        f"The stored thread {thread!r} is damaged ({why}). It is left as it is: mend or move its file, or go on in "
        "a thread of another name."
    )


def _flush_folder(folder: Path) -> None:
    """The rename itself; Windows has no handle of a folder, and flushes it by itself."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
