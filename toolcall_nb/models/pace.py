"""Text as a model sends it: in token-like pieces, with waits between them.

The mock and the replay both play through `as_live`; nothing else cuts text or waits.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Json
from toolcall_nb.core.json_text import to_extended
from toolcall_nb.errors import UsageError

__all__ = ["Pace", "as_live", "pieces"]

_PIECE = re.compile(r" ?[^\W_]{1,7}| ?[^\w\s]{1,2}|_{1,3}|\s{1,4}")

THINKING, TOOL = 0.35, 0.4
"""Seconds before the first token, and before the result of a recorded call, at speed 1."""


def pieces(text: str) -> list[str]:
    """``text`` cut into pieces of the size of tokens: 4 characters on average in prose."""
    return _PIECE.findall(text)


class Pace(Struct, frozen=True):
    """How fast: ``speed`` 1 is that of a usual model (about 45 tokens a second); None or 0 never waits."""

    speed: float | None = 1.0
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        if self.speed and not 0 < self.speed <= math.inf:
            raise UsageError(f"A speed is a number above 0, or None for no waiting at all, but got {self.speed!r}.")

    def wait(self, seconds: float) -> None:
        """Wait as long as ``seconds`` take at this speed."""
        if self.speed and math.isfinite(self.speed):
            self.sleep(seconds / self.speed)

    def token(self, piece: str) -> None:
        """Wait before a piece, longer before a long one."""
        self.wait(0.012 + 0.0025 * len(piece))


def as_live(events: Iterable[Event], pace: Pace) -> Iterator[Event]:
    """The same events as a model streams them: text in pieces, inputs as growing JSON text, with waits.

    What it amounts to is the same. Messages of other roles than the assistant come at once.
    """
    live, begun = True, set[str]()
    for event in events:
        if isinstance(event, ev.Start):
            live = event.role is None
            begun.clear()
        if live:
            yield from _slowly(event, pace, begun)
        else:
            yield event


def _slowly(event: Event, pace: Pace, begun: set[str]) -> Iterator[Event]:
    match event:
        case ev.TextDelta() | ev.ReasoningDelta():
            for piece in _paced(event.delta, pace):
                yield replace(event, delta=piece)
            return
        case ev.ToolInputDelta():
            for piece in _paced(event.input_text_delta, pace):
                yield replace(event, input_text_delta=piece)
            return
        case ev.ToolInputStart():
            begun.add(event.tool_call_id)
        case ev.ToolInputAvailable() if event.tool_call_id not in begun:
            yield from _growing(event, pace)
        case ev.ToolOutputAvailable() | ev.ToolOutputError():
            pace.wait(TOOL)
        case _:
            pass
    yield event


def _growing(event: ev.ToolInputAvailable, pace: Pace) -> Iterator[Event]:
    about: dict[str, Any] = {
        name: getattr(event, name)
        for name in ("provider_executed", "provider_metadata", "tool_metadata", "dynamic", "title", "open", "extra")
    }
    yield ev.ToolInputStart(event.tool_call_id, event.tool_name, **about)
    for piece in _paced(_json_text(event.input), pace):
        yield ev.ToolInputDelta(event.tool_call_id, piece)


def _paced(text: str, pace: Pace) -> Iterator[str]:
    for piece in pieces(text):
        pace.token(piece)
        yield piece


def _json_text(value: Json) -> str:
    try:
        return json.dumps(to_extended(value), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):  # then the card shows it whole, when it is there
        return ""
