"""Reads the error with which a span ended: `read_error`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcall_nb.runs.formats.spans.conventions import ERRORS
from toolcall_nb.runs.formats.spans.span import Span
from toolcall_nb.runs.formats.spans.values import first_text

_TELLING = (*ERRORS, "langfuse.observation.level", "error.type")


def read_error(span: Span) -> str | None:
    """Returns the error with which a span ended, which may be empty; None if it did not fail."""
    exceptions = list(exceptions_in(span)) if span.events else []
    if not exceptions and span.status != "error" and span.attributes.keys().isdisjoint(_TELLING):
        return None
    told = first_text(span.attributes, ERRORS)
    if span.text("langfuse.observation.level") == "ERROR":
        return span.text("langfuse.observation.status_message") or told
    failed = span.status == "error" or told or "error.type" in span.attributes
    if not failed and (not exceptions or span.status == "ok"):
        return None
    kinds = [first_text(each, ("exception.type",)).rpartition(".")[2] for each in exceptions]
    texts = [first_text(each, ("exception.message",)) for each in exceptions]
    for kind, text in zip(kinds, texts, strict=True):
        if text:
            return f"{kind}: {text}" if kind else text
    return span.status_message or told or next(filter(None, kinds), "") or span.text("error.type")


def exceptions_in(span: Span) -> Iterator[Mapping[str, Any]]:
    """Yields the fields of the exceptions that were recorded while the span was open."""
    return (event.attributes for event in span.events if event.name == "exception")
