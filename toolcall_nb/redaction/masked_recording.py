"""Masks the secrets in a recording: `masked_recording`. A secret may be cut across the pieces of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from toolcall_nb.core.events import PIECE_FIELDS
from toolcall_nb.core.recording import Recording, TimedEvent
from toolcall_nb.redaction.masker import Tally
from toolcall_nb.redaction.registered_secrets import is_masking, saved_text, saved_value


def masked_recording(recording: Recording) -> tuple[Recording, Tally]:
    """Returns the recording without secrets, and the tally; the same object if nothing was masked.

    The pieces of a text are masked as one text and cut again at the same places, as far as these still exist.
    """
    if not is_masking():
        return recording, Tally()
    initial, tally = saved_value(recording.initial)
    _, events_tally = saved_value(recording.transcript)
    masked = Recording(initial, began=recording.began, says_running=recording.says_running)
    masked.run = saved_value(recording.run)[0]
    is_same = initial is recording.initial and masked.run == recording.run
    events = [*recording.events]
    for before, after in zip(events, _masked(events), strict=True):
        is_same = is_same and before.event is after.event
        masked.add(after.seconds, after.event)
    return (recording, Tally()) if is_same else (masked, events_tally if events_tally else tally)


def _masked(events: list[TimedEvent]) -> Iterator[TimedEvent]:
    texts: dict[tuple[type, str], list[int]] = {}
    blocks: list[list[int]] = []
    for place, (_, event) in enumerate(events):
        if type(event) in PIECE_FIELDS:
            key = (type(event), _text_id(event))
            if key not in texts:
                blocks.append(texts.setdefault(key, []))
            texts[key].append(place)
        elif (ended := getattr(event, "id", None)) is not None:
            for key in [key for key in texts if key[1] == ended]:
                del texts[key]  # a block with the same id is another text
    pieces = {place: piece for block in blocks for place, piece in zip(block, _recut(events, block), strict=True)}
    for place, (seconds, event) in enumerate(events):
        if place in pieces:
            name = PIECE_FIELDS[type(event)]
            same = pieces[place] == getattr(event, name)
            yield TimedEvent(seconds, event if same else replace(event, **{name: pieces[place]}))
        else:
            yield TimedEvent(seconds, saved_value(event)[0])


def _text_id(event: Any) -> str:
    """Returns the id of the text that the piece belongs to."""
    name = "tool_call_id" if hasattr(event, "tool_call_id") else "id"
    return f"{getattr(event, name)}"


def _recut(events: list[TimedEvent], block: list[int]) -> list[str]:
    """Returns the pieces of one text, masked. What is longer than before is in the last piece."""
    before = [getattr(events[place].event, PIECE_FIELDS[type(events[place].event)]) for place in block]
    text = saved_text("".join(before))
    pieces, start = [], 0
    for piece in before[:-1]:
        pieces.append(text[start : start + len(piece)])
        start += len(piece)
    return [*pieces, text[start:]]
