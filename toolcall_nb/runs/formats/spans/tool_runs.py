"""Reads from a span what it says of a tool's run: `read_tool_run`."""

from __future__ import annotations

import re
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

_VERBS = re.compile(r"^(?:execute_tool |running tool: )")
"""The beginnings of the names of tools' spans."""


class ToolRun(Struct):
    """A tool's run. ``error`` is None if it did not fail; ``original_input`` is the model's where it was edited."""

    id: str | None
    name: str
    input: Json | Missing = MISSING
    output: Json | Missing = MISSING
    error: str | None = None
    traceback: str | None = None
    original_input: Json | Missing = MISSING


def read_tool_run(span: Span) -> ToolRun:
    """Reads a tool's run."""
    attributes = span.attributes
    names = attribute_names(attributes)
    output = _first_value(attributes, names[conventions.TOOL_OUTPUTS])
    output = _event_value(span, "gen_ai.choice", "message") if output is MISSING else output
    fields = as_object(output)
    # OpenLLMetry and LangSmith wrap the result of a tool of LangChain
    if fields.keys() == {"output", "kwargs"} or ("langsmith.span.kind" in attributes and fields.keys() == {"output"}):
        output = read_json_text(fields["output"])
        fields = as_object(output)
    call_id = first_text(attributes, conventions.CALL_IDS)
    message = as_object(fields.get("data")) or as_object(fields.get("kwargs")) or fields
    if isinstance(message.get("tool_call_id"), str):  # a message of LangChain
        call_id = call_id or message["tool_call_id"]
        output, fields = message.get("content"), message  # the text that the model read, also where it is JSON
    if fields == {"result": None}:  # ADK's form of a result that is no object
        output = None
    run = ToolRun(
        id=None if is_left_out(call_id) else call_id,
        name=_tool_name(span),
        input=_tool_input(span, names),
        output=output,
        error=read_error(span),
        original_input=_first_value(attributes, conventions.ORIGINAL_INPUTS),
    )
    if span.events:
        run.traceback = next((first_text(each, ("exception.stacktrace",)) for each in exceptions_in(span)), "") or None
    error = _error_in(fields)
    if error and run.error in (None, "", attributes.get("error.type")):
        run.error = error
    return run


def _tool_name(span: Span) -> str:
    name = first_text(span.attributes, conventions.TOOL_NAMES)
    if not name and span.attributes.get("logfire.msg_template") == "Function: {name}":
        name = span.text("name")
    name = name or span.text("traceloop.entity.name")
    name = name or span.text("target").removeprefix("tool.").rpartition(".")[0]  # BeeAI's
    return name or _VERBS.sub("", span.name, 1) or "tool"


def _event_value(span: Span, event_name: str, name: str) -> Json | Missing:
    """Returns the arguments or the result of a tool from an event of its span, where Strands writes them."""
    for event in span.events:
        if event.name == event_name and name in event.attributes:
            return read_json_text(only_text(read_json_text(event.attributes[name])))
    return MISSING


def _tool_input(span: Span, names: AttributeNames) -> Json | Missing:
    arguments = _first_value(span.attributes, names[conventions.TOOL_INPUTS])
    arguments = _event_value(span, "gen_ai.tool.message", "content") if arguments is MISSING else arguments
    fields = as_object(arguments)
    if fields.keys() == {"input"} and isinstance(fields["input"], dict):  # LangSmith's form of a run's inputs
        return fields["input"]
    if fields.keys() >= {"input_str", "inputs", "kwargs"}:  # OpenLLMetry's form of a tool of LangChain
        return fields["input_str"] if fields["inputs"] is None else fields["inputs"]
    if fields.keys() == {"args", "kwargs"} and not fields["args"]:  # that of its decorators
        return fields["kwargs"]
    if arguments is not MISSING:
        return arguments
    parameters = read_json_text(span.attributes.get("tool.parameters"))
    is_schema = isinstance(parameters, dict) and "type" in parameters and "properties" in parameters
    return dict(parameters) if isinstance(parameters, dict) and not is_schema else MISSING


def _first_value(attributes: Mapping[str, Any], names: Iterable[str]) -> Json | Missing:
    for name in names:
        if attributes.get(name) is not None and not is_left_out(value := read_json_text(attributes[name])):
            return value
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
