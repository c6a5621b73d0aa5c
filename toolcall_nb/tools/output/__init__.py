"""The output of running tools: what they print, display and plot, and the intermediate results that they yield.

captured_output.py   `captured_output`: collects it and reports it as `ToolProgress`
displays.py          `Displays`: the MIME bundles that a tool displays
log_text.py          `PrintedText` and `LogText`: printed text without escape sequences, bounded
patched_streams.py   the patches of ``sys.stdout``, ``display()`` and others that route output to a capture
figures.py           figures of matplotlib
head_and_tail.py     the beginning and the end of a long output, in bounded memory
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from toolcall_nb.core.events import Event, Json, Object

__all__ = ["Inner", "Log", "Preliminary", "ProgressCallback", "ToolProgress"]


class Log(Struct, frozen=True):
    """A piece of text that the tool printed to any stream, without ANSI sequences; it may be cut anywhere."""

    text: str


class Preliminary(Struct, frozen=True):
    """The tool's latest intermediate result, which replaces the one before.

    ``display`` is what it has displayed so far, as `toolcall_nb.core.call_display.with_displayed_bundles` makes it.
    """

    output: Json
    display: Object | None = None


class Inner(Struct, frozen=True):
    """An event of a chat that the tool runs. ``run`` is the number of the turn, which no other turn has."""

    event: Event
    run: int


ToolProgress: TypeAlias = Log | Preliminary | Inner
ProgressCallback: TypeAlias = Callable[[ToolProgress], None]
"""A callback for the progress of a tool. It is called by one thread at a time, but not always the same one."""
