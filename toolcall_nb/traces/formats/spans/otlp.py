"""OTLP in JSON: requests of exporters with ``resourceSpans`` and ``resourceLogs``, and Tempo's ``batches``.

Source: opentelemetry-proto 1.9, ``trace/v1/trace.proto`` and ``logs/v1/logs.proto``. Names in snake_case, which some
exporters write, are read too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from toolcall_nb.core.events import Object
from toolcall_nb.traces.formats.spans.span import Span, SpanEvent, SpanFile
from toolcall_nb.traces.formats.spans.values import (
    as_list,
    as_object,
    read_any_value,
    read_attributes,
    read_id,
    read_time,
    read_whole_number,
)

__all__ = ["is_otlp", "read_otlp", "status_of"]

_RESOURCES = ("resourceSpans", "resource_spans", "batches", "resourceLogs", "resource_logs")
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
            for given in as_list(request.get(name)):
                resource = as_object(given)
                about = read_attributes(as_object(resource.get("resource")).get("attributes"))
                for scope in _scopes(resource):
                    _read_scope(scope, about, file)
    return file


def _requests(record: Any) -> list[Mapping[str, Any]]:
    outer = [as_object(each) for each in (record if isinstance(record, list) else [record])]
    return [
        each for request in outer for each in (request, as_object(request.get("data")), as_object(request.get("trace")))
    ]


def _scopes(resource: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for name in ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "scopeLogs", "scope_logs"):
        yield from map(as_object, as_list(resource.get(name)))


def _read_scope(scope: Mapping[str, Any], resource: Object, file: SpanFile) -> None:
    about = as_object(scope.get("scope") or scope.get("instrumentationLibrary"))
    name = about.get("name") if isinstance(about.get("name"), str) else ""
    for given in as_list(scope.get("spans")):
        span = _read_span(given, resource, str(name))
        if span is None:
            file.unknown += 1
        else:
            file.spans.append(span)
    for given in as_list(scope.get("logRecords") or scope.get("log_records")):
        record = as_object(given)
        file.logs.append((_id(record, "trace"), _id(record, "span"), _read_log(record)))


def _get(fields: Mapping[str, Any], camel: str, snake: str) -> Any:
    return fields.get(snake) if fields.get(camel) is None else fields[camel]


def _id(fields: Mapping[str, Any], what: str) -> str:
    return read_id(_get(fields, f"{what}Id", f"{what}_id"))


def _read_span(given: Any, resource: Object, scope: str) -> Span | None:
    fields = as_object(given)
    if not any(name in fields for name in ("spanId", "span_id", "name")):
        return None
    flags = read_whole_number(fields.get("flags")) or 0
    status = as_object(fields.get("status"))
    return Span(
        trace=_id(fields, "trace"),
        id=_id(fields, "span"),
        parent=read_id(_get(fields, "parentSpanId", "parent_span_id")) or None,
        name=str(fields.get("name") or ""),
        kind=_kind(fields.get("kind")),
        start=read_time(_get(fields, "startTimeUnixNano", "start_time_unix_nano"), 1),
        end=read_time(_get(fields, "endTimeUnixNano", "end_time_unix_nano"), 1),
        status=status_of(status.get("code")),
        status_message=str(status.get("message") or ""),
        attributes=read_attributes(fields.get("attributes")),
        events=[_read_event(event) for event in as_list(fields.get("events"))],
        links=as_list(fields.get("links")),
        resource=resource,
        scope=scope,
        has_remote_parent=bool(flags & _HAS_REMOTE_BITS and flags & _IS_REMOTE),
    )


def _kind(given: Any) -> str:
    if isinstance(given, str):
        return given.removeprefix("SPAN_KIND_").lower()
    return _KINDS.get(given, "") if isinstance(given, int) else ""


def status_of(code: Any) -> Literal["", "ok", "error"]:
    """Returns the status that a code stands for: a number, or the name of one in any form."""
    name = code.rpartition(".")[2].removeprefix("STATUS_CODE_").upper() if isinstance(code, str) else code
    if name in (2, "ERROR", "2"):
        return "error"
    return "ok" if name in (1, "OK", "1") and name is not True else ""


def _read_event(given: Any) -> SpanEvent:
    fields = as_object(given)
    return SpanEvent(
        name=str(fields.get("name") or ""),
        time=read_time(_get(fields, "timeUnixNano", "time_unix_nano"), 1),
        attributes=read_attributes(fields.get("attributes")),
    )


def _read_log(record: Mapping[str, Any]) -> SpanEvent:
    attributes = read_attributes(record.get("attributes"))
    named = _get(record, "eventName", "event_name") or attributes.get("event.name")
    times = [read_time(_get(record, *names), 1) for names in _LOG_TIMES]
    return SpanEvent(
        name=named if isinstance(named, str) else "",
        time=next((time for time in times if time), None),
        attributes=attributes,
        body=read_any_value(record.get("body")),
    )


_LOG_TIMES = (("timeUnixNano", "time_unix_nano"), ("observedTimeUnixNano", "observed_time_unix_nano"))
