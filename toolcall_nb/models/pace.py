"""Streams finished text as a live model would: in token-sized pieces, with waits. `as_live` is the entry point.

Only the mock model and the replay use it.
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
from toolcall_nb.core.json_text import to_extended_json
from toolcall_nb.errors import UsageError

_PIECE = re.compile(r" ?[^\W_]{1,7}| ?[^\w\s]{1,2}|_{1,3}|\s{1,4}")
_KEPT_FIELDS = ("provider_executed", "provider_metadata", "tool_metadata", "dynamic", "title", "open", "extra")

_THINKING_SECONDS = 0.35
"""The wait before the first token, at speed 1."""

_TOOL_SECONDS = 0.4
"""The wait before the result of a recorded call, at speed 1."""


def pieces(text: str) -> list[str]:
    """Cuts ``text`` into pieces of the size of tokens: 4 characters on average in prose."""
    return _PIECE.findall(text)


class Pace(Struct, frozen=True):
    """The speed of a stream: 1 is a usual model (about 45 tokens a second); None or 0 never waits."""

    speed: float | None = 1.0
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        if self.speed and not 0 < self.speed <= math.inf:
            raise UsageError(f"A speed is a number above 0, or None for no waiting at all, but got {self.speed!r}.")

    def wait(self, seconds: float) -> None:
        """Waits for ``seconds`` at speed 1, for less at a higher speed."""
        if self.speed and math.isfinite(self.speed):
            self.sleep(seconds / self.speed)

    def cut(self, text: str) -> Iterator[str]:
        """Yields the pieces of a text, each after its wait."""
        for piece in pieces(text):
            self.wait(0.012 + 0.0025 * len(piece))
            yield piece


def as_live(events: Iterable[Event], pace: Pace) -> Iterator[Event]:
    """Yields the same events as a model streams them: text in pieces, inputs as growing JSON text, with waits.

    The resulting transcript is the same. Messages of the user and the system come at once.
    """
    is_live, streamed = True, set[str]()
    for event in events:
        if isinstance(event, ev.Start):
            is_live = event.role is None
            streamed.clear()
        match event:
            case ev.TextDelta() | ev.ReasoningDelta() if is_live:
                for piece in pace.cut(event.delta):
                    yield replace(event, delta=piece)
                continue
            case ev.ToolInputDelta() if is_live:
                for piece in pace.cut(event.input_text_delta):
                    yield replace(event, input_text_delta=piece)
                continue
            case ev.ToolInputStart() if is_live:
                streamed.add(event.tool_call_id)
            case ev.ToolInputAvailable() if is_live and event.tool_call_id not in streamed:
                fields: dict[str, Any] = {name: getattr(event, name) for name in _KEPT_FIELDS}
                yield ev.ToolInputStart(event.tool_call_id, event.tool_name, **fields)
                for piece in pace.cut(_json_text(event.input)):
                    yield ev.ToolInputDelta(event.tool_call_id, piece)
            case ev.ToolOutputAvailable() | ev.ToolOutputError() if is_live:
                pace.wait(_TOOL_SECONDS)
        yield event


def play_reply(events: Iterable[Event], pace: Pace) -> Iterator[Event]:
    """Yields the events of a whole reply as `as_live`, after the wait of a model that thinks."""
    pace.wait(_THINKING_SECONDS)
    yield from as_live(events, pace)


def _json_text(value: Json) -> str:
    try:
        return json.dumps(to_extended_json(value), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):  # then the card shows the whole input when it is there
        return ""
