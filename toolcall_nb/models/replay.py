"""Plays a transcript again as if it were live: `replay` as a stream of events, `ReplayModel` as a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.replay import message_events
from toolcall_nb.core.transcript import Message, Transcript
from toolcall_nb.errors import ModelError
from toolcall_nb.models.pace import Pace, as_live, play_reply
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
        last = max((place for place, message in enumerate(messages) if message.role == "user"), default=-1)
        if any(message.parts for message in messages[last + 1 :]):  # it was answered by an earlier request
            return iter((ev.Finish(finish_reason="stop"),))
        if turn > len(self._answers):
            raise ModelError(f"The transcript that is played again has {len(self._answers)} answers, no more.")
        answer = (event for message in self._answers[turn - 1] for event in message_events(message))
        return play_reply((event for event in answer if not isinstance(event, ev.Start)), self._pace)
