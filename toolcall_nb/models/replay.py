"""A transcript played again, as if it were live."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.replay import message_events
from toolcall_nb.core.transcript import Message, Transcript
from toolcall_nb.errors import ModelError
from toolcall_nb.models.pace import THINKING, Pace, as_live
from toolcall_nb.tools import Tool

__all__ = ["ReplayModel", "replay"]


def replay(
    transcript: Transcript, speed: float | None = 1.0, *, sleep: Callable[[float], None] = time.sleep
) -> Iterator[Event]:
    """All of a transcript as a stream of events: text in token-like pieces, inputs growing, with waits.

    The stream amounts to the same messages. ``speed`` 1 is that of a usual model, None never waits.
    """
    return as_live(transcript.events(), Pace(speed, sleep))


class ReplayModel:
    """A model that says what the assistant of a transcript said: to the n-th prompt the n-th answer.

    Results that the transcript holds are played too, and not run again; calls that it left open are run.
    """

    name = "replay"

    def __init__(
        self, transcript: Transcript, speed: float | None = 1.0, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._answers = _answers(transcript)
        self._pace = Pace(speed, sleep)

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        """The recorded answer to the last prompt, in one reply; `ModelError` where the transcript has none."""
        turn = sum(message.role == "user" for message in messages)
        if any(message.parts for message in _since_prompt(messages)):
            return iter((ev.Finish(finish_reason="stop"),))
        if turn > len(self._answers):
            raise ModelError(f"The transcript that is played again has {len(self._answers)} answers, no more.")
        return self._play(self._answers[turn - 1])

    def _play(self, answer: Sequence[Message]) -> Iterator[Event]:
        self._pace.wait(THINKING)
        said = (event for message in answer for event in message_events(message) if not isinstance(event, ev.Start))
        yield from as_live(said, self._pace)


def _answers(transcript: Transcript) -> list[list[Message]]:
    answers: list[list[Message]] = []
    for message in transcript.messages:
        if message.role == "user":
            answers.append([])
        elif message.role == "assistant":
            if not answers:  # it spoke first
                answers.append([])
            answers[-1].append(message)
    return answers


def _since_prompt(messages: Sequence[Message]) -> Sequence[Message]:
    last = max((place for place, message in enumerate(messages) if message.role == "user"), default=-1)
    return messages[last + 1 :]
