"""Reads the requests to models in a trace, `requests_in_tree`, and the messages of its agents, `read_agent_messages`.

`read_model_call` reads one request from its span.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct, field

from toolcall_nb.core.events import Json
from toolcall_nb.core.json_text import json_text
from toolcall_nb.core.transcript import ReasoningPart, Role, TextPart
from toolcall_nb.core.usage import RequestUsage
from toolcall_nb.runs.formats.spans import conventions
from toolcall_nb.runs.formats.spans.conventions import SpanKind, read_error, spread_value
from toolcall_nb.runs.formats.spans.history import HistoryReader, RecordedMessage, is_tool_definition, read_messages
from toolcall_nb.runs.formats.spans.langfuse import OBSERVATION_INPUT, usage_attributes
from toolcall_nb.runs.formats.spans.recorded_parts import RecordedPart, is_left_out, read_call
from toolcall_nb.runs.formats.spans.span import Span, SpanEvent, SpanTree
from toolcall_nb.runs.formats.spans.values import (
    AttributeNames,
    as_list,
    as_object,
    attribute_names,
    first_text,
    read_json_text,
    read_whole_number,
)

_LARGEST = 2**53
_REASONS = {
    **dict.fromkeys(("length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length"), "length"),
    **dict.fromkeys(("content_filter", "content-filter", "SAFETY", "refusal", "PROHIBITED_CONTENT"), "content-filter"),
    **dict.fromkeys(("error", "MALFORMED_FUNCTION_CALL", "failed"), "error"),
}
"""The reasons that are not an ordinary end, by what providers call them."""
_MESSAGE_EVENTS = tuple(f"gen_ai.{role}.message" for role in ("system", "user", "assistant", "tool"))
_DELTAS = 8  # no model answers with so many choices
_USAGE_DETAILS, _COST_DETAILS = (f"langfuse.observation.{what}_details" for what in ("usage", "cost"))
_DETAILS = "gen_ai.client.inference.operation.details"
_VERCEL = tuple(f"ai.response.{what}" for what in ("reasoning", "text", "object", "toolCalls"))
_COUNTED = {name: own for own, names in conventions.TOKENS.items() for name in names}
"""Our token counts by the attributes that report them."""
_TOKEN_NAMES = tuple(_COUNTED)
_REQUESTS = ("gcp.vertex.agent.llm_request", OBSERVATION_INPUT)
"""The attributes that hold the tools beside the rest of a request."""


class ModelCall(Struct):
    """A request to a model and its answer. ``cut`` is the reason of an end that is not ordinary."""

    input: list[RecordedMessage] = field(default_factory=list)
    output: list[RecordedMessage] = field(default_factory=list)
    usage: RequestUsage = field(default_factory=RequestUsage)
    cut: str | None = None
    error: str | None = None
    tools: list[Json] = field(default_factory=list)

    def complete(self, other: ModelCall) -> None:
        """Takes from another span of the same request what this one does not say."""
        own, outer = self.usage, other.usage
        self.usage = RequestUsage(own.usage or outer.usage, own.cost or outer.cost, own.model or outer.model)
        self.cut = self.cut or other.cut
        if self.error is None and not self.output:  # else the outer span ended with the error of something later
            self.error = other.error
        self.input, self.output = self.input or other.input, self.output or other.output
        self.tools = self.tools or other.tools


def read_model_call(span: Span, history: HistoryReader) -> ModelCall:
    """Reads a request to a model, whose input ``history`` reads. What the span does not say stays empty."""
    given = _with_details(span)
    names = attribute_names(given)
    asked, answered = _from_events(span)
    output = _first_messages(given, names[conventions.OUTPUTS], "assistant")
    output = output or (_vercel_answer(given) if names[_VERCEL] else []) or answered
    reasons = [message.finish_reason for message in output]
    if named := names[conventions.FINISH_REASONS]:
        reasons.append(_finish_reason(given, named))
    system = _first_messages(given, names[conventions.SYSTEM_PROMPTS], "system")
    return ModelCall(
        input=[*system, *(_first_input(given, names[conventions.INPUTS], history) or asked)],
        output=_joined([RecordedMessage("assistant", message.parts) for message in output if message.parts]),
        usage=_usage(given, names),
        cut=next((_REASONS[reason] for reason in reasons if reason in _REASONS), None),
        error=read_error(span),
        tools=_tools(given, names),
    )


def _joined(output: list[RecordedMessage]) -> list[RecordedMessage]:
    """Returns an answer as one message if it was recorded as many, one for each delta of its stream."""
    if len(output) < _DELTAS:
        return output
    texts = [message.parts[0].text for message in output if isinstance(message.parts[0], TextPart)]
    if len(texts) < _DELTAS or len(texts) < sum(len(message.parts) for message in output):
        return output
    return [RecordedMessage("assistant", (TextPart("".join(texts)),))]


def _with_details(span: Span) -> Mapping[str, Any]:
    """Returns the attributes, with those of the log record or event that has a request's messages."""
    if not span.events:
        return span.attributes
    details = [event for event in span.events if event.name == _DETAILS or "gen_ai.output.messages" in event.attributes]
    found: dict[str, Any] = {}
    for event in details:
        found |= event.attributes | dict(as_object(event.body))
    return {**found, **span.attributes} if found else span.attributes


def _first_input(given: Mapping[str, Any], names: Iterable[str], history: HistoryReader) -> list[RecordedMessage]:
    for name in names:
        value = spread_value(given, name)
        found = [] if value is None else history.read(value)
        if any([message.parts for message in found]):
            return found
    return []


_NOTHING = "null"
"""The JSON text of a step that returned nothing, as LangChain's middleware does."""


def _first_messages(given: Mapping[str, Any], names: Iterable[str], role: Role) -> list[RecordedMessage]:
    for name in names:
        value = spread_value(given, name)
        found = [] if value is None else read_messages(value, role)
        if any([message.parts for message in found]):
            return found
    return []


def _vercel_answer(given: Mapping[str, Any]) -> list[RecordedMessage]:
    parts: list[RecordedPart] = []
    if isinstance(text := given.get("ai.response.reasoning"), str) and text:
        parts.append(ReasoningPart(text))
    if isinstance(text := given.get("ai.response.text"), str) and not is_left_out(text):
        parts.append(TextPart(text))
    if "ai.response.object" in given:
        written = given["ai.response.object"]
        parts.append(TextPart(written if isinstance(written, str) else json_text(written)))
    calls = as_list(read_json_text(given.get("ai.response.toolCalls")))
    parts += [call for item in calls if (call := read_call(as_object(item))) is not None]
    return [RecordedMessage("assistant", tuple(parts))] if parts else []


def _from_events(span: Span) -> tuple[list[RecordedMessage], list[RecordedMessage]]:
    """Returns the messages before the answer and the answer, from a message an event.

    The events are the span's own, log records, or an attribute of logfire. An answer is a ``gen_ai.choice``, or the
    last messages of the assistant. The AWS distribution writes one event with input and output.
    """
    if not span.events and "events" not in span.attributes:
        return [], []
    events = list(_message_events(span))
    if not events:
        return _from_bodies(span.events)
    choices = [fields for name, fields in events if name == "gen_ai.choice"]
    before = [fields for name, fields in events if name != "gen_ai.choice"]
    if not choices:
        last = next((i for i in range(len(before), 0, -1) if before[i - 1]["event.name"] != _MESSAGE_EVENTS[2]), 0)
        before, choices = before[:last], before[last:]
    return read_messages(before), read_messages(choices, "assistant")


def _message_events(span: Span) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in as_list(read_json_text(span.attributes.get("events"))):
        name = as_object(item).get("event.name")
        if name in _MESSAGE_EVENTS or name == "gen_ai.choice":
            yield name, dict(item)
    for event in span.events:
        if event.name in _MESSAGE_EVENTS or event.name == "gen_ai.choice":
            body = as_object(read_json_text(event.body)) or _decoded(event.attributes)
            yield event.name, {**body, "event.name": event.name}


def _decoded(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the attributes of an event that stand for the fields of a message."""
    names = ("content", "role", "tool_calls", "message", "finish_reason", "id", "name")
    found = {name: attributes[name] for name in names if name in attributes}
    for name in ("tool_calls", "message"):
        if name in found:
            found[name] = read_json_text(found[name])
    if not isinstance(found.get("message", {}), dict):  # the content alone, as Strands writes it
        found["content"] = found.pop("message")
    return found


def _from_bodies(events: Sequence[SpanEvent]) -> tuple[list[RecordedMessage], list[RecordedMessage]]:
    for event in events:
        body = as_object(event.body)
        asked = as_object(body.get("input")).get("messages")
        answered = as_object(body.get("output")).get("messages")
        if asked or answered:
            return read_messages(asked), read_messages(answered, "assistant")
    found: list[RecordedMessage] = []
    answer: list[RecordedMessage] = []
    for event in events:
        found += read_messages(event.attributes.get("gen_ai.prompt"))
        answer += read_messages(event.attributes.get("gen_ai.completion"), "assistant")
    return found, answer


def _finish_reason(given: Mapping[str, Any], names: Iterable[str]) -> str | None:
    value = read_json_text(next((given[name] for name in names if given.get(name)), None))
    found = value[0] if isinstance(value, list) and value else value
    return found if isinstance(found, str) else None


def _usage(given: Mapping[str, Any], present: AttributeNames) -> RequestUsage:
    if _USAGE_DETAILS in given or _COST_DETAILS in given:  # Langfuse's SDK
        details, costs = (as_object(read_json_text(given.get(name))) for name in (_USAGE_DETAILS, _COST_DETAILS))
        given = {**dict(usage_attributes(details, costs.get("total"))), **given}
        present = attribute_names(given)
    counts: dict[str, int | float] = {}
    for name in present[_TOKEN_NAMES]:
        own = _COUNTED[name]
        if own not in counts:
            number = read_whole_number(given.get(name))
            if number is not None and 0 <= number < _LARGEST:
                counts[own] = number
    usable = counts if any(counts.values()) else {}
    return RequestUsage(
        usable,
        _cost(given, present[conventions.COSTS]),
        first_text(given, present[conventions.MODELS]) or None,
    )


def _cost(given: Mapping[str, Any], names: Iterable[str]) -> dict[str, Decimal] | None:
    for name in names:
        value = given.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LARGEST:
            return {"USD": Decimal(str(value))}
    return None


def _tools(given: Mapping[str, Any], names: AttributeNames) -> list[Json]:
    for name in names[conventions.TOOL_DEFINITIONS]:
        found = read_json_text(spread_value(given, name))
        if isinstance(found, list) and found:
            return [read_json_text(as_object(as_object(item).get("tool")).get("json_schema", item)) for item in found]
    if not names[_REQUESTS]:
        return []
    request = as_object(read_json_text(given.get("gcp.vertex.agent.llm_request")))
    among = [as_object(item) for item in as_list(given.get(OBSERVATION_INPUT))]
    told = [item["content"] for item in among if item.get("role") == "tool" and is_tool_definition(item.get("content"))]
    return as_list(as_object(request.get("config")).get("tools")) or told


def read_agent_messages(span: Span) -> tuple[list[RecordedMessage], list[RecordedMessage]]:
    """Returns the messages with which an agent or a run began, and those with which it ended."""
    given = _with_details(span)
    names = attribute_names(given)
    before, after = _from_events(span)
    system = _first_messages(given, names[conventions.SYSTEM_PROMPTS], "system")
    asked = [*system, *(_first_messages(given, names[conventions.RUN_INPUTS], "user") or before)]
    outputs = [name for name in names[conventions.RUN_OUTPUTS] if given.get(name) != _NOTHING]
    answered = _first_messages(given, outputs, "assistant") or after
    return asked, [message for message in answered if message.role == "assistant"]


def requests_in_tree(tree: SpanTree, kinds: list[SpanKind]) -> dict[int, ModelCall]:
    """Returns the requests to models, by the position of their spans.

    Several libraries may record the same request, each with a span inside the other's. The innermost one counts, and
    the others complete it. A span with several requests inside is no request of its own, but a loop around them.
    """
    outer: list[int | None] = []
    inner: dict[int, list[int]] = {}
    for i, parent in enumerate(tree.parents):
        around = None if parent is None or kinds[parent] in ("tool", "agent") else outer[parent]
        around = parent if parent is not None and kinds[parent] == "model" else around
        outer.append(around)
        if kinds[i] == "model" and around is not None:
            inner.setdefault(around, []).append(i)
    history = HistoryReader()
    found: dict[int, ModelCall] = {}
    base: dict[int, int] = {}
    for i in range(len(kinds) - 1, -1, -1):
        if kinds[i] != "model":
            continue
        request, within = read_model_call(tree.spans[i], history), inner.get(i, [])
        base[i] = base[within[-1]] if within else i
        if not within:
            found[i] = request
        elif len(within) == 1 or not found[base[i]].output:
            found[base[i]].complete(request)
        if len(within) > 1:
            kinds[i] = "agent"
    return found
