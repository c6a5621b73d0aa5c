"""Implements the built-in tool ``bash``: runs a shell command (seed 004)."""

from __future__ import annotations

import codecs
import sys
from typing import Annotated

from msgspec import Meta

from toolcall_nb.core.events import Object
from toolcall_nb.tools.built_in.shell_command import run_command
from toolcall_nb.tools.output.head_and_tail import HeadAndTail
from toolcall_nb.tools.results.failures import ExecutionFailed, InvalidInput
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
        self._left = _PRINTED_BYTES

    def show(self, name: str, data: bytes) -> None:
        if self._left <= 0:
            return
        text = self._decoders[name].decode(data[: self._left])
        self._left -= len(data)
        if self._left <= 0:
            text += "\n… more output comes, and is not shown while it does …\n"
        print(text, end="", file=getattr(sys, name), flush=True)
