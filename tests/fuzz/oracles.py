"""The laws, as functions that fail: each says of what a target made of its input whether it may be so."""

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
"""What no line of visible text holds."""

_STEPS = 60


def same_at_any_cut(whole: Any, read: Callable[[Any], Any], cuts: Iterable[Sequence[Any]]) -> None:
    """Law 1: ``read`` makes the same of all pieces."""
    for pieces in cuts:
        found = read(pieces)
        assert found == whole, f"cut into {pieces!r}: {found!r}, and in one piece {whole!r}"


def calls_cover_the_rest(text: str, events: Sequence[Event]) -> None:
    """Law 2, of a dialect in JSON: the texts stand in the source in their order, and between them stand the calls."""
    source, texts = well_formed(text), _texts_between_calls(events)
    if len(texts) == 1:
        assert all_text(list(events)) == source
        return
    if any(isinstance(event, ev.ToolRetracted) for event in events):
        return
    assert source.startswith(texts[0])
    at = len(texts[0])
    for between in filter(None, texts[1:-1]):  # two calls may stand in one fence
        found = source.find(between, at)
        assert found > at, f"{between!r} stands nowhere behind character {at} of {source!r}"
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
    """Law 5: a call that has ended stays as it ended, whatever comes after; and nothing raises on the way."""
    builder = TranscriptBuilder()
    ended: dict[tuple[int, str], ToolCall] = {}
    for number, event in enumerate(events):
        builder.apply(event)
        if number < _STEPS and not isinstance(event, ev.TextDelta | ev.ToolInputDelta | ev.ResetStep):
            _ended_stay_ended(builder.transcript, ended)
    return builder.transcript


def _ended_stay_ended(transcript: Transcript, ended: dict[tuple[int, str], ToolCall]) -> None:
    for at, message in enumerate(transcript.messages):
        assert len({call.id for call in message.calls}) == len(message.calls), "two calls of one id"
        for call in message.calls:
            before = ended.get((at, call.id))
            assert before is None or call.state is before.state, f"{before!r} became {call!r}"
            if call.state in FINAL_STATES:
                ended[at, call.id] = call


def is_transcript(transcript: Transcript) -> None:
    """A transcript holds well-formed text and JSON, and its events amount to its messages and nothing else."""
    assert Transcript.from_events(transcript.events()) == Transcript(transcript.messages)
    for message in transcript.messages:
        for call in message.calls:
            assert well_formed(call.id + call.name) == call.id + call.name
            is_json([value for value in (call.input, call.output) if value is not ev.MISSING])


def reads_back(transcript: Transcript) -> None:
    """Law 4."""
    written = transcript.to_markdown()
    read = Transcript.from_markdown(written)
    assert read == transcript, f"{transcript.messages!r}\nwas written as\n{written}\nand read as\n{read.messages!r}"
    assert read.to_markdown() == written


def is_json(value: Any) -> None:
    """Values of JSON, with YAML's two odd kinds of number."""
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
    """What a reader gives are events that can be written and read."""
    events = list(read())
    for event in events:
        same_chunk(event)
    return events


def same_chunk(event: Event) -> None:
    """A chunk survives the way to its mapping and back; one that came in does."""
    mapping = ev.to_dict(event)
    try:
        again = ev.from_dict(mapping)
    except WireError as error:
        raise AssertionError(f"{event!r} is written as {mapping!r}, which is no chunk") from error
    assert again == event, f"{event!r} comes back as {again!r}"
