"""Keeps two users of one file or folder from writing it at the same time: `FileLock`."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

from toolcall_nb.errors import UsageError

_held: set[tuple[int, Path]] = set()
"""The locks of this process, by its number: a forked process does not hold them. The system's ignore threads."""
_changing = threading.Lock()


class FileLock:
    """The lock of a file, held from when it is made until `release`. The system frees it when the process ends.

    It is a lock on a file beside it, ``.NAME.lock``, which stays, since the file itself is replaced. Raises
    `UsageError` with the text ``refusal`` if it is held already.
    """

    def __init__(self, path: Path, refusal: str) -> None:
        self._key = (os.getpid(), path.resolve())
        target = self._key[1]
        with _changing:
            if self._key in _held:
                raise UsageError(refusal)
            _held.add(self._key)
        try:
            self._file = target.with_name(f".{target.name}.lock").open("ab")
            _lock(self._file)
        except BlockingIOError:
            self.release()
            raise UsageError(refusal) from None
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Frees the file. A second time does nothing."""
        with suppress(AttributeError):  # it could not be opened
            self._file.close()
        _held.discard(self._key)


def _lock(file: IO[bytes]) -> None:
    """Locks the file for this process alone: a forked worker that outlives it has no part in the lock.

    Raises `BlockingIOError` if another process has it.
    """
    if sys.platform == "win32":
        import msvcrt

        try:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None
    else:
        try:
            import fcntl
        except ImportError:  # a browser's Python has no other process
            return
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except PermissionError as error:  # POSIX allows EACCES, too
            raise BlockingIOError(*error.args) from None
