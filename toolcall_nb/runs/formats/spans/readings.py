"""Reads the requests to models in a trace, `requests_in_tree`, and the messages of its agents, `read_agent_messages`.

`read_model_call` reads one request from its span.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from msgspec import Struct, field

from toolcall_nb.core.events import Json
from toolcall_nb.core.json_text import json_text
from toolcall_nb.core.transcript import ReasoningPart, TextPart
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
    "limit": "limit",
}
"""The reasons that are not an ordinary end, by what providers call them."""
_CHOICE, _BY_ASSISTANT = "gen_ai.choice", "gen_ai.assistant.message"
_MESSAGE_EVENTS = ("gen_ai.system.message", "gen_ai.user.message", _BY_ASSISTANT, "gen_ai.tool.message", _CHOICE)
_DELTAS = 8  # no model answers with so many choices
_USAGE_DETAILS, _COST_DETAILS = (f"langfuse.observation.{what}_details" for what in ("usage", "cost"))
_DETAILS = "gen_ai.client.inference.operation.details"
_VERCEL = tuple(f"ai.response.{what}" for what in ("reasoning", "text", "object", "toolCalls"))
_COUNTED = {name: count for count, names in conventions.TOKENS.items() for name in names}
"""Our token counts by the attributes that report them."""
_TOKEN_NAMES = tuple(_COUNTED)
_REQUESTS = ("gcp.vertex.agent.llm_request", OBSERVATION_INPUT)
"""The attributes that hold the tools beside the rest of a request."""

_read_system, _read_answer = partial(read_messages, role="system"), partial(read_messages, role="assistant")


class ModelCall(Struct):
    """A request to a model and its answer. ``cut`` is the reason of an end that is not ordinary."""

    input: list[RecordedMessage] = field(default_factory=list)
    output: list[RecordedMessage] = field(default_factory=list)
    usage: RequestUsage = field(default_factory=RequestUsage)
    cut: str | None = None
    response_id: str | None = None
    error: str | None = None
    tools: list[Json] = field(default_factory=list)

    def complete(self, other: ModelCall) -> None:
        """Takes from another span of the same request what this one does not say."""
        usage, outer = self.usage, other.usage
        self.usage = RequestUsage(usage.usage or outer.usage, usage.cost or outer.cost, usage.model or outer.model)
        self.cut, self.response_id = self.cut or other.cut, self.response_id or other.response_id
        if self.error is None and not self.output:  # else the outer span ended with the error of something later
            self.error = other.error
        self.input, self.output = self.input or other.input, self.output or other.output
        self.tools = self.tools or other.tools


def read_model_call(span: Span, history: HistoryReader) -> ModelCall:
    """Reads a request to a model, whose input ``history`` reads. What the span does not say stays empty."""
    attributes = _with_details(span)
    names = attribute_names(attributes)
    event_input, event_output = _from_events(span)
    output = _first_messages(attributes, names[conventions.OUTPUTS], _read_answer)
    output = output or (_vercel_answer(attributes) if names[_VERCEL] else []) or event_output
    system = _first_messages(attributes, names[conventions.SYSTEM_PROMPTS], _read_system)
    return ModelCall(
        input=[*system, *(_first_messages(attributes, names[conventions.INPUTS], history.read) or event_input)],
        output=_joined([RecordedMessage("assistant", message.parts) for message in output if message.parts]),
        usage=_usage(attributes, names),
        cut=read_cut(attributes, output),
        response_id=first_text(attributes, conventions.RESPONSE_IDS) or None,
        error=read_error(span),
        tools=_tools(attributes, names),
    )


def read_cut(attributes: Mapping[str, Any], output: Iterable[RecordedMessage] = ()) -> str | None:
    """Returns the reason why an answer or a run ended; None for an ordinary end."""
    reason_names = attribute_names(attributes)[conventions.FINISH_REASONS]
    reason = read_json_text(next((attributes[name] for name in reason_names if attributes.get(name)), None))
    reasons = [
        *(message.finish_reason for message in output),
        reason[0] if isinstance(reason, list) and reason else reason,
    ]
    return next((_REASONS[each] for each in reasons if isinstance(each, str) and each in _REASONS), None)


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
    details: dict[str, Any] = {}
    for event in span.events:
        if event.name == _DETAILS or "gen_ai.output.messages" in event.attributes:
            details |= event.attributes | dict(as_object(event.body))
    return {**details, **span.attributes} if details else span.attributes


def _first_messages(
    attributes: Mapping[str, Any], names: Iterable[str], read: Callable[[Any], list[RecordedMessage]]
) -> list[RecordedMessage]:
    """Returns the messages in the first of the attributes that has any."""
    for name in names:
        value = spread_value(attributes, name)
        messages = [] if value is None else read(value)
        if any([message.parts for message in messages]):
            return messages
    return []


def _vercel_answer(attributes: Mapping[str, Any]) -> list[RecordedMessage]:
    parts: list[RecordedPart] = []
    if isinstance(text := attributes.get("ai.response.reasoning"), str) and text:
        parts.append(ReasoningPart(text))
    if isinstance(text := attributes.get("ai.response.text"), str) and not is_left_out(text):
        parts.append(TextPart(text))
    if "ai.response.object" in attributes:
        value = attributes["ai.response.object"]
        parts.append(TextPart(value if isinstance(value, str) else json_text(value)))
    calls = as_list(read_json_text(attributes.get("ai.response.toolCalls")))
    parts += [call for item in calls if (call := read_call(as_object(item))) is not None]
    return [RecordedMessage("assistant", tuple(parts))] if parts else []


def _from_events(span: Span) -> tuple[list[RecordedMessage], list[RecordedMessage]]:
    """Returns the messages before the answer and the answer, from events with a message each.

    The events are the span's own, log records, or an attribute of logfire. An answer is a ``gen_ai.choice``, or the
    last messages of the assistant. The AWS distribution writes one event with input and output.
    """
    if not span.events and "events" not in span.attributes:
        return [], []
    events = list(_message_events(span))
    if not events:
        return _from_bodies(span.events)
    choices = [fields for fields in events if fields["event.name"] == _CHOICE]
    before = [fields for fields in events if fields["event.name"] != _CHOICE]
    if not choices:
        last = next((i for i in range(len(before), 0, -1) if before[i - 1]["event.name"] != _BY_ASSISTANT), 0)
        before, choices = before[:last], before[last:]
    return read_messages(before), read_messages(choices, "assistant")


def _message_events(span: Span) -> Iterator[Mapping[str, Any]]:
    for item in as_list(read_json_text(span.attributes.get("events"))):
        if as_object(item).get("event.name") in _MESSAGE_EVENTS:
            yield item
    for event in span.events:
        if event.name in _MESSAGE_EVENTS:
            body = as_object(read_json_text(event.body)) or _decoded(event.attributes)
            yield {**body, "event.name": event.name}


def _decoded(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the attributes of an event that stand for the fields of a message."""
    names = ("content", "role", "tool_calls", "message", "finish_reason", "id", "name")
    fields = {name: attributes[name] for name in names if name in attributes}
    for name in ("tool_calls", "message"):
        if name in fields:
            fields[name] = read_json_text(fields[name])
    if not isinstance(fields.get("message", {}), dict):  # the content alone, as Strands writes it
        fields["content"] = fields.pop("message")
    return fields


def _from_bodies(events: Sequence[SpanEvent]) -> tuple[list[RecordedMessage], list[RecordedMessage]]:
    for event in events:
        body = as_object(event.body)
        inputs, outputs = (as_object(body.get(name)).get("messages") for name in ("input", "output"))
        if inputs or outputs:
            return read_messages(inputs), read_messages(outputs, "assistant")
    before: list[RecordedMessage] = []
    answer: list[RecordedMessage] = []
    for event in events:
        before += read_messages(event.attributes.get("gen_ai.prompt"))
        answer += read_messages(event.attributes.get("gen_ai.completion"), "assistant")
    return before, answer


def _usage(attributes: Mapping[str, Any], names: AttributeNames) -> RequestUsage:
    if _USAGE_DETAILS in attributes or _COST_DETAILS in attributes:  # Langfuse's SDK
        details, costs = (as_object(read_json_text(attributes.get(name))) for name in (_USAGE_DETAILS, _COST_DETAILS))
        attributes = {**dict(usage_attributes(details, costs.get("total"))), **attributes}
        names = attribute_names(attributes)
    counts: dict[str, int | float] = {}
    for name in names[_TOKEN_NAMES]:
        if _COUNTED[name] not in counts:
            number = read_whole_number(attributes.get(name))
            if number is not None and 0 <= number < _LARGEST:
                counts[_COUNTED[name]] = number
    return RequestUsage(
        counts if any(counts.values()) else {},
        _cost(attributes, names[conventions.COSTS]),
        first_text(attributes, names[conventions.MODELS]) or None,
    )


def _cost(attributes: Mapping[str, Any], names: Iterable[str]) -> dict[str, Decimal] | None:
    for name in names:
        value = attributes.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LARGEST:
            return {"USD": Decimal(str(value))}
    return None


def _tools(attributes: Mapping[str, Any], names: AttributeNames) -> list[Json]:
    for name in names[conventions.TOOL_DEFINITIONS]:
        tools = read_json_text(spread_value(attributes, name))
        if isinstance(tools, list) and tools:
            return [read_json_text(as_object(as_object(item).get("tool")).get("json_schema", item)) for item in tools]
    if not names[_REQUESTS]:
        return []
    request = as_object(read_json_text(attributes.get("gcp.vertex.agent.llm_request")))
    messages = [as_object(item) for item in as_list(attributes.get(OBSERVATION_INPUT))]
    contents = [message.get("content") for message in messages if message.get("role") == "tool"]
    return as_list(as_object(request.get("config")).get("tools")) or list(filter(is_tool_definition, contents))


def read_agent_messages(span: Span) -> tuple[list[RecordedMessage], list[RecordedMessage]]:
    """Returns the messages with which an agent or a run began, and those with which it ended."""
    attributes = _with_details(span)
    names = attribute_names(attributes)
    before, after = _from_events(span)
    system = _first_messages(attributes, names[conventions.SYSTEM_PROMPTS], _read_system)
    inputs = [*system, *(_first_messages(attributes, names[conventions.RUN_INPUTS], read_messages) or before)]
    # LangChain's middleware writes "null" for a step that returned nothing
    output_names = [name for name in names[conventions.RUN_OUTPUTS] if attributes.get(name) != "null"]
    outputs = _first_messages(attributes, output_names, _read_answer) or after
    return inputs, [message for message in outputs if message.role == "assistant"]


def requests_in_tree(tree: SpanTree, kinds: list[SpanKind]) -> dict[int, ModelCall]:
    """Returns the requests to models, by the position of their spans.

    Several libraries may record the same request, each with a span inside the other's. The innermost one counts, and
    the others complete it. A span with several requests inside is no request of its own, but a loop around them.
    """
    outer: list[int | None] = []
    inner: dict[int, list[int]] = {}
    for i, parent in enumerate(tree.parents):
        around = None if parent is None or kinds[parent] == "tool" else outer[parent]
        around = parent if parent is not None and kinds[parent] == "model" else around
        outer.append(around)
        if kinds[i] == "model" and around is not None:
            inner.setdefault(around, []).append(i)
    history = HistoryReader()
    requests: dict[int, ModelCall] = {}
    base: dict[int, int] = {}
    for i in range(len(kinds) - 1, -1, -1):
        if kinds[i] != "model":
            continue
        request, within = read_model_call(tree.spans[i], history), inner.get(i, [])
        base[i] = base[within[-1]] if within else i
        if not within:
            requests[i] = request
        elif len(within) == 1 or not requests[base[i]].output:
            requests[base[i]].complete(request)
        if len(within) > 1:
            kinds[i] = "agent"
    for i in _repeated_requests(tree, [i for i in inner if len(inner[i]) > 1], requests):
        del requests[i]
        kinds[i] = "agent"
    return requests


def _repeated_requests(tree: SpanTree, loops: Iterable[int], requests: Iterable[int]) -> list[int]:
    """Returns the requests that repeat one inside of a loop beside them, as a chat reports each step of an agent.

    A loop's span then ends with its first step, and the spans inside of it go on.
    """
    ends = [span.end or 0 for span in tree.spans]
    for i in range(len(ends) - 1, -1, -1):
        if (parent := tree.parents[i]) is not None:
            ends[parent] = max(ends[parent], ends[i])
    going_on: dict[int | None, tuple[int, int]] = {}
    repeated: list[int] = []
    for i in sorted({*loops, *requests}):
        span, parent = tree.spans[i], tree.parents[i]
        begin, end = going_on.get(parent, (0, 0))
        if i not in requests:
            going_on[parent] = span.end or 0, ends[i]
        elif begin <= (span.start or 0) < end:
            repeated.append(i)
    return repeated
