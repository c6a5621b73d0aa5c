"""Plays finished replies as a live model would: in token-sized pieces, with waits.

`replay` streams a transcript again, `ReplayModel` is a model that repeats one. `as_live` cuts any events, at a `Pace`.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Json
from toolcall_nb.core.json_text import to_extended_json
from toolcall_nb.core.replay import message_events
from toolcall_nb.core.transcript import Message, Transcript
from toolcall_nb.errors import ModelError, UsageError
from toolcall_nb.tools import Tool


def replay(
    transcript: Transcript, speed: float | None = 1.0, *, sleep: Callable[[float], None] = time.sleep
) -> Iterator[Event]:
    """Streams a whole transcript: text in token-sized pieces, inputs growing, with waits.

    The events build the same messages. ``speed`` 1 is that of a usual model; None never waits.
    """
    return as_live(transcript.events(), Pace(speed, sleep))


class ReplayModel:
    """A model that repeats the assistant of a transcript: the n-th prompt gets the n-th answer.

    Results in the transcript are played too, and their tools do not run. Calls that it left open run.
    """

    name = "replay"
    may_run_calls = True

    def __init__(
        self, transcript: Transcript, speed: float | None = 1.0, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._answers: list[list[Message]] = []
        self._pace = Pace(speed, sleep)
        for message in transcript.messages:
            if message.role == "user" or (message.role == "assistant" and not self._answers):
                self._answers.append([])
            if message.role == "assistant":
                self._answers[-1].append(message)

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        """Streams the recorded answer to the last prompt as one reply; raises `ModelError` if there is none."""
        turn = sum(message.role == "user" for message in messages)
        last = max((index for index, message in enumerate(messages) if message.role == "user"), default=-1)
        if any(message.parts for message in messages[last + 1 :]):  # it was answered by an earlier request
            return iter((ev.Finish(finish_reason="stop"),))
        if turn > len(self._answers):
            raise ModelError(f"The transcript that is played again has {len(self._answers)} answers, no more.")
        answer = (event for message in self._answers[turn - 1] for event in message_events(message))
        return play_reply((event for event in answer if not isinstance(event, ev.Start)), self._pace)


# Pace -------------------------------------------------------------------------------------------------------

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
