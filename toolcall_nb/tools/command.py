"""A shell command as a process group: its output as it comes, and an end that leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from toolcall_nb.tools.failures import ExecutionFailed, InputOutputFailed, InvalidInput

__all__ = ["run_command"]

POLL = 0.1
"""Seconds between looks for an interrupt, for the command's end, and for the time."""

GRACE = 1.0
"""Seconds that a group has to end: after SIGTERM, and after its first process has gone."""

_PIECE = 65_536

_LEFT = 2 * 1_048_576
"""Bytes that two pipes may hold: Linux lets an unprivileged process make one as large as a mebibyte."""

_NAP = 0.01
"""Seconds between looks for the end of a process whose output is closed already."""


def run_command(command: str, folder: Path, seconds: float, tell: Callable[[str, bytes], None]) -> int | None:
    """Run ``command`` by bash, or sh where there is no bash; return its exit code, or None after ``seconds``.

    ``tell`` gets ``"stdout"`` or ``"stderr"`` and the bytes as they come. A command that a signal ended has the
    code 128 and the signal's number, as shells say it. Its input is empty.

    However this ends, also by an exception of ``tell`` or an interrupt, the command's whole process group has
    been killed: what it left in the background ends with it, unless that made a session of its own. Raises
    `ToolFailed` where it cannot be started.
    """
    process = _started(command, folder)
    deadline = time.monotonic() + seconds
    with process, _killed_in_the_end(process), _Pipes(process) as pipes:
        while process.poll() is None and time.monotonic() < deadline:
            pipes.read(tell, min(POLL, max(0.0, deadline - time.monotonic())))
        code = process.poll()
        if code is None:
            _signal(process, signal.SIGTERM)
        _read_out(process, pipes, tell)
        _signal(process, signal.SIGKILL)
        pipes.empty(tell)
    return code if code is None or code >= 0 else 128 - code


def _started(command: str, folder: Path) -> subprocess.Popen[bytes]:
    shell = _shell()
    try:
        return subprocess.Popen(
            [shell, "-c", command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except ValueError as error:
        raise InvalidInput(f"The command holds a character that no command can hold: {error}") from None
    except OSError as error:
        raise InputOutputFailed(f"The command could not be started: {error.strerror}") from error


def _shell() -> str:
    shell = None if os.name == "nt" else shutil.which("bash") or shutil.which("sh")
    if shell is None:
        raise ExecutionFailed("There is no bash or sh here. On Windows, run the kernel in WSL to have one.")
    return shell


def _read_out(process: subprocess.Popen[bytes], pipes: _Pipes, tell: Callable[[str, bytes], None]) -> None:
    """Take what still comes from a command that has ended, or is about to, for as long as its grace lasts."""
    end = time.monotonic() + GRACE
    while (pipes or process.poll() is None) and time.monotonic() < end:
        pipes.read(tell, POLL)


@contextlib.contextmanager
def _killed_in_the_end(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        raise
    finally:
        _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to the whole group. Its id is its first process's, and is not given anew while one is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS forbids it for a group of zombies
        os.killpg(process.pid, number)


class _Pipes:
    """The two outputs of a process, read without waiting for one of them alone; true while one is open."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._selector = selectors.DefaultSelector()
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, name)

    def __enter__(self) -> _Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()

    def __bool__(self) -> bool:
        return bool(self._selector.get_map())

    def read(self, tell: Callable[[str, bytes], None], seconds: float) -> bool:
        """Tell one piece of each output that has something, after waiting up to ``seconds``; whether one had."""
        if not self:
            time.sleep(min(seconds, _NAP))
            return False
        ready = self._selector.select(seconds)
        for key, _ in ready:
            data = os.read(key.fd, _PIECE)
            if data:
                tell(key.data, data)
            else:
                self._selector.unregister(key.fileobj)
        return bool(ready)

    def empty(self, tell: Callable[[str, bytes], None]) -> None:
        """Tell what the pipes still hold, which is bounded: whoever wrote is dead, or is not waited for."""
        for _ in range(_LEFT // _PIECE):
            if not self.read(tell, 0):
                return
