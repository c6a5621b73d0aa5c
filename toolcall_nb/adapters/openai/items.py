"""The items of OpenAI's Responses API by their types: calls of either side, and what they gave.

Source: openai-python 3.52, ``types/responses/response_output_item.py`` and ``response_input_item.py``; xAI's and
others' items from recordings. An item of a type that is not known is a call where its type ends in ``_call``, an
output where it ends in ``_output``, and is kept as it is otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.openai.parts import PROVIDER, nonempty, said
from toolcall_nb.adapters.parts import json_text
from toolcall_nb.adapters.plain import get, json_value, mapping, plain
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Json, Object

__all__ = [
    "about_call",
    "failure_of",
    "given_input",
    "id_of_call",
    "is_call",
    "is_output",
    "is_providers",
    "name_of_call",
    "output_event",
    "output_of",
    "written_input",
]

_OWN = frozenset({"function_call", "custom_tool_call", "local_shell_call", "apply_patch_call", "computer_call"})
"""Calls that wait for the caller's side to run them."""

_INPUTS = {
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "web_search_call": "action",
    "custom_tool_call": "input",
    "tool_search_call": "arguments",
}
"""The field that is the input."""

_FIELDS = {
    "computer_call": ("action", "actions"),
    "file_search_call": ("queries",),
    "code_interpreter_call": ("code",),
    "image_generation_call": ("action",),
    "program": ("code",),
}
"""The fields that make up the input."""

_NOT_INPUT = frozenset(
    {
        *("id", "type", "status", "call_id", "name", "error", "output", "outputs", "result", "results", "caller"),
        *("server_label", "namespace", "phase", "created_by", "role"),
    }
)
_NOT_OUTPUT = frozenset({"id", "type", "status", "call_id", "name", "error", "result", "caller", "partial_images"})
_METADATA = (
    *("namespace", "caller", "server_label", "container_id", "environment", "fingerprint", "phase"),
    *("pending_safety_checks", "approval_request_id", "execution"),
)


def is_call(kind: str) -> bool:
    """Whether an item of this type is a call."""
    return kind.endswith("_call") or kind in ("program", "mcp_approval_request")


def is_output(kind: str) -> bool:
    """Whether an item of this type is what a call gave."""
    return kind.endswith("_output")


def name_of_call(item: Mapping[str, Any]) -> str:
    """The tool's name: the item's own, or its type's."""
    return nonempty(item, "name") or str(item.get("type")).removesuffix("_call")


def id_of_call(item: Mapping[str, Any]) -> str | None:
    """The id that results name; where there is none (the provider's own tools), the item's."""
    return nonempty(item, "call_id") or nonempty(item, "id")


def is_providers(item: Mapping[str, Any]) -> bool:
    """Whether the provider's side runs the call. xAI's search of X comes as custom calls with ids of its own."""
    kind = item.get("type")
    if kind == "tool_search_call":
        return item.get("execution") != "client"
    if kind == "shell_call":
        return str(get(item.get("environment"), "type")).startswith("container")
    if kind == "custom_tool_call":
        return (nonempty(item, "call_id") or "").startswith("xs_call")
    return kind not in _OWN


def about_call(item: Mapping[str, Any]) -> Object:
    """The further fields of the call's start."""
    metadata = {name: item[name] for name in _METADATA if item.get(name)}
    if nonempty(item, "call_id") and nonempty(item, "id"):
        metadata = {"itemId": item["id"], **metadata}
    about: Object = {"provider_metadata": {PROVIDER: metadata} if metadata else None}
    return {"provider_executed": True, **about} if is_providers(item) else about


def written_input(item: Mapping[str, Any]) -> str | None:
    """The input where it is JSON text."""
    written: str | None = get(item, "arguments", str)
    return written


def given_input(item: Mapping[str, Any]) -> Json:
    """The input where it is a value; `MISSING` where it is JSON text, or is not there yet."""
    kind = str(item.get("type"))
    if kind in _INPUTS and written_input(item) is None:
        given = item.get(_INPUTS[kind])
        if isinstance(given, Mapping):
            return {name: value for name, value in given.items() if name != "sources"}
        return MISSING if given is None else given
    if written_input(item) is not None:
        return MISSING
    names = _FIELDS.get(kind) or [name for name in item if name not in _NOT_INPUT and name not in _METADATA]
    return {name: item[name] for name in names if item.get(name) is not None}


def failure_of(item: Mapping[str, Any]) -> str | None:
    """Why the call failed; None where it did not."""
    error = item.get("error")
    if error:
        return error if isinstance(error, str) else nonempty(error, "message") or json_text(plain(error) or error)
    return "The tool failed." if item.get("status") == "failed" else None


def output_of(item: Mapping[str, Any]) -> Json:
    """What the item of a call says of its result; `MISSING` where that comes as an item of its own, or never."""
    kind = item.get("type")
    if not is_providers(item) or kind in ("shell_call", "tool_search_call", "program", "mcp_approval_request"):
        return MISSING
    if item.get("status") == "incomplete":
        return MISSING
    if kind == "image_generation_call":
        return {name: value for name, value in item.items() if name not in _NOT_OUTPUT and value is not None}
    found = [item[name] for name in ("output", "outputs", "results") if item.get(name) is not None]
    sources = get(item.get("action"), "sources", list)
    return [*found, *([sources] if sources else []), {"status": item.get("status") or "completed"}][0]


def output_event(call_id: str, item: Mapping[str, Any]) -> Event:
    """What an item of outputs says: a text where it is nothing but text."""
    names = ("output", "result", "tools", "outputs", "results")
    value = next((item[name] for name in names if item.get(name) is not None), None)
    parts = value if isinstance(value, list) else []
    texts = [text for part in parts if (text := said(mapping(plain(part)))) is not None]
    if texts and len(texts) == len(parts):
        value = "\n\n".join(texts)
    if item.get("status") == "failed":
        return ev.ToolOutputError(call_id, value if isinstance(value, str) and value else "The tool failed.")
    return ev.ToolOutputAvailable(call_id, json_value(value))
