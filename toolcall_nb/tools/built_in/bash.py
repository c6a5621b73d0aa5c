"""Implements the built-in tool ``bash`` (seed 004).

`run_command` runs a shell command as a process group that is always killed in the end.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

from msgspec import Meta

from toolcall_nb.core.events import Object
from toolcall_nb.tools.output.head_and_tail import HeadAndTail
from toolcall_nb.tools.results.failures import ExecutionFailed, InputOutputFailed, InvalidInput
from toolcall_nb.tools.workspaces import WorkspacePath, workspace

_KEPT_BYTES = 200_000
"""Bytes of each stream that the result keeps: half from its beginning, half from its end."""

_PRINTED_BYTES = 1_000_000
"""Bytes of output that are printed while the command runs."""


def bash(command: str, timeout: Annotated[float, Meta(gt=0)] = 30, working_dir: WorkspacePath | None = None) -> Object:
    """Execute a shell command by bash, or by sh where there is no bash.

    Its input is empty. Its output is shown while it comes. When the command ends, what it left running in the
    background is ended too.

    Args:
        command: The command, or several, as a shell takes them.
        timeout: Seconds after which the command is ended.
        working_dir: The folder to run it in, relative to the workspace root. Without it, the workspace root.
    """
    folder = workspace.root if working_dir is None else workspace.resolve(working_dir)
    if not folder.is_dir():
        raise InvalidInput(f"Working directory does not exist: {folder}")
    outputs = {"stdout": HeadAndTail(_KEPT_BYTES), "stderr": HeadAndTail(_KEPT_BYTES)}
    screen = _Screen()

    def on_output(name: str, data: bytes) -> None:
        outputs[name].feed(data)
        screen.show(name, data)

    code = run_command(command, folder, timeout, on_output)
    texts = {name: output.text for name, output in outputs.items()}
    if code is None:
        raise ExecutionFailed(
            f"Command timed out after {timeout:g} seconds", output=texts if any(texts.values()) else None
        )
    message = f"Command failed with exit code: {code}" if code else "Command executed successfully (exit code: 0)"
    return {"success": not code, "message": message, "data": {**texts, "exit_code": code}}


class _Screen:
    """Prints the command's output in whole characters, up to `_PRINTED_BYTES`."""

    def __init__(self) -> None:
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}
        self._remaining = _PRINTED_BYTES

    def show(self, name: str, data: bytes) -> None:
        if self._remaining <= 0:
            return
        text = self._decoders[name].decode(data[: self._remaining])
        self._remaining -= len(data)
        if self._remaining <= 0:
            text += "\n… more output comes, and is not shown while it does …\n"
        print(text, end="", file=getattr(sys, name), flush=True)


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
        end = time.monotonic() + _GRACE_SECONDS
        while (pipes or process.poll() is None) and time.monotonic() < end:
            pipes.read(on_output, _POLL_SECONDS)
        _signal(process, signal.SIGKILL)
        pipes.empty(on_output)
    return code if code is None or code >= 0 else 128 - code


def _start(command: str, folder: Path) -> subprocess.Popen[bytes]:
    shell = None if os.name == "nt" else shutil.which("bash") or shutil.which("sh")
    if shell is None:
        raise ExecutionFailed("There is no bash or sh here. On Windows, run the kernel in WSL to have one.")
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
