"""Reads from a span what it says of a request to a model, or of a tool's run: `read_model_call`, `read_tool_run`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct, field

from toolcall_nb.core.events import MISSING, Json, Missing
from toolcall_nb.core.json_text import json_text
from toolcall_nb.core.transcript import ReasoningPart, Role, TextPart
from toolcall_nb.core.usage import RequestUsage
from toolcall_nb.traces.formats.spans import conventions
from toolcall_nb.traces.formats.spans.conventions import spread_value
from toolcall_nb.traces.formats.spans.history import HistoryReader, RecordedMessage, is_tool_definition, read_messages
from toolcall_nb.traces.formats.spans.langfuse import OBSERVATION_INPUT, usage_attributes
from toolcall_nb.traces.formats.spans.recorded_parts import RecordedPart, is_left_out, only_text, read_call
from toolcall_nb.traces.formats.spans.span import Span, SpanEvent
from toolcall_nb.traces.formats.spans.values import as_list, as_object, read_json_text, read_whole_number

__all__ = ["ModelCall", "ToolRun", "read_agent_messages", "read_error", "read_model_call", "read_tool_run"]

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


class ToolRun(Struct):
    """A tool's run. ``error`` is None for one that did not fail."""

    id: str | None
    name: str
    input: Json | Missing = MISSING
    output: Json | Missing = MISSING
    error: str | None = None
    traceback: str | None = None


# Models -------------------------------------------------------------------------------------------------------


def read_model_call(span: Span, history: HistoryReader) -> ModelCall:
    """Reads a request to a model, whose input ``history`` reads. What the span does not say stays empty."""
    given = _with_details(span)
    asked, answered = _from_events(span)
    output = _first_messages(given, conventions.OUTPUTS, "assistant") or _vercel_answer(given) or answered
    reasons = [message.finish_reason for message in output] + [_finish_reason(given)]
    return ModelCall(
        input=[*_system_prompt(given), *(_first_input(given, history) or asked)],
        output=_joined([RecordedMessage("assistant", message.parts) for message in output if message.parts]),
        usage=_usage(given),
        cut=next((_REASONS[reason] for reason in reasons if reason in _REASONS), None),
        error=read_error(span),
        tools=_tools(given),
    )


def _joined(output: list[RecordedMessage]) -> list[RecordedMessage]:
    """Returns an answer as one message if it was recorded as many, one for each delta of its stream."""
    texts = [message.parts[0].text for message in output if isinstance(message.parts[0], TextPart)]
    if len(texts) < _DELTAS or len(texts) < sum(len(message.parts) for message in output):
        return output
    return [RecordedMessage("assistant", (TextPart("".join(texts)),))]


def _with_details(span: Span) -> Mapping[str, Any]:
    """Returns the attributes, with those of the log record or event that has a request's messages."""
    details = [event for event in span.events if event.name == _DETAILS or "gen_ai.output.messages" in event.attributes]
    found: dict[str, Any] = {}
    for event in details:
        found |= event.attributes | dict(as_object(event.body))
    return {**found, **span.attributes} if found else span.attributes


def _first_input(given: Mapping[str, Any], history: HistoryReader) -> list[RecordedMessage]:
    for name in conventions.INPUTS:
        value = spread_value(given, name)
        found = [] if value is None else history.read(value)
        if any(message.parts for message in found):
            return found
    return []


def _first_messages(given: Mapping[str, Any], names: Iterable[str], role: Role) -> list[RecordedMessage]:
    for name in names:
        found = read_messages(spread_value(given, name), role)
        if any(message.parts for message in found):
            return found
    return []


def _system_prompt(given: Mapping[str, Any]) -> list[RecordedMessage]:
    return _first_messages(given, conventions.SYSTEM_PROMPTS, "system")


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


def _finish_reason(given: Mapping[str, Any]) -> str | None:
    value = next((given[name] for name in conventions.FINISH_REASONS if given.get(name)), None)
    value = read_json_text(value)
    found = value[0] if isinstance(value, list) and value else value
    return found if isinstance(found, str) else None


def _usage(given: Mapping[str, Any]) -> RequestUsage:
    if _USAGE_DETAILS in given or _COST_DETAILS in given:  # Langfuse's SDK
        details, costs = (as_object(read_json_text(given.get(name))) for name in (_USAGE_DETAILS, _COST_DETAILS))
        given = {**dict(usage_attributes(details, costs.get("total"))), **given}
    counts: dict[str, int | float] = {}
    for own, names in conventions.TOKENS.items():
        numbers = (read_whole_number(given[name]) for name in names if name in given)
        count = next((number for number in numbers if number is not None and 0 <= number < _LARGEST), None)
        if count is not None:
            counts[own] = count
    usable = counts if any(counts.values()) else {}
    return RequestUsage(usable, _cost(given), _first_text(given, conventions.MODELS) or None)


def _cost(given: Mapping[str, Any]) -> dict[str, Decimal] | None:
    for name in conventions.COSTS:
        value = given.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LARGEST:
            return {"USD": Decimal(str(value))}
    return None


def _tools(given: Mapping[str, Any]) -> list[Json]:
    for name in conventions.TOOL_DEFINITIONS:
        found = read_json_text(spread_value(given, name))
        if isinstance(found, list) and found:
            return [read_json_text(as_object(as_object(item).get("tool")).get("json_schema", item)) for item in found]
    request = as_object(read_json_text(given.get("gcp.vertex.agent.llm_request")))
    among = [as_object(item) for item in as_list(given.get(OBSERVATION_INPUT))]
    told = [item["content"] for item in among if item.get("role") == "tool" and is_tool_definition(item.get("content"))]
    return as_list(as_object(request.get("config")).get("tools")) or told


def _first_text(given: Mapping[str, Any], names: Iterable[str]) -> str:
    return next((given[name] for name in names if isinstance(given.get(name), str) and given[name]), "")


# Tools --------------------------------------------------------------------------------------------------------


def read_tool_run(span: Span) -> ToolRun:
    """Reads a tool's run."""
    given = span.attributes
    output = _first_value(given, conventions.TOOL_OUTPUTS)
    output = _event_value(span, "gen_ai.choice", "message") if output is MISSING else output
    fields = as_object(output)
    call_id = _first_text(given, conventions.CALL_IDS)
    message = as_object(fields.get("data")) or fields
    if isinstance(message.get("tool_call_id"), str):  # a message of LangChain
        call_id = call_id or message["tool_call_id"]
        output, fields = read_json_text(message.get("content")), message
    if fields == {"result": None}:  # ADK's form of a result that is no object
        output = None
    run = ToolRun(
        id=None if is_left_out(call_id) else call_id,
        name=_tool_name(span),
        input=_tool_input(span),
        output=output,
        traceback=next((_first_text(each, ("exception.stacktrace",)) for each in _exceptions(span)), None) or None,
    )
    run.error = read_error(span)
    told = _error_in(fields)
    if told and run.error in (None, "", given.get("error.type")):
        run.error = told
    return run


def _tool_name(span: Span) -> str:
    named = _first_text(span.attributes, conventions.TOOL_NAMES)
    if not named and span.attributes.get("logfire.msg_template") == "Function: {name}":
        named = span.text("name")
    beeai = span.text("target").removeprefix("tool.").rpartition(".")[0]
    return named or span.text("traceloop.entity.name") or beeai or _without_verb(span.name) or "tool"


def _without_verb(name: str) -> str:
    return next(
        (name.removeprefix(verb) for verb in ("execute_tool ", "running tool: ") if name.startswith(verb)), name
    )


def _event_value(span: Span, event_name: str, name: str) -> Json | Missing:
    """Returns the arguments or the result of a tool from an event of its span, where Strands writes them."""
    for event in span.events:
        if event.name == event_name and name in event.attributes:
            return read_json_text(only_text(read_json_text(event.attributes[name])))
    return MISSING


def _tool_input(span: Span) -> Json | Missing:
    given = span.attributes
    found = _first_value(given, conventions.TOOL_INPUTS)
    found = _event_value(span, "gen_ai.tool.message", "content") if found is MISSING else found
    fields = as_object(found)
    if set(fields) == {"input"} and isinstance(fields["input"], dict):  # LangSmith's form of a run's inputs
        return fields["input"]
    return _called_with(given) if found is MISSING else found


def _called_with(given: Mapping[str, Any]) -> Json | Missing:
    """Returns ``tool.parameters`` unless these are the tool's schema."""
    found = read_json_text(given.get("tool.parameters"))
    is_schema = isinstance(found, dict) and "type" in found and "properties" in found
    return MISSING if found is None or is_schema or not isinstance(found, dict) else dict(found)


def _first_value(given: Mapping[str, Any], names: Iterable[str]) -> Json | Missing:
    for name in names:
        if given.get(name) is not None and not is_left_out(found := read_json_text(given[name])):
            return found
    return MISSING


def _error_in(output: Mapping[str, Any]) -> str:
    """Returns the error that a result reports by itself: MCP's ``isError``, or an object that is only an error."""
    error = output.get("error")
    if len(output) == 1 and isinstance(error, str) and error:
        return error
    if output.get("isError") is True or output.get("is_error") is True or output.get("status") == "error":
        content = output.get("content")
        texts = [content] if isinstance(content, str) else [as_object(item).get("text") for item in as_list(content)]
        return "\n\n".join(text for text in texts if isinstance(text, str)) or "The tool reported an error."
    return ""


# Errors and agents --------------------------------------------------------------------------------------------


def read_error(span: Span) -> str | None:
    """Returns the error with which a span ended, which may be empty; None if it did not fail."""
    exceptions = list(_exceptions(span))
    told = _first_text(span.attributes, conventions.ERRORS)
    if span.text("langfuse.observation.level") == "ERROR":
        return span.text("langfuse.observation.status_message") or told
    failed = span.status == "error" or told or "error.type" in span.attributes
    if not failed and (not exceptions or span.status == "ok"):
        return None
    kinds = [_first_text(each, ("exception.type",)).rpartition(".")[2] for each in exceptions]
    texts = [_first_text(each, ("exception.message",)) for each in exceptions]
    for kind, text in zip(kinds, texts, strict=True):
        if text:
            return f"{kind}: {text}" if kind else text
    return span.status_message or told or next(filter(None, kinds), "") or span.text("error.type")


def _exceptions(span: Span) -> Iterator[Mapping[str, Any]]:
    return (event.attributes for event in span.events if event.name == "exception")


def read_agent_messages(span: Span) -> tuple[list[RecordedMessage], list[RecordedMessage]]:
    """Returns the messages with which an agent or a run began, and those with which it ended."""
    given = _with_details(span)
    before, after = _from_events(span)
    asked = [*_system_prompt(given), *(_first_messages(given, conventions.RUN_INPUTS, "user") or before)]
    answered = _first_messages(given, conventions.RUN_OUTPUTS, "assistant") or after
    return asked, [message for message in answered if message.role == "assistant"]
