"""How a run ended, derived from its messages: the words are written out here."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from toolcall_nb import Chat, MockModel, Transcript
from toolcall_nb.core import events as ev
from toolcall_nb.core.recording import read_recording
from toolcall_nb.core.run_outcome import RunOutcome, run_outcome
from toolcall_nb.core.transcript import ErrorPart, Message, Part, State, TextPart, ToolCall
from toolcall_nb.runs.formats.recordings import RECORDINGS

HI, ERROR = TextPart("Hi."), ErrorPart("broken")


def call(state: State, **about: Any) -> ToolCall:
    return ToolCall(id="c", name="look", state=state, **about)


def answer(*parts: Part, **about: Any) -> list[Message]:
    return [Message("user", (HI,)), Message("assistant", parts, **about)]


@pytest.mark.parametrize(
    ("messages", "state"),
    [
        ([], None),
        ([Message("system", (HI,))], None),
        ([Message("user", (HI,))], "unanswered"),
        (answer(HI), "done"),
        (answer(HI, finish_reason="length"), "cut-off"),
        (answer(HI, finish_reason="other"), "cut-off"),
        (answer(HI, finish_reason="content-filter"), "filtered"),
        (answer(HI, finish_reason="error"), "error"),
        (answer(HI, finish_reason="end_turn"), "done"),
        (answer(HI, ERROR), "error"),
        (answer(ERROR), "error"),
        (answer(ERROR, HI), "done"),  # it went on
        (answer(HI, ERROR, finish_reason="limit"), "limit"),
        (answer(HI, ERROR, finish_reason="other"), "error"),
        (answer(HI, aborted="interrupted"), "interrupted"),
        (answer(HI, aborted=""), "stopped"),
        (answer(ERROR, aborted="timed out"), "stopped"),
        (answer(call(State.INPUT_AVAILABLE, input={})), "done"),
        (answer(call(State.INPUT_STREAMING, input_text="{")), "interrupted"),
        (answer(call(State.APPROVAL_REQUESTED, input={})), "waiting"),
        (answer(call(State.INTERRUPTED, input={})), "interrupted"),
        (answer(call(State.INTERRUPTED, input={}), HI), "done"),
        (answer(call(State.OUTPUT_ERROR, error="no"), HI), "done"),
        (answer(call(State.OUTPUT_DENIED), HI), "done"),
        ([*answer(ERROR), *answer(HI)], "done"),  # a later turn went well
        ([*answer(HI), *answer(ERROR)], "error"),
    ],
)
def test_the_last_turn_says_how_a_run_ended(messages: list[Message], state: str | None) -> None:
    assert run_outcome(messages).state == state
    back = Transcript.from_markdown(Transcript(tuple(messages)).to_markdown())
    assert run_outcome(back.messages).state == state


def test_the_outcome_has_the_error() -> None:
    assert run_outcome(answer(HI, ERROR)) == RunOutcome("error", "broken")  # type: ignore[arg-type]
    assert run_outcome(answer(HI, aborted="timed  out")).error == "timed out"


def test_a_chat_ends_as_its_outcome_says() -> None:
    def look() -> str:
        """Looks."""
        return "seen"

    chat = Chat(MockModel(script=[[("look", {})], "Seen."]), tools=[look], max_steps=1)
    chat.send("Look.")
    assert run_outcome(chat.transcript.messages).state == "limit"
    stream = Chat(MockModel(script=["one two three four"]))
    events = stream.stream("Go.")
    for event in events:
        if isinstance(event, ev.TextDelta) and "one" in event.delta:
            break
    events.close()
    assert run_outcome(stream.transcript.messages).state == "stopped"


def test_a_recording_that_ends_within_a_reply_is_interrupted() -> None:
    chat = Chat(MockModel(script=["Hi."]))
    chat.send("Go.")
    lines = [*chat.recording.lines()]
    cut = [line for line in lines if '"finish"' not in line]
    assert len(cut) < len(lines)
    for kept, state in ((lines, "done"), (cut, "interrupted")):
        records = [msgspec.json.decode(line) for line in kept]
        assert read_recording(records)
        (run,) = RECORDINGS.read(records)
        assert run_outcome(run.transcript.messages, is_unfinished=run.is_unfinished).state == state
