"""Langfuse's exports: a trace with its observations. What OpenTelemetry sent is in an observation's metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcall_nb.core.events import Object
from toolcall_nb.runs.formats.spans.span import Span, SpanFile
from toolcall_nb.runs.formats.spans.values import (
    as_list,
    as_object,
    read_attributes,
    read_id,
    read_json_text,
    read_time,
)

OBSERVATION_TYPE = "langfuse.observation.type"
OBSERVATION_INPUT, OBSERVATION_OUTPUT = "langfuse.observation.input", "langfuse.observation.output"

_COUNTS = {
    "gen_ai.usage.input_tokens": ("input", "promptTokens", "prompt_tokens", "input_tokens"),
    "gen_ai.usage.output_tokens": ("output", "completionTokens", "completion_tokens", "output_tokens"),
    "gen_ai.usage.total_tokens": ("total", "totalTokens", "total_tokens"),
    "gen_ai.usage.cache_read.input_tokens": ("input_cache_read", "prompt_details.cache_read", "input_cached_tokens"),
    "gen_ai.usage.reasoning.output_tokens": ("output_reasoning", "completion_details.reasoning"),
}
_TRACE = ("id", "name", "timestamp", "input", "output", "observations")
_METADATA = ("attributes", "resourceAttributes", "scope")
_OBSERVATION = frozenset(
    {
        *("id", "traceId", "parentObservationId", "type", "name", "startTime", "endTime", "level", "statusMessage"),
        *("input", "output", "metadata", "model", "usage", "usageDetails", "costDetails", "totalCost", "latency"),
        *("inputUsage", "outputUsage", "totalUsage", "inputCost", "outputCost", "createdAt", "updatedAt", "projectId"),
        *("promptTokens", "completionTokens", "totalTokens", "calculatedInputCost", "calculatedOutputCost"),
        *("calculatedTotalCost", "providedCostDetails", "modelParameters", "environment", "internalModelId"),
        "internalModel",
    }
)


def is_langfuse(record: Any) -> bool:
    """Whether a record is a trace of Langfuse with its observations."""
    outer = as_object(record)
    observations = [as_object(item) for item in as_list(outer.get("observations"))]
    if isinstance(outer.get("trace"), dict) and "observations" in outer:
        return True
    return bool(outer.get("id")) and "observations" in outer and all("type" in item for item in observations[:3])


def read_langfuse(record: Any) -> SpanFile:
    """Reads a trace. The trace itself becomes the root of its observations that have no parent."""
    outer = as_object(record)
    fields = as_object(outer.get("trace")) or {name: value for name, value in outer.items() if name != "observations"}
    observations = [as_object(item) for item in as_list(outer.get("observations"))]
    trace = read_id(fields.get("id")) or next((read_id(item.get("traceId")) for item in observations), "")
    file = SpanFile(unknown=sum(not item for item in observations))
    spans = [_read_observation(item, trace) for item in observations if item]
    root = _root(fields, trace, [span.parent for span in spans])
    parents = {span.parent for span in spans if span.parent}
    for span in spans:
        if span.id not in parents and _is_plain_tool(span):
            span.attributes[OBSERVATION_TYPE] = "TOOL"
        span.parent = span.parent or (root.id if root else None)
    file.spans = [*([root] if root else []), *spans]
    file.titles = {trace: str(fields.get("name") or "")}
    file.extras = {trace: _not_empty({name: value for name, value in fields.items() if name not in _TRACE})}
    return file


def _not_empty(fields: Mapping[str, Any]) -> Object:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def _root(fields: Mapping[str, Any], trace: str, parents: list[str | None]) -> Span | None:
    """Returns a span for the trace, if the trace says more than the one observation without a parent."""
    if fields.get("input") is None and fields.get("output") is None and parents.count(None) <= 1:
        return None
    return Span(
        trace=trace,
        id=f"trace {trace}",
        name=str(fields.get("name") or ""),
        start=read_time(fields.get("timestamp")),
        attributes={**_content(fields), OBSERVATION_TYPE: "TRACE"},
    )


def _content(fields: Mapping[str, Any]) -> Object:
    """Returns the input and the output of a trace or an observation as attributes."""
    names = ((OBSERVATION_INPUT, "input"), (OBSERVATION_OUTPUT, "output"))
    return {attribute: read_json_text(fields[name]) for attribute, name in names if fields.get(name) is not None}


def _read_observation(fields: Mapping[str, Any], trace: str) -> Span:
    metadata = as_object(read_json_text(fields.get("metadata")))
    level, message = fields.get("level"), fields.get("statusMessage")
    extra = _not_empty({name: value for name, value in fields.items() if name not in _OBSERVATION})
    if unread := {name: value for name, value in metadata.items() if name not in _METADATA}:
        extra["metadata"] = unread
    return Span(
        trace=read_id(fields.get("traceId")) or trace,
        id=read_id(fields.get("id")),
        parent=read_id(fields.get("parentObservationId")) or None,
        name=str(fields.get("name") or ""),
        start=read_time(fields.get("startTime")),
        end=read_time(fields.get("endTime")),
        status="error" if level == "ERROR" else "",
        status_message=str(message or ""),
        attributes={**read_attributes(metadata.get("attributes")), **dict(_observation_attributes(fields))},
        resource=read_attributes(metadata.get("resourceAttributes")),
        scope=str(as_object(metadata.get("scope")).get("name") or ""),
        extra=extra,
    )


def _observation_attributes(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield OBSERVATION_TYPE, str(fields.get("type") or "SPAN")
    yield from _content(fields).items()
    if isinstance(fields.get("model"), str):
        yield "gen_ai.request.model", fields["model"]
    if fields.get("modelParameters"):
        yield "langfuse.observation.model.parameters", fields["modelParameters"]
    counts = {name: fields[name] for name in ("promptTokens", "completionTokens", "totalTokens") if name in fields}
    usage = {**counts, **as_object(fields.get("usage")), **as_object(fields.get("usageDetails"))}
    yield from usage_attributes(usage, as_object(fields.get("costDetails")).get("total") or fields.get("totalCost"))


def usage_attributes(counts: Mapping[str, Any], cost: Any) -> Iterator[tuple[str, Any]]:
    """Yields Langfuse's counts and cost as the attributes that other exporters write."""
    for attribute, names in _COUNTS.items():
        if count := next((counts[name] for name in names if isinstance(counts.get(name), int | float)), 0):
            yield attribute, count
    if isinstance(cost, int | float) and cost:
        yield "gen_ai.usage.cost", cost


def _is_plain_tool(span: Span) -> bool:
    """Whether a span that says nothing of its kind looks like a tool: it has no children, and fields as its input.

    The SDK's decorator also records functions, with their ``args`` and ``kwargs``; a step of a graph gets ``messages``.
    """
    if span.attributes.get(OBSERVATION_TYPE) != "SPAN":
        return False
    arguments = as_object(span.attributes.get(OBSERVATION_INPUT))
    has_others = any(not name.startswith("langfuse.") for name in span.attributes)
    return not has_others and bool(arguments) and arguments.keys().isdisjoint(("args", "kwargs", "messages"))
