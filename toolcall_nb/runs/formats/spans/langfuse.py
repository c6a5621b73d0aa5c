"""Langfuse's exports: a trace with its observations. What OpenTelemetry sent is in an observation's metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcall_nb.runs.formats.spans.span import Span, SpanFile
from toolcall_nb.runs.formats.spans.values import (
    as_list,
    as_object,
    read_attributes,
    read_id,
    read_json_text,
    read_time,
)

OBSERVATION_TYPE, OBSERVATION_INPUT, OBSERVATION_OUTPUT = (
    "langfuse.observation.type",
    "langfuse.observation.input",
    "langfuse.observation.output",
)

_COUNTS = {
    "gen_ai.usage.input_tokens": ("input", "promptTokens", "prompt_tokens", "input_tokens"),
    "gen_ai.usage.output_tokens": ("output", "completionTokens", "completion_tokens", "output_tokens"),
    "gen_ai.usage.total_tokens": ("total", "totalTokens", "total_tokens"),
    "gen_ai.usage.cache_read.input_tokens": ("input_cache_read", "prompt_details.cache_read", "input_cached_tokens"),
    "gen_ai.usage.reasoning.output_tokens": ("output_reasoning", "completion_details.reasoning"),
}
_OBSERVATION = frozenset(
    {
        *("id", "traceId", "parentObservationId", "type", "name", "startTime", "endTime", "level", "statusMessage"),
        *("input", "output", "metadata", "model", "usage", "usageDetails", "costDetails", "totalCost", "latency"),
        *("inputUsage", "outputUsage", "totalUsage", "inputCost", "outputCost", "createdAt", "updatedAt", "projectId"),
        *("promptTokens", "completionTokens", "totalTokens", "calculatedInputCost", "calculatedOutputCost"),
        *("calculatedTotalCost", "providedCostDetails", "modelParameters", "environment", "internalModelId"),
        *("internalModel",),
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
    about = as_object(outer.get("trace")) or {name: value for name, value in outer.items() if name != "observations"}
    observations = [as_object(item) for item in as_list(outer.get("observations"))]
    trace = read_id(about.get("id")) or next((read_id(item.get("traceId")) for item in observations), "")
    file = SpanFile(unknown=sum(not item for item in observations))
    spans = [_read_observation(item, trace) for item in observations if item]
    root = _root(about, trace, [span.parent for span in spans])
    parents = {span.parent for span in spans if span.parent}
    for span in spans:
        if span.id not in parents and _is_plain_tool(span):
            span.attributes[OBSERVATION_TYPE] = "TOOL"
        span.parent = span.parent or (root.id if root else None)
    file.spans = [*([root] if root else []), *spans]
    file.titles = {trace: str(about.get("name") or "")}
    file.extras = {trace: {name: value for name, value in about.items() if _is_worth_keeping(name, value)}}
    return file


def _is_worth_keeping(name: str, value: Any) -> bool:
    return value not in (None, "", [], {}) and name not in (
        "id",
        "name",
        "timestamp",
        "input",
        "output",
        "observations",
    )


def _root(about: Mapping[str, Any], trace: str, parents: list[str | None]) -> Span | None:
    """Returns a span for the trace, if the trace says more than the one observation without a parent."""
    if all(about.get(name) is None for name in ("input", "output")) and parents.count(None) <= 1:
        return None
    attributes = {
        OBSERVATION_INPUT: about.get("input"),
        OBSERVATION_OUTPUT: about.get("output"),
        OBSERVATION_TYPE: "TRACE",
    }
    kept = {name: read_json_text(value) for name, value in attributes.items() if value is not None}
    start = read_time(about.get("timestamp"))
    return Span(trace=trace, id=f"trace {trace}", name=str(about.get("name") or ""), start=start, attributes=kept)


def _read_observation(fields: Mapping[str, Any], trace: str) -> Span:
    metadata = as_object(read_json_text(fields.get("metadata")))
    level, message = fields.get("level"), fields.get("statusMessage")
    rest = {
        name: value for name, value in metadata.items() if name not in ("attributes", "resourceAttributes", "scope")
    }
    extra = {
        name: value for name, value in fields.items() if name not in _OBSERVATION and value not in (None, [], {}, "")
    }
    return Span(
        trace=read_id(fields.get("traceId")) or trace,
        id=read_id(fields.get("id")),
        parent=read_id(fields.get("parentObservationId")) or None,
        name=str(fields.get("name") or ""),
        start=read_time(fields.get("startTime")),
        end=read_time(fields.get("endTime")),
        status="error" if level == "ERROR" else "",
        status_message=str(message or ""),
        attributes={**read_attributes(metadata.get("attributes")), **dict(_own_attributes(fields))},
        resource=read_attributes(metadata.get("resourceAttributes")),
        scope=str(as_object(metadata.get("scope")).get("name") or ""),
        extra={**extra, **({"metadata": rest} if rest else {})},
    )


def _own_attributes(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield OBSERVATION_TYPE, str(fields.get("type") or "SPAN")
    for name, own in (("input", OBSERVATION_INPUT), ("output", OBSERVATION_OUTPUT)):
        if fields.get(name) is not None:
            yield own, read_json_text(fields[name])
    if isinstance(fields.get("model"), str):
        yield "gen_ai.request.model", fields["model"]
    if fields.get("modelParameters"):
        yield "langfuse.observation.model.parameters", fields["modelParameters"]
    counts = {name: fields[name] for name in ("promptTokens", "completionTokens", "totalTokens") if name in fields}
    usage = {**counts, **as_object(fields.get("usage")), **as_object(fields.get("usageDetails"))}
    yield from usage_attributes(usage, as_object(fields.get("costDetails")).get("total") or fields.get("totalCost"))


def usage_attributes(counts: Mapping[str, Any], cost: Any) -> Iterator[tuple[str, Any]]:
    """Yields Langfuse's counts and cost as the attributes that other exporters write."""
    for own, names in _COUNTS.items():
        count = next((counts[name] for name in names if isinstance(counts.get(name), int | float)), 0)
        if count:
            yield own, count
    if isinstance(cost, int | float) and cost:
        yield "gen_ai.usage.cost", cost


def _is_plain_tool(span: Span) -> bool:
    """Whether a span that says nothing of its kind looks like a tool: it has no children, and fields as its input.

    The SDK's decorator also records functions, with their ``args`` and ``kwargs``; a step of a graph gets ``messages``.
    """
    given, own = (
        span.attributes.get(OBSERVATION_INPUT),
        {name for name in span.attributes if not name.startswith("langfuse.")},
    )
    if span.attributes.get(OBSERVATION_TYPE) != "SPAN" or own or not isinstance(given, dict) or not given:
        return False
    return not given.keys() & {"args", "kwargs", "messages"}
