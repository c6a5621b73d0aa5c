"""The laws, as functions that raise `AssertionError` if a target's result breaks them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.support.dialect_texts import all_text
from toolcall_nb.core import events as ev
from toolcall_nb.core.call_states import FINAL_STATES
from toolcall_nb.core.events import Event
from toolcall_nb.core.reducer import TranscriptBuilder
from toolcall_nb.core.text import well_formed
from toolcall_nb.core.transcript import ToolCall, Transcript
from toolcall_nb.errors import WireError

__all__ = [
    "CONTROL",
    "calls_cover_the_rest",
    "events_are_those_of",
    "is_json",
    "is_transcript",
    "lives_once",
    "reads_back",
    "same_at_any_cut",
    "same_chunk",
]

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that must not occur in visible text."""

_STEPS = 60


def same_at_any_cut(whole: Any, read: Callable[[Any], Any], cuts: Iterable[Sequence[Any]]) -> None:
    """Law 1: ``read`` gives the same result for all cuts."""
    for pieces in cuts:
        found = read(pieces)
        assert found == whole, f"cut into {pieces!r}: {found!r}, but in one piece: {whole!r}"


def calls_cover_the_rest(text: str, events: Sequence[Event]) -> None:
    """Law 2 for a JSON dialect: the text deltas occur in the source in order, with the calls between them."""
    source, texts = well_formed(text), _texts_between_calls(events)
    if len(texts) == 1:
        assert all_text(list(events)) == source
        return
    if any(isinstance(event, ev.ToolRetracted) for event in events):
        return
    assert source.startswith(texts[0])
    at = len(texts[0])
    for between in filter(None, texts[1:-1]):  # two calls may be in one fence
        found = source.find(between, at)
        assert found > at, f"{between!r} does not occur after character {at} of {source!r}"
        at = found + len(between)
    assert source.endswith(texts[-1])
    assert len(source) - len(texts[-1]) > at
    assert "{" in source[at : len(source) - len(texts[-1])]


def _texts_between_calls(events: Iterable[Event]) -> list[str]:
    texts = [""]
    for event in events:
        if isinstance(event, ev.TextDelta):
            texts[-1] += event.delta
        elif isinstance(event, ev.ToolInputAvailable | ev.ToolInputError):
            texts.append("")
    return texts


def lives_once(events: Sequence[Event]) -> Transcript:
    """Law 5: a call that has ended keeps its final state, whatever events follow; and no event raises."""
    builder = TranscriptBuilder()
    ended: dict[tuple[int, str], ToolCall] = {}
    for number, event in enumerate(events):
        builder.apply(event)
        if number < _STEPS and not isinstance(event, ev.TextDelta | ev.ToolInputDelta | ev.ResetStep):
            _ended_stay_ended(builder.transcript, ended)
    return builder.transcript


def _ended_stay_ended(transcript: Transcript, ended: dict[tuple[int, str], ToolCall]) -> None:
    for at, message in enumerate(transcript.messages):
        assert len({call.id for call in message.calls}) == len(message.calls), "two calls have the same id"
        for call in message.calls:
            before = ended.get((at, call.id))
            assert before is None or call.state is before.state, f"{before!r} became {call!r}"
            if call.state in FINAL_STATES:
                ended[at, call.id] = call


def is_transcript(transcript: Transcript) -> None:
    """A transcript has well-formed text and JSON, and its events give exactly its messages."""
    assert Transcript.from_events(transcript.events()) == Transcript(transcript.messages)
    for message in transcript.messages:
        for call in message.calls:
            assert well_formed(call.id + call.name) == call.id + call.name
            is_json([value for value in (call.input, call.output) if value is not ev.MISSING])


def reads_back(transcript: Transcript) -> None:
    """Law 4: the transcript's Markdown reads back."""
    written = transcript.to_markdown()
    read = Transcript.from_markdown(written)
    assert read == transcript, f"{transcript.messages!r}\nwas written as\n{written}\nand read as\n{read.messages!r}"
    assert read.to_markdown() == written


def is_json(value: Any) -> None:
    """The value is JSON, or NaN or an infinity, which YAML allows."""
    stack = [value]
    while stack:
        found = stack.pop()
        if isinstance(found, dict):
            assert all(isinstance(key, str) for key in found)
            stack += found.values()
        elif isinstance(found, list):
            stack += found
        elif isinstance(found, str):
            found.encode("utf-8")
        else:
            assert found is None or isinstance(found, bool | int | float)
            json.dumps(found, allow_nan=isinstance(found, float) and not math.isfinite(found))


def events_are_those_of(read: Callable[[], Iterable[Event]]) -> list[Event]:
    """The events of a reader can be written and read again; returns them."""
    events = list(read())
    for event in events:
        same_chunk(event)
    return events


def same_chunk(event: Event) -> None:
    """An event round-trips through its mapping."""
    mapping = ev.to_dict(event)
    try:
        again = ev.from_dict(mapping)
    except WireError as error:
        raise AssertionError(f"{event!r} is written as {mapping!r}, which is not a chunk") from error
    assert again == event, f"{event!r} is read back as {again!r}"
