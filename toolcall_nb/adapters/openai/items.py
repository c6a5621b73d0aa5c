"""Tells what the items of OpenAI's Responses API contain, by type: tool calls of either side, and their outputs.

Source: openai-python 3.52, ``types/responses/response_output_item.py`` and ``response_input_item.py``; the items of xAI
and others are from recordings. An item of an unknown type is a call if its type ends in ``_call``, an output if it
ends in ``_output``, and is otherwise kept as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolcall_nb.adapters.openai.content import part_file_event
from toolcall_nb.core import events as ev
from toolcall_nb.core.contents import read_contents
from toolcall_nb.core.events import MISSING, Event, Json, Object
from toolcall_nb.core.sdk_objects import as_json_text, dump, get, nonempty

_OWN = frozenset({"function_call", "custom_tool_call", "local_shell_call", "apply_patch_call", "computer_call"})
"""Calls that the caller has to run."""

_INPUTS = {
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "web_search_call": "action",
    "custom_tool_call": "input",
    "tool_search_call": "arguments",
}
"""The field that holds the input."""

_FIELDS = {
    "computer_call": ("action", "actions"),
    "file_search_call": ("queries",),
    "code_interpreter_call": ("code",),
    "image_generation_call": ("action",),
    "program": ("code",),
}
"""The fields that together are the input."""

_NOT_INPUT = frozenset(
    {
        *("id", "type", "status", "call_id", "name", "error", "output", "outputs", "result", "results", "caller"),
        *("server_label", "namespace", "phase", "created_by", "role"),
    }
)
_NOT_OUTPUT = frozenset({"id", "type", "status", "call_id", "name", "error", "result", "caller", "partial_images"})
_METADATA = (
    *("namespace", "caller", "server_label", "container_id", "environment", "fingerprint", "phase"),
    *("pending_safety_checks", "approval_request_id", "execution", "created_by"),
)
_NOT_METADATA = _NOT_OUTPUT | {"outputs", "results", "role"}


def is_call_item(kind: str) -> bool:
    """Whether an item of this type is a call."""
    return kind.endswith("_call") or kind in ("program", "mcp_approval_request")


def is_output_item(kind: str) -> bool:
    """Whether an item of this type is the output of a call."""
    return kind.endswith("_output")


def call_name(item: Mapping[str, Any]) -> str:
    """Returns the tool's name: the item's ``name``, or else its type."""
    return nonempty(item, "name") or str(item.get("type")).removesuffix("_call")


def call_id(item: Mapping[str, Any]) -> str | None:
    """Returns the id that outputs refer to; for the provider's own tools, which have none, the item's id."""
    return nonempty(item, "call_id") or nonempty(item, "id")


def is_provider_executed(item: Mapping[str, Any]) -> bool:
    """Whether the provider runs the call. xAI's search of X comes as custom calls with ids of its own."""
    kind = item.get("type")
    if kind == "tool_search_call":
        return item.get("execution") != "client"
    if kind == "shell_call":
        return str(get(item.get("environment"), "type")).startswith("container")
    if kind == "custom_tool_call":
        return (nonempty(item, "call_id") or "").startswith("xs_call")
    return kind not in _OWN


def call_fields(item: Mapping[str, Any]) -> Object:
    """Returns the further fields of the call's start event."""
    others = item.keys() - _NOT_METADATA - set(_input_names(item))
    named = [name for name in _METADATA if name in item]
    if item.get("type") != "image_generation_call" or call_error(item) is not None:  # else these are its output
        named += [name for name in item if name in others and name not in _METADATA]
    metadata = {name: item[name] for name in named if item[name]}
    if nonempty(item, "call_id") and nonempty(item, "id"):
        metadata = {"itemId": item["id"], **metadata}
    fields: Object = {"provider_metadata": {"openai": metadata} if metadata else None}
    return {"provider_executed": True, **fields} if is_provider_executed(item) else fields


def call_input(item: Mapping[str, Any]) -> Json:
    """Returns the input if it is a value; `MISSING` if it is JSON text (``arguments``) or not complete."""
    if get(item, "arguments", str) is not None:
        return MISSING
    names = _input_names(item)
    if item.get("type") in _INPUTS:
        content = item.get(names[0])
        if isinstance(content, Mapping):
            return {name: value for name, value in content.items() if name != "sources"}
        return MISSING if content is None else content
    return {name: item[name] for name in names if item.get(name) is not None}


def _input_names(item: Mapping[str, Any]) -> Sequence[str]:
    """Returns the fields that are the input."""
    kind = str(item.get("type"))
    if get(item, "arguments", str) is not None:
        return ("arguments",)
    if kind in _INPUTS:
        return (_INPUTS[kind],)
    return _FIELDS.get(kind) or [name for name in item if name not in _NOT_INPUT and name not in _METADATA]


def call_error(item: Mapping[str, Any]) -> str | None:
    """Returns the error of a call that failed, else None."""
    error = item.get("error")
    if error:
        return error if isinstance(error, str) else nonempty(error, "message") or as_json_text(dump(error) or error)
    return "The tool failed." if item.get("status") == "failed" else None


def call_output(item: Mapping[str, Any]) -> Json:
    """Returns the output within a call's item; `MISSING` if it comes as an item of its own, or not at all."""
    kind = item.get("type")
    if not is_provider_executed(item) or kind in ("shell_call", "tool_search_call", "program", "mcp_approval_request"):
        return MISSING
    if item.get("status") == "incomplete":
        return MISSING
    if kind == "image_generation_call":
        return {name: value for name, value in item.items() if name not in _NOT_OUTPUT and value is not None}
    for output in (item.get("output"), item.get("outputs"), item.get("results")):
        if output is not None:
            return output
    return get(item.get("action"), "sources", list) or {"status": item.get("status") or "completed"}


def output_event(call_id: str, item: Mapping[str, Any]) -> Event:
    """Returns the event of an output item: texts are a string, pictures and files among them are contents."""
    names = ("output", "result", "tools", "outputs", "results")
    value = next((item[name] for name in names if item.get(name) is not None), None)
    result = read_contents(value, part_file_event)
    if item.get("status") == "failed":
        error = result.output if isinstance(result.output, str) and result.output else "The tool failed."
        return ev.ToolOutputError(call_id, error, contents=result.contents)
    return ev.ToolOutputAvailable(call_id, result.output, contents=result.contents)
