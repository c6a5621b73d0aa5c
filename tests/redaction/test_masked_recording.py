"""Secrets in a recording are masked, also where a stream cuts them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import streams
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.recording import Recording, read_recording
from toolcall_nb.errors import UsageError
from toolcall_nb.redaction.masked_recording import masked_recording
from toolcall_nb.redaction.registered_secrets import saved_value

KEY = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0" * 2


def recorded(events: list[Event]) -> Recording:
    recording = Recording()
    for number, event in enumerate(events):
        recording.add(float(number), event)
    return recording


def pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


@given(st.integers(1, 60))
def test_a_key_is_masked_however_the_stream_cuts_it(size: int) -> None:
    text = f"The key is {KEY}. That is all."
    logs: list[Event] = [ev.ToolLog("c", piece) for piece in pieces(f"{text}\n", size)]
    call: list[Event] = [
        ev.ToolInputAvailable("c", "t", {"key": KEY}),
        *logs,
        ev.ToolOutputAvailable("c", {"key": KEY}),
    ]
    written: list[Event] = [
        ev.TextStart("1"),
        *(ev.TextDelta("1", piece) for piece in pieces(text, size)),
        ev.TextEnd("1"),
    ]
    recording = recorded([ev.Start(), *written, *call, ev.Finish()])
    masked, tally = masked_recording(recording)
    lines = "".join(masked.lines())
    assert KEY not in lines
    assert KEY not in "".join(json.loads(line).get("delta", "") for line in lines.splitlines())
    assert tally
    assert masked.transcript == saved_value(recording.transcript)[0]
    assert [timed.seconds for timed in masked.events] == [timed.seconds for timed in recording.events]


@given(streams())
def test_a_recording_without_secrets_stays_the_same_object(events: list[Event]) -> None:
    recording = recorded(events)
    if saved_value(recording.transcript)[0] is not recording.transcript:
        return  # by chance it holds what looks like a secret
    assert masked_recording(recording)[0].transcript == recording.transcript


def test_two_texts_with_one_id_are_masked_apart() -> None:
    block: list[Event] = [ev.TextStart("1"), ev.TextDelta("1", KEY[:20]), ev.TextEnd("1")]
    recording = recorded([ev.Start(), *block, ev.TextStart("1"), ev.TextDelta("1", KEY[20:]), ev.TextEnd("1")])
    masked, _ = masked_recording(recording)
    assert [*masked.lines()] == [*recording.lines()]


def test_a_recording_is_written_without_secrets_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    recording = recorded([ev.Start(), ev.TextStart("1"), ev.TextDelta("1", f"Use {KEY}"), ev.TextEnd("1"), ev.Finish()])
    recording.write(path)
    assert KEY not in path.read_text("utf-8")
    read = read_recording(map(json.loads, path.read_text("utf-8").splitlines()))
    assert read.transcript == saved_value(recording.transcript)[0]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        recorded([]).write(tmp_path / "missing" / "run.jsonl")
