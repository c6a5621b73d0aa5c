"""Jaeger's JSON, as its API and its page export it: ``data[].spans[]`` with tags, logs, references and processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.core.events import Object
from toolcall_nb.runs.formats.spans.otlp import status_of
from toolcall_nb.runs.formats.spans.span import Span, SpanEvent, SpanFile
from toolcall_nb.runs.formats.spans.values import as_list, as_object, read_id, read_time, read_whole_number

_MICROSECOND = 1000


def is_jaeger(record: Any) -> bool:
    """Whether a record is an export of Jaeger: one trace, or several in ``data``."""
    return any("spanID" in as_object(span) for trace in _traces(record) for span in as_list(trace.get("spans"))[:3])


def read_jaeger(record: Any) -> SpanFile:
    """Reads all traces of an export."""
    file = SpanFile()
    for trace in _traces(record):
        processes = as_object(trace.get("processes"))
        for fields in map(as_object, as_list(trace.get("spans"))):
            if "spanID" not in fields:
                file.unknown += 1
                continue
            file.spans.append(_read_span(fields, read_id(trace.get("traceID")), processes))
    return file


def _traces(record: Any) -> list[Mapping[str, Any]]:
    outer = as_object(record)
    return [as_object(trace) for trace in as_list(outer.get("data"))] or [outer]


def _read_span(fields: Mapping[str, Any], trace: str, processes: Mapping[str, Any]) -> Span:
    tags = _read_tags(fields.get("tags"))
    references = map(as_object, as_list(fields.get("references")))
    parents = [each for each in references if each.get("refType", "CHILD_OF") == "CHILD_OF"]
    process = as_object(processes.get(str(fields.get("processID")), fields.get("process")))
    start, duration = read_time(fields.get("startTime"), _MICROSECOND), read_whole_number(fields.get("duration"))
    has_length = start is not None and duration is not None and duration >= 0
    failed = tags.pop("error", None) is True
    code, message, kind = tags.pop("otel.status_code", ""), tags.pop("otel.status_description", ""), ""
    if isinstance(tags.get("span.kind"), str):
        kind = tags.pop("span.kind")
    return Span(
        trace=read_id(fields.get("traceID")) or trace,
        id=read_id(fields.get("spanID")),
        parent=read_id(parents[0].get("spanID") if parents else fields.get("parentSpanID")) or None,
        name=str(fields.get("operationName") or ""),
        kind=kind,
        start=start,
        end=read_time((start or 0) + (duration or 0) * _MICROSECOND, 1) if has_length else None,
        status="error" if failed else status_of(code),
        status_message=str(message or ""),
        attributes=tags,
        events=[_read_log(log) for log in as_list(fields.get("logs"))],
        resource={"service.name": process.get("serviceName"), **_read_tags(process.get("tags"))} if process else {},
        scope=str(tags.pop("otel.scope.name", "")),
    )


def _read_tags(items: Any) -> Object:
    tags: Object = {}
    for tag in map(as_object, as_list(items)):
        if "key" in tag:
            value = tag.get("value")
            # an int64 is a string in JavaScript, whose numbers are too small for it
            number = read_whole_number(value) if tag.get("type") == "int64" else None
            tags[str(tag["key"])] = value if number is None else number
    return tags


def _read_log(item: Any) -> SpanEvent:
    log = as_object(item)
    fields = _read_tags(log.get("fields"))
    name = fields.pop("event", fields.pop("name", ""))
    return SpanEvent(name=str(name), time=read_time(log.get("timestamp"), _MICROSECOND), attributes=fields)
