"""Runs a program in a pseudo-terminal and types into it; main entry point: `typed`."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["typed"]

ROOT = Path(__file__).resolve().parents[2]
_OWN_TERMINAL = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Makes it the program's controlling terminal, so that Ctrl-C sends a signal."""
_CTRL_C = "\x03"
_SILENCE, _PATIENCE = 2, 30  # seconds without output, and how many times before giving up
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def typed(
    arguments: Sequence[str], keys: Sequence[tuple[str, str]], variables: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Runs ``python arguments``; returns its exit code and its output without colours and cursor movements.

    Each of ``keys`` is the text with which the output must end, and the text to type then. The user's editor and
    readline settings are ignored. A program without output for a minute is killed. Ctrl-C is pressed again if there
    is no reaction: a program notices one that comes just before it reads a line only at the next key.
    """
    inner, outer = pty.openpty()
    plain = {name: value for name, value in os.environ.items() if name not in ("VISUAL", "EDITOR")}
    environment = {**plain, "PYTHONPATH": str(ROOT), "TERM": "xterm", "INPUTRC": os.devnull, **(variables or {})}
    process = subprocess.Popen(
        [sys.executable, "-c", _OWN_TERMINAL, *arguments],
        stdin=outer,
        stdout=outer,
        stderr=outer,
        env=environment,
        start_new_session=True,
    )
    os.close(outer)
    shown, waiting, pressed, silent = "", list(keys), "", 0
    try:
        while silent < _PATIENCE:
            if not select.select([inner], [], [], _SILENCE)[0]:
                silent += 1
                os.write(inner, pressed.encode() if pressed == _CTRL_C else b"")
                continue
            piece, silent = os.read(inner, 4096), 0
            if not piece:
                break
            shown = _ESCAPES.sub("", shown + piece.decode(errors="replace").replace("\r", ""))
            if waiting and shown.endswith(waiting[0][0]):
                pressed = waiting.pop(0)[1]
                os.write(inner, pressed.encode())
    except OSError:  # raised by a pseudo-terminal when the other side is closed
        pass
    finally:
        os.close(inner)
        process.kill()
        code = process.wait(60)
    return code, shown
