"""Reads files of spans in the tests, and makes requests of OTLP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from toolcall_nb.core.transcript import TextPart, Transcript
from toolcall_nb.runs.formats.base import RecordedRun
from toolcall_nb.runs.formats.spans import SPAN_FORMATS

__all__ = ["attribute", "otlp", "read_records", "read_span_file", "span", "told"]


def read_span_file(path: Path) -> list[RecordedRun]:
    """The runs of a JSON file, or of one of JSON lines whose broken lines are left out."""
    text = path.read_text("utf-8")
    if path.suffix != ".jsonl":
        return read_records([json.loads(text)])
    return read_records([json.loads(line) for line in text.splitlines() if line.startswith("{")])


def read_records(records: list[Any]) -> list[RecordedRun]:
    """The runs in records, by the format that recognises them."""
    found = next(each for each in SPAN_FORMATS if each.recognises(records[:20]))
    return list(found.read(records))


def told(transcript: Transcript) -> list[Any]:
    """The transcript in short: role and text of each text part, and name, input, state and output of each call."""
    found: list[Any] = []
    for message in transcript.messages:
        for part in message.parts:
            if isinstance(part, TextPart):
                found.append((message.role, part.text))
        found += [(call.name, call.input, call.state.value, call.output) for call in message.calls]
    return found


def attribute(name: str, value: Any) -> dict[str, Any]:
    """An attribute in OTLP's form."""
    kinds = {str: "stringValue", bool: "boolValue", int: "intValue", float: "doubleValue"}
    if isinstance(value, list):
        return {"key": name, "value": {"arrayValue": {"values": [attribute("", item)["value"] for item in value]}}}
    return {"key": name, "value": {kinds[type(value)]: str(value) if type(value) is int else value}}


def span(span_id: str, name: str, start: float = 0, end: float = 1, parent: str = "", **rest: Any) -> dict[str, Any]:
    """A span in OTLP's form, of the trace ``1``; times are in seconds, and ``attributes`` is an object."""
    attributes = rest.pop("attributes", {})
    return {
        "traceId": "1",
        "spanId": span_id,
        "parentSpanId": parent,
        "name": name,
        "startTimeUnixNano": str(int((1000 + start) * 10**9)),
        "endTimeUnixNano": str(int((1000 + end) * 10**9)),
        "attributes": [attribute(key, value) for key, value in attributes.items()],
        **rest,
    }


def otlp(*spans: dict[str, Any], logs: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """An OTLP request."""
    scope = {"name": "test"}
    request: dict[str, Any] = {"resourceSpans": [{"scopeSpans": [{"scope": scope, "spans": list(spans)}]}]}
    return request | ({"resourceLogs": [{"scopeLogs": [{"scope": scope, "logRecords": logs}]}]} if logs else {})
