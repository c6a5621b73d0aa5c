"""Reads from a span what it says of a tool's run: `read_tool_run`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from toolcall_nb.core.events import MISSING, Json, Missing
from toolcall_nb.runs.formats.spans import conventions
from toolcall_nb.runs.formats.spans.conventions import exceptions_in, read_error
from toolcall_nb.runs.formats.spans.recorded_parts import is_left_out, only_text
from toolcall_nb.runs.formats.spans.span import Span
from toolcall_nb.runs.formats.spans.values import (
    AttributeNames,
    as_list,
    as_object,
    attribute_names,
    first_text,
    read_json_text,
)


class ToolRun(Struct):
    """A tool's run. ``error`` is None for one that did not fail."""

    id: str | None
    name: str
    input: Json | Missing = MISSING
    output: Json | Missing = MISSING
    error: str | None = None
    traceback: str | None = None


def read_tool_run(span: Span) -> ToolRun:
    """Reads a tool's run."""
    given = span.attributes
    names = attribute_names(given)
    output = _first_value(given, names[conventions.TOOL_OUTPUTS])
    output = _event_value(span, "gen_ai.choice", "message") if output is MISSING else output
    output = _unwrapped_output(output, is_langsmith="langsmith.span.kind" in given)
    fields = as_object(output)
    call_id = first_text(given, conventions.CALL_IDS)
    message = as_object(fields.get("data")) or as_object(fields.get("kwargs")) or fields
    if isinstance(message.get("tool_call_id"), str):  # a message of LangChain
        call_id = call_id or message["tool_call_id"]
        output, fields = read_json_text(message.get("content")), message
    if fields == {"result": None}:  # ADK's form of a result that is no object
        output = None
    run = ToolRun(
        id=None if is_left_out(call_id) else call_id,
        name=_tool_name(span),
        input=_tool_input(span, names),
        output=output,
        error=read_error(span),
    )
    if span.events:
        run.traceback = next((first_text(each, ("exception.stacktrace",)) for each in exceptions_in(span)), "") or None
    told = _error_in(fields)
    if told and run.error in (None, "", given.get("error.type")):
        run.error = told
    return run


def _unwrapped_output(output: Json | Missing, *, is_langsmith: bool) -> Json | Missing:
    """Returns the result in what OpenLLMetry and LangSmith record of a tool of LangChain."""
    fields = as_object(output)
    if fields.keys() == {"output", "kwargs"} or (is_langsmith and fields.keys() == {"output"}):
        return read_json_text(fields["output"])
    return output


def _tool_name(span: Span) -> str:
    named = first_text(span.attributes, conventions.TOOL_NAMES)
    if not named and span.attributes.get("logfire.msg_template") == "Function: {name}":
        named = span.text("name")
    named = named or span.text("traceloop.entity.name")
    named = named or span.text("target").removeprefix("tool.").rpartition(".")[0]  # BeeAI's
    return named or _without_verb(span.name) or "tool"


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


def _tool_input(span: Span, names: AttributeNames) -> Json | Missing:
    given = span.attributes
    found = _first_value(given, names[conventions.TOOL_INPUTS])
    found = _event_value(span, "gen_ai.tool.message", "content") if found is MISSING else found
    fields = as_object(found)
    if fields.keys() == {"input"} and isinstance(fields["input"], dict):  # LangSmith's form of a run's inputs
        return fields["input"]
    if fields.keys() >= {"input_str", "inputs", "kwargs"}:  # OpenLLMetry's form of a tool of LangChain
        return fields["input_str"] if fields["inputs"] is None else fields["inputs"]
    if fields.keys() == {"args", "kwargs"} and not fields["args"]:  # that of its decorators
        return fields["kwargs"]
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
