"""Formats of spans: OpenTelemetry, Jaeger, Tempo, Langfuse, logfire, Phoenix and others. `SPAN_FORMATS` lists them.

otlp.py, jaeger.py, langfuse.py and span_records.py read the containers into spans; span.py arranges those of a trace as
a tree. conventions.py is the table of attributes, by which readings.py, tool_runs.py, history.py and recorded_parts.py
read them. transcripts.py and joining.py make the transcript of a trace, and runs.py the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from toolcall_nb.runs.formats.base import RecordedRun, TraceFormat
from toolcall_nb.runs.formats.spans.jaeger import is_jaeger, read_jaeger
from toolcall_nb.runs.formats.spans.langfuse import is_langfuse, read_langfuse
from toolcall_nb.runs.formats.spans.otlp import is_otlp, read_otlp
from toolcall_nb.runs.formats.spans.runs import read_runs, runs_of_file
from toolcall_nb.runs.formats.spans.span import SpanFile
from toolcall_nb.runs.formats.spans.span_records import is_span_record, read_span_records

__all__ = ["SPAN_FORMATS"]


def _format(name: str, title: str, is_known: Callable[[Any], bool], read: Callable[[Any], SpanFile]) -> TraceFormat:
    def recognises(records: Sequence[Any]) -> bool:
        return any(is_known(record) for record in records)

    runs = partial(read_runs, is_known=is_known, read=read)
    return TraceFormat(name, title, recognises, partial(runs, with_extra=True), partial(runs, with_extra=False))


def _langfuse_runs(records: Iterable[Any], *, with_extra: bool) -> Iterator[RecordedRun]:
    """Yields the runs of an export of Langfuse, whose traces are whole, so that one at a time is in memory."""
    unknown = 0
    for record in records:
        for trace in _traces(record):
            if not is_langfuse(trace):
                unknown += 1
                continue
            file = read_langfuse(trace)
            file.unknown, unknown = file.unknown + unknown, 0
            yield from runs_of_file(file, with_extra=with_extra)


def _has_langfuse(records: Sequence[Any]) -> bool:
    return any(is_langfuse(trace) for record in records for trace in _traces(record)[:5])


def _traces(record: Any) -> list[Any]:
    return record if isinstance(record, list) else [record]


SPAN_FORMATS = (
    _format("otlp", "OpenTelemetry traces as OTLP in JSON, also Tempo's (JSON or JSON lines)", is_otlp, read_otlp),
    _format("jaeger", "traces of Jaeger (JSON)", is_jaeger, read_jaeger),
    TraceFormat(
        "langfuse",
        "exports of Langfuse: traces with their observations (JSON or JSON lines)",
        _has_langfuse,
        read=partial(_langfuse_runs, with_extra=True),
        read_transcripts=partial(_langfuse_runs, with_extra=False),
    ),
    _format(
        "spans",
        "lists of spans of OpenTelemetry's SDKs, logfire, Phoenix and others (JSON or JSON lines)",
        is_span_record,
        read_span_records,
    ),
)
