"""Cuts tracebacks to a tool's own frames (`own_frames`) and formats them reproducibly (`traceback_text`)."""

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
from toolcall_nb.tools.ipython_shell import ipython_shell
from toolcall_nb.tools.results.json_values import without_addresses

_MAX_CHARACTERS = 20_000
"""Characters of a traceback; Python folds frames that repeat, but not those that alternate."""

_TOOLS = os.path.dirname(os.path.dirname(__file__))
_MACHINERY = (
    *(os.path.join(_TOOLS, folder) + os.sep for folder in ("execution", "output", "results")),
    os.path.join(os.path.dirname(_TOOLS), "threads") + os.sep,
)
"""The folders of the code that calls tools and captures their output."""
_LOOPS = tuple(os.path.dirname(package.__file__ or "") + os.sep for package in (asyncio, concurrent.futures))
_PACKAGES = ("site-packages", "dist-packages")


def own_frames(trace: TracebackType | None, *callers: str) -> TracebackType | None:
    """Returns the traceback from the tool's first frame on; None where it has none, as a built-in function.

    ``callers`` are more folders whose files are not the tool's.
    """
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith((*_MACHINERY, *_LOOPS, *callers)):
        trace = trace.tb_next
    return trace


def traceback_text(error: BaseException) -> str | None:
    """Formats the traceback of ``error`` as Python does, with its causes, at about 20,000 characters at most.

    The same failure gives the same text: a cell is called ``Cell``, without its changing number, file names begin at
    their package or the working directory, and memory addresses are removed. None if the exception's own methods fail.
    """
    try:
        report = traceback.TracebackException.from_exception(error, compact=True)
        for part in _parts(report):
            for frame in part.stack:
                _ = frame.line  # read by the real file name before that is changed
                frame.filename = _display_name(frame.filename)
            if getattr(part, "filename", None) is not None:
                part.filename = _display_name(str(part.filename))
        text = without_addresses("".join(report.format())).rstrip()
    except Exception:  # an exception may have methods of its own
        return None
    return truncate_text(text, _MAX_CHARACTERS)


def remember_for_debugger(error: BaseException | None) -> bool:
    """Lets ``%debug`` and `pdb.pm` open where ``error`` was raised; returns whether it has a frame."""
    trace = error.__traceback__ if error is not None else None
    if error is None or trace is None:
        return False
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    setattr(sys, "last_exc", error)  # noqa: B010 - before Python 3.12 there is no such name
    formatter = getattr(ipython_shell(), "InteractiveTB", None)
    if formatter is not None:
        formatter.tb = trace  # else the debugger opens the last error that was printed
    return True


def _parts(report: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    """Yields the exception, its causes, and the members of groups."""
    waiting: list[Any] = [report]
    while waiting:
        part = waiting.pop()
        if part is not None:
            yield part
            waiting += [part.__cause__, part.__context__, *(getattr(part, "exceptions", None) or ())]


def _display_name(filename: str) -> str:
    compiler: Any = getattr(ipython_shell(), "compile", None)
    cell = compiler.format_code_name(filename) if compiler is not None else None
    return str(cell[0]) if cell else _shortened(filename)


def _shortened(filename: str) -> str:
    """Shortens a path to the part below its package, the working directory or the home directory."""
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
    yield os.path.dirname(os.path.dirname(_TOOLS)), ""
    yield os.getcwd(), ""
    yield os.path.expanduser("~"), "~/"
