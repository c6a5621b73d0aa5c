"""What a tool tells while it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from toolcall_nb.core.events import Json, Object

__all__ = ["Log", "Preliminary", "Progress", "Tell"]


class Log(Struct, frozen=True):
    """The tool printed ``text``, to whichever stream: a piece that may be cut anywhere, without ANSI sequences."""

    text: str


class Preliminary(Struct, frozen=True):
    """What the tool has so far; each one takes the place of the one before.

    ``display`` is what it has displayed, as `toolcall_nb.core.call_display.with_displayed_bundles` makes it.
    """

    output: Json
    display: Object | None = None


Progress: TypeAlias = Log | Preliminary
Tell: TypeAlias = Callable[[Progress], None]
"""Takes what a tool tells: one piece at a time, in whichever thread."""
