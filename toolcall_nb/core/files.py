"""Reads and writes a user's files: `open_regular` opens one, `replaced_file` writes one in the place of the old one."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import BinaryIO

_DESCRIPTORS = ("/proc/", "/dev/fd")
"""The folders whose names are open files of a process. Such a file cannot be replaced."""


def check_regular(path: str | os.PathLike[str]) -> os.stat_result:
    """Returns the state of a regular file. Raises `OSError` for a folder, pipe, socket or device."""
    state = os.stat(path)
    if not stat.S_ISREG(state.st_mode):
        kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        kind = kinds.get(stat.S_IFMT(state.st_mode), "a device")
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", os.fspath(path))
    return state


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Opens a regular file for reading. Raises `OSError` for anything else, and never waits for a pipe's writer."""
    check_regular(path)  # opening a device may already do something
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        check_regular(handle)  # type: ignore[arg-type]  # os.stat takes a handle
    except OSError:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


@contextmanager
def replaced_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Gives a file to write into; when the block ends, that file is at ``path``. If the block raises, nothing changed.

    The new file is on disk before it takes the old one's place, and has its permissions. Of a symbolic link, the
    target is replaced. What cannot be replaced is written straight: a pipe, a device, an open file such as
    ``/dev/stdout``, and a file in a folder that takes no new ones. Raises `OSError`.
    """
    state = _state_of(path)
    if (state is not None and not stat.S_ISREG(state.st_mode)) or _is_descriptor(os.fspath(path)):
        with open(path, "wb") as file:
            yield file
        return
    if state is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
    target = os.path.realpath(path)
    try:
        handle, temporary = _new_file(os.path.dirname(target), 0o666 if state is None else 0o600)
    except PermissionError:
        if state is None:
            raise
        with open(path, "wb") as file:
            yield file
        return
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if state is not None:
            with suppress(AttributeError, PermissionError):  # Windows has no owners
                os.chown(temporary, state.st_uid, state.st_gid)
            os.chmod(temporary, stat.S_IMODE(state.st_mode))
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _state_of(path: str | os.PathLike[str]) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _is_descriptor(path: str) -> bool:
    """Whether the path, or a link on its way, is the name of an open file of a process."""
    for _ in range(40):  # as many links as Linux follows
        folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
        if f"{folder}/".startswith(_DESCRIPTORS):
            return True
        if not os.path.islink(path):
            return False
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return False


def _new_file(folder: str, mode: int) -> tuple[int, str]:
    """Makes a file of a new name. The name is short, since that of the file may be as long as a name can be."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    for number in count():
        temporary = os.path.join(folder, f".toolcall_nb-{os.getpid()}-{number}.part")
        with suppress(FileExistsError):
            return os.open(temporary, flags, mode), temporary
    raise AssertionError("count ends")
