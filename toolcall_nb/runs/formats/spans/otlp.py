"""OTLP in JSON: requests of exporters with ``resourceSpans`` and ``resourceLogs``, and Tempo's ``batches``.

Source: opentelemetry-proto 1.9, ``trace/v1/trace.proto`` and ``logs/v1/logs.proto``. Names in snake_case, which some
exporters write, are read too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from toolcall_nb.core.events import Object
from toolcall_nb.runs.formats.spans.span import Span, SpanEvent, SpanFile
from toolcall_nb.runs.formats.spans.values import (
    as_list,
    as_object,
    read_any_value,
    read_attributes,
    read_id,
    read_time,
    read_whole_number,
)

_RESOURCES = ("resourceSpans", "resource_spans", "batches", "resourceLogs", "resource_logs")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "scopeLogs", "scope_logs")
_KINDS = {1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}
_HAS_REMOTE_BITS, _IS_REMOTE = 0x100, 0x200


def is_otlp(record: Any) -> bool:
    """Whether a record is an OTLP request or a Tempo trace, perhaps in a list, or inside ``data`` or ``trace``."""
    return any(isinstance(request.get(name), list) for request in _requests(record) for name in _RESOURCES)


def read_otlp(record: Any) -> SpanFile:
    """Reads the spans and log records of a request."""
    file = SpanFile()
    for request in _requests(record):
        for name in _RESOURCES:
            for group in map(as_object, as_list(request.get(name))):
                resource = read_attributes(as_object(group.get("resource")).get("attributes"))
                for scope_name in _SCOPES:
                    for scope in map(as_object, as_list(group.get(scope_name))):
                        _read_scope(scope, resource, file)
    return file


def _requests(record: Any) -> list[Mapping[str, Any]]:
    outer = [as_object(each) for each in (record if isinstance(record, list) else [record])]
    return [
        each for request in outer for each in (request, as_object(request.get("data")), as_object(request.get("trace")))
    ]


def _read_scope(scope: Mapping[str, Any], resource: Object, file: SpanFile) -> None:
    name = as_object(scope.get("scope") or scope.get("instrumentationLibrary")).get("name")
    for item in as_list(scope.get("spans")):
        fields = _fields(item)
        if "spanId" not in fields and "name" not in fields:
            file.unknown += 1
        else:
            file.spans.append(_read_span(fields, resource, name if isinstance(name, str) else ""))
    for item in as_list(scope.get("logRecords") or scope.get("log_records")):
        record = _fields(item)
        file.logs.append((read_id(record.get("traceId")), read_id(record.get("spanId")), _read_log(record)))


def _fields(item: Any) -> Mapping[str, Any]:
    """Returns the fields of an object under their names in camelCase."""
    fields = as_object(item)
    if "_" not in "".join(fields):  # most objects have none
        return fields
    snake = [name for name in fields if "_" in name]
    renamed = {_UNDERSCORE.sub(lambda match: match[1].upper(), name): fields[name] for name in snake}
    return renamed | {name: value for name, value in fields.items() if value is not None}


_UNDERSCORE = re.compile("_([a-z])")


def _read_span(fields: Mapping[str, Any], resource: Object, scope: str) -> Span:
    get = fields.get
    flags = read_whole_number(get("flags")) or 0
    status = as_object(get("status"))
    return Span(
        trace=read_id(get("traceId")),
        id=read_id(get("spanId")),
        parent=read_id(get("parentSpanId")) or None,
        name=str(get("name") or ""),
        kind=_kind(get("kind")),
        start=read_time(get("startTimeUnixNano"), 1),
        end=read_time(get("endTimeUnixNano"), 1),
        status=status_of(status.get("code")) if status else "",
        status_message=str(status.get("message") or ""),
        attributes=read_attributes(get("attributes")),
        events=[_read_event(event) for event in as_list(get("events"))],
        links=as_list(get("links")),
        resource=resource,
        scope=scope,
        has_remote_parent=bool(flags & _HAS_REMOTE_BITS and flags & _IS_REMOTE),
    )


def _kind(kind: Any) -> str:
    if isinstance(kind, str):
        return kind.removeprefix("SPAN_KIND_").lower()
    return _KINDS.get(kind, "") if isinstance(kind, int) else ""


def status_of(code: Any) -> Literal["", "ok", "error"]:
    """Returns the status that a code stands for: a number, or the name of one in any form."""
    name = code.rpartition(".")[2].removeprefix("STATUS_CODE_").upper() if isinstance(code, str) else code
    if name in (2, "ERROR", "2"):
        return "error"
    return "ok" if name in (1, "OK", "1") and name is not True else ""


def _read_event(item: Any) -> SpanEvent:
    fields = _fields(item)
    return SpanEvent(
        name=str(fields.get("name") or ""),
        time=read_time(fields.get("timeUnixNano"), 1),
        attributes=read_attributes(fields.get("attributes")),
    )


def _read_log(record: Mapping[str, Any]) -> SpanEvent:
    attributes = read_attributes(record.get("attributes"))
    named = record.get("eventName") or attributes.get("event.name")
    times = [read_time(record.get(name), 1) for name in ("timeUnixNano", "observedTimeUnixNano")]
    return SpanEvent(
        name=named if isinstance(named, str) else "",
        time=next((time for time in times if time), None),
        attributes=attributes,
        body=read_any_value(record.get("body")),
    )
