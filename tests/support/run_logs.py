"""A format of recorded runs for tests: a JSON-lines file with one run a line, and files of many such runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from toolcall_nb.core.calls import CallRecord
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall, Transcript
from toolcall_nb.runs.formats.base import RecordedRun, TraceFormat

__all__ = ["LINES", "run_line", "write_lines"]


def run_line(number: int, *, text: str = "Done.", seconds: float | None = None, error: str | None = None) -> Any:
    """The JSON of one run with one call."""
    return {"run": number, "text": text, "seconds": seconds, "error": error}


def write_lines(path: Path, lines: Iterable[Any]) -> Path:
    """Writes a file with one run a line, as it comes."""
    with path.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")
    return path


def _recognises(records: Sequence[Any]) -> bool:
    return bool(records) and isinstance(records[0], dict) and "run" in records[0]


def _read(records: Iterable[Any]) -> Iterator[RecordedRun]:
    for record in records:
        number, error = record["run"], record.get("error")
        call = ToolCall(
            id=f"call_{number}",
            name="search",
            state=State.OUTPUT_ERROR if error else State.OUTPUT_AVAILABLE,
            input={"number": number},
            output=[number] if not error else "",
            error=error,
            record=CallRecord(started=0.0, seconds=record.get("seconds")),
        )
        messages = (
            Message("user", (TextPart(f"Question {number}"),)),
            Message(
                "assistant", (call, TextPart(record["text"])), metadata={"model": "m", "usage": {"inputTokens": 3}}
            ),
        )
        yield RecordedRun(
            id=f"run-{number}",
            transcript=Transcript(messages),
            title=f"Run {number}",
            began=1_700_000_000.0 + number,
            seconds=record.get("seconds"),
        )


LINES = TraceFormat("lines", "one run a line, for tests", _recognises, _read)
