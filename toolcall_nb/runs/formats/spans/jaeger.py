"""Jaeger's JSON, as its API and its page export it: ``data[].spans[]`` with tags, logs, references and processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.core.events import Json, Object
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
        for given in as_list(trace.get("spans")):
            fields = as_object(given)
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
        parent=_parent_of(fields) or None,
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


def _parent_of(fields: Mapping[str, Any]) -> str:
    references = [as_object(reference) for reference in as_list(fields.get("references"))]
    children = [each for each in references if each.get("refType", "CHILD_OF") == "CHILD_OF"]
    return read_id(children[0].get("spanID") if children else fields.get("parentSpanID"))


def _read_tags(given: Any) -> Object:
    tags = [as_object(tag) for tag in as_list(given)]
    return {str(tag["key"]): _read_tag(tag) for tag in tags if "key" in tag}


def _read_tag(tag: Mapping[str, Any]) -> Json:
    value = tag.get("value")
    if tag.get("type") == "int64":  # a string in JavaScript, whose numbers are too small for it
        number = read_whole_number(value)
        return value if number is None else number
    return value


def _read_log(given: Any) -> SpanEvent:
    log = as_object(given)
    fields = _read_tags(log.get("fields"))
    name = fields.pop("event", fields.pop("name", ""))
    return SpanEvent(name=str(name), time=read_time(log.get("timestamp"), _MICROSECOND), attributes=fields)
