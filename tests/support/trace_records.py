"""Helps the tests of recorded runs: reads records as files give them, and spoils them for the property tests.

`records_in` reads a file, `runs_in` reads records with the format that recognises them, and `spoiled` is a strategy
that puts any JSON value in the place of a record or of something within it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from tests.support.strategies import json_values
from toolcall_nb.core.transcript import ReasoningPart, TextPart, ToolCall, Transcript
from toolcall_nb.runs.file_archives import archive_members
from toolcall_nb.runs.formats import TRACE_FORMATS
from toolcall_nb.runs.formats.base import RecordedRun, TraceFormat

__all__ = ["call_rows", "check_runs", "format_of", "nested_texts", "records_in", "run_in", "runs_in", "spoiled"]


def records_in(path: Path) -> list[Any]:
    """The records of a file: its one value, those of its lines that are JSON, or the members of an archive."""
    if path.suffix == ".eval":
        with path.open("rb") as file:
            return list(archive_members(file, path.name, json.loads, pytest.fail))
    text = path.read_text("utf-8")
    if path.suffix != ".jsonl":
        return [json.loads(text)]
    return [value for line in text.splitlines() if line.strip() for value in _values(line)]


def _values(line: str) -> list[Any]:
    try:
        return [json.loads(line)]
    except ValueError:
        return []


def format_of(records: Sequence[Any]) -> TraceFormat | None:
    """The first format that recognises the records, as a reader of files chooses it."""
    return next((known for known in TRACE_FORMATS if known.recognises(records[:20])), None)


def runs_in(records: Sequence[Any], name: str) -> list[RecordedRun]:
    """The runs in the records, which must be recognised as this format."""
    known = format_of(records)
    assert known is not None
    assert known.name == name
    runs = list(known.read(records))
    check_runs(runs)
    return runs


def run_in(records: Sequence[Any], name: str) -> RecordedRun:
    """The one run in the records."""
    [run] = runs_in(records, name)
    return run


def check_runs(runs: Sequence[RecordedRun]) -> None:
    """Checks the promises that hold for every run, whatever was in the file."""
    for run in runs:
        assert isinstance(run.id, str)
        assert isinstance(run.title, str)
        assert all(time is None or isinstance(time, float) for time in (run.began, run.seconds))
        assert Transcript.from_markdown(run.transcript.to_markdown()) == run.transcript
        for message in run.transcript.messages:
            ids = [call.id for call in message.calls]
            assert len(ids) == len(set(ids))
            assert not any(isinstance(value, float) for value in message.metadata.values())
        assert all(call.seconds is None or call.seconds >= 0 for call in run.transcript.calls.values())


def call_rows(run: RecordedRun) -> list[tuple[str, str, str, str | None]]:
    """The id, name, state and parent of each call."""
    return [_row(call) for call in run.transcript.calls.values()]


def nested_texts(transcript: Transcript, parent: str) -> list[str]:
    """The texts and the reasoning of the run inside a call."""
    parts = [part for message in transcript.messages for part in message.parts]
    return [part.text for part in parts if isinstance(part, TextPart | ReasoningPart) and part.parent == parent]


def _row(call: ToolCall) -> tuple[str, str, str, str | None]:
    return call.id, call.name, call.state.value, call.parent


@st.composite
def spoiled(draw: st.DrawFn, records: Sequence[Any]) -> list[Any]:
    """The records with any JSON values in the place of some of what they hold; also cut, repeated or out of order."""
    found: list[Any] = copy.deepcopy(list(records))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.sampled_from(list(_places(found))))
        _put(found, place, draw(st.one_of(json_values(), st.sampled_from(list(_scalars(found)) or [None]))))
    if draw(st.booleans()):
        found = draw(st.permutations(found)) if draw(st.booleans()) else found + found
    return found[: draw(st.integers(0, len(found)))] if draw(st.booleans()) else found


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield (*path, name)
        yield from _places(inner, (*path, name))


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _scalars(inner)
    else:
        yield value


def _put(value: Any, path: tuple[Any, ...], new: Any) -> None:
    for name in path[:-1]:
        value = value[name]
    value[path[-1]] = new
