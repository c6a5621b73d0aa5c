"""Runs a shell command as a process group that is always killed in the end: `run_command`."""

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
from typing import TypeAlias

from toolcall_nb.tools.results.failures import ExecutionFailed, InputOutputFailed, InvalidInput

_OnOutput: TypeAlias = Callable[[str, bytes], None]

_POLL_SECONDS = 0.1
"""Seconds between checks for an interrupt, the command's end, and the time limit."""

_GRACE_SECONDS = 1.0
"""Seconds that a group has to end: after SIGTERM, and after its first process has ended."""

_CHUNK = 65_536

_PIPE_BYTES = 2 * 1_048_576
"""Bytes that two pipes may hold: on Linux, an unprivileged process can make one as large as a mebibyte."""

_CLOSED_POLL_SECONDS = 0.01
"""Seconds between checks for the end of a process that has closed its output."""


def run_command(command: str, folder: Path, seconds: float, on_output: _OnOutput) -> int | None:
    """Runs ``command`` with bash, or sh where there is no bash; returns its exit code, or None after ``seconds``.

    ``on_output`` gets ``"stdout"`` or ``"stderr"`` and the bytes as they come. A command that was ended by a signal has
    the exit code 128 plus the signal's number, as in shells. Its input is empty.

    Afterwards, also after an exception of ``on_output`` or an interrupt, the command's whole process group was killed:
    what it left in the background ends too, unless it started a session of its own. Raises `ToolFailed` where the
    command cannot be started.
    """
    process = _start(command, folder)
    deadline = time.monotonic() + seconds
    with process, _killed_at_the_end(process), _Pipes(process) as pipes:
        while process.poll() is None and time.monotonic() < deadline:
            pipes.read(on_output, min(_POLL_SECONDS, max(0.0, deadline - time.monotonic())))
        code = process.poll()
        if code is None:
            _signal(process, signal.SIGTERM)
        _read_out(process, pipes, on_output)
        _signal(process, signal.SIGKILL)
        pipes.empty(on_output)
    return code if code is None or code >= 0 else 128 - code


def _start(command: str, folder: Path) -> subprocess.Popen[bytes]:
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


def _read_out(process: subprocess.Popen[bytes], pipes: _Pipes, on_output: _OnOutput) -> None:
    """Reads the rest of the output of a command that has ended or should end, for `_GRACE_SECONDS` at most."""
    end = time.monotonic() + _GRACE_SECONDS
    while (pipes or process.poll() is None) and time.monotonic() < end:
        pipes.read(on_output, _POLL_SECONDS)


@contextlib.contextmanager
def _killed_at_the_end(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
        raise
    finally:
        _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Sends a signal to the group. Its id is that of its first process and is not reused while a member is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS forbids it for a group of zombies
        os.killpg(process.pid, number)


class _Pipes:
    """The two output pipes of a process, read as data comes in either; true while one is open."""

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

    def read(self, on_output: _OnOutput, seconds: float) -> bool:
        """Waits up to ``seconds`` for output and reads a chunk of each pipe that has some; returns whether one had."""
        if not self:
            time.sleep(min(seconds, _CLOSED_POLL_SECONDS))
            return False
        ready = self._selector.select(seconds)
        for key, _ in ready:
            data = os.read(key.fd, _CHUNK)
            if data:
                on_output(key.data, data)
            else:
                self._selector.unregister(key.fileobj)
        return bool(ready)

    def empty(self, on_output: _OnOutput) -> None:
        """Reads what the pipes still hold, which is bounded, even if a process outside the group goes on writing."""
        for _ in range(_PIPE_BYTES // _CHUNK):
            if not self.read(on_output, 0):
                return
