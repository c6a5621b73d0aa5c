"""Reads the recordings of this package: `RECORDINGS`. `toolcall_nb.core.recording` describes the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from toolcall_nb.core.recording import is_recording_header, read_recording
from toolcall_nb.traces.formats.base import RecordedRun, TraceFormat

__all__ = ["RECORDINGS"]


def _recognises(records: Sequence[Any]) -> bool:
    """Whether the first line is the header of a recording, or, where the header is lost, a chunk with its time."""
    first = records[0] if records else None
    if is_recording_header(first):
        return True
    return type(first) is dict and type(first.get("type")) is str and type(first.get("t")) in (int, float)


def _read(records: Iterable[Any]) -> Iterator[RecordedRun]:
    recording = read_recording(records)
    yield RecordedRun(id="1", transcript=recording.transcript, began=recording.began, seconds=recording.seconds)


RECORDINGS = TraceFormat("recording", "a recording of a run, as `chat.recording.write` makes it", _recognises, _read)
