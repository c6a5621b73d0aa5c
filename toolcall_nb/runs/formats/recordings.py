"""Reads the recordings of this package: `RECORDINGS`. `toolcall_nb.core.recording` describes the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from toolcall_nb.core.events import Abort, Finish, Start
from toolcall_nb.core.recording import Recording, is_recording_header, read_recording
from toolcall_nb.core.sdk_objects import get
from toolcall_nb.runs.formats.base import RecordedRun, TraceFormat


def _recognises(records: Sequence[Any]) -> bool:
    """Whether the first line is the header of a recording, or, where the header is lost, a chunk with its time."""
    first = records[0] if records else None
    if is_recording_header(first):
        return True
    return type(first) is dict and type(first.get("type")) is str and type(first.get("t")) in (int, float)


def _read(records: Iterable[Any]) -> Iterator[RecordedRun]:
    """Yields a run for each header, and one for lines before the first."""
    lines = iter(records)
    header = next(lines, None)
    number = 0
    while header is not None:
        number += 1
        following: list[Any] = []
        yield _run(read_recording(chain([header], _lines_of_run(lines, following))), number)
        header = following[0] if following else None


def _lines_of_run(lines: Iterator[Any], following: list[Any]) -> Iterator[Any]:
    """Yields the lines up to the next header, which is put into ``following``."""
    for line in lines:
        if is_recording_header(line) and "version" in line["data"]:
            following.append(line)
            return
        yield line


def _run(recording: Recording, number: int) -> RecordedRun:
    fields = recording.run
    # a last reply without an end is that of a program that was stopped
    ends = [event for _, event in recording.events if isinstance(event, Start | Finish | Abort)]
    return RecordedRun(
        id=str(fields.get("id") or number),
        transcript=recording.transcript,
        title=get(fields, "title", str) or "",
        began=recording.began,
        seconds=recording.seconds,
        extra={"run": fields} if fields else {},
        is_unfinished=bool(ends) and isinstance(ends[-1], Start),
    )


RECORDINGS = TraceFormat("recording", "a recording of a run, as `chat.recording.write` makes it", _recognises, _read)
