"""Where in its own code a tool failed: as text that is the same each time, and as frames for a debugger."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from toolcall_nb.core.result_text import truncate_text
from toolcall_nb.tools.values import without_addresses

__all__ = ["own_frames", "remember", "traceback_text"]

LONGEST = 20_000
"""Characters of a traceback; Python folds frames that repeat, but not those that take turns."""

_HERE = os.path.dirname(__file__)
_MACHINERY = frozenset(
    os.path.join(_HERE, f"{name}.py")
    for name in ("deadlines", "printing", "running", "tracebacks", "workers", "yields")
)
_LOOPS = tuple(os.path.dirname(package.__file__ or "") + os.sep for package in (asyncio, concurrent.futures))
_PACKAGES = ("site-packages", "dist-packages")


def own_frames(trace: TracebackType | None, *callers: str) -> TracebackType | None:
    """The traceback from the tool's first frame on; None where the tool has none, a built-in function for one.

    ``callers`` are folders of which no file is the tool's own.
    """
    while trace is not None and _is_machinery(trace.tb_frame.f_code.co_filename, callers):
        trace = trace.tb_next
    return trace


def traceback_text(error: BaseException) -> str | None:
    """The traceback of ``error`` as Python writes it, with its causes, at most about `LONGEST` characters.

    A cell is called ``Cell``, without its number, which is another each time that it runs; files are named from where
    their package or the working directory begins; memory addresses are left out. None where the exception itself does
    not let this be done.
    """
    try:
        report = traceback.TracebackException.from_exception(error, compact=True)
        for part in _parts(report):
            _rename(part)
        text = without_addresses("".join(report.format())).rstrip()
    except Exception:  # an exception may have methods of its own
        return None
    return truncate_text(text, LONGEST)


def remember(error: BaseException | None) -> bool:
    """Let ``%debug`` and `pdb.pm` open where ``error`` was raised; whether there is a frame to open in."""
    trace = error.__traceback__ if error is not None else None
    if error is None or trace is None:
        return False
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    setattr(sys, "last_exc", error)  # noqa: B010 - before Python 3.12 there is no such name
    interactive = sys.modules.get("IPython.core.getipython")
    formatter = getattr(interactive and interactive.get_ipython(), "InteractiveTB", None)
    if formatter is not None:
        formatter.tb = trace  # else the debugger takes the frames of the last error that was printed
    return True


def _is_machinery(filename: str, callers: tuple[str, ...] = ()) -> bool:
    return filename in _MACHINERY or filename.startswith((*_LOOPS, *callers))


def _parts(report: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    """The exception, its causes, and the members of groups."""
    waiting: list[Any] = [report]
    while waiting:
        part = waiting.pop()
        if part is not None:
            yield part
            waiting += [part.__cause__, part.__context__, *(getattr(part, "exceptions", None) or ())]


def _rename(part: traceback.TracebackException) -> None:
    for frame in part.stack:
        _ = frame.line  # looked up by the file's real name, and kept
        frame.filename = _shown_name(frame.filename)
    if getattr(part, "filename", None) is not None:
        part.filename = _shown_name(str(part.filename))


def _shown_name(filename: str) -> str:
    interactive = sys.modules.get("IPython.core.getipython")
    compiler: Any = getattr(interactive and interactive.get_ipython(), "compile", None)
    cell = compiler.format_code_name(filename) if compiler is not None else None
    return str(cell[0]) if cell else _shortened(filename)


def _shortened(filename: str) -> str:
    """From the package's folder on, or from the working directory, or from the home directory."""
    path = Path(filename)
    if not path.is_absolute():
        return filename
    for parent in path.parents:
        if parent.name in _PACKAGES:
            return path.relative_to(parent).as_posix()
    for root, opening in _roots():
        if path.is_relative_to(root):
            return opening + path.relative_to(root).as_posix()
    return filename


def _roots() -> Iterator[tuple[str, str]]:
    yield sysconfig.get_path("stdlib"), ""
    yield os.path.dirname(os.path.dirname(_HERE)), ""
    yield os.getcwd(), ""
    yield os.path.expanduser("~"), "~/"
