"""Converts the `Tool` of smolagents."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from toolcall_nb.core.events import Object
from toolcall_nb.tools.definition import Tool
from toolcall_nb.tools.schemas.json_schema import SchemaArguments

_JSON_TYPES = frozenset({"string", "boolean", "integer", "number", "array", "object", "null"})
"""The types of smolagents that JSON Schema has too; pictures, sounds and ``any`` are not constrained."""


def _tool(tool: Any) -> list[Tool]:
    schema: Object = {
        "type": "object",
        "properties": {name: _property(declared) for name, declared in tool.inputs.items()},
        "required": [name for name, declared in tool.inputs.items() if not declared.get("nullable")],
    }
    made = Tool(
        name=tool.name,
        description=tool.description,
        parameters=schema,
        function=lambda **arguments: tool(**arguments),
        signature=SchemaArguments(tool.name, schema, trusted=True),
        origin=f"smolagents {type(tool).__module__}:{type(tool).__qualname__} {tool.name}",
    )
    return [made]


def _property(declared: Mapping[str, Any]) -> Object:
    """Returns the JSON Schema of an input: ``nullable`` and other types than JSON's are smolagents' own."""
    schema = {name: copy.deepcopy(value) for name, value in declared.items() if name not in ("nullable", "type")}
    kinds = declared.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    if kinds and all(kind in _JSON_TYPES for kind in kinds):
        kinds += ["null"] if declared.get("nullable") and "null" not in kinds else []
        schema["type"] = kinds[0] if len(kinds) == 1 else kinds
    return schema


SMOLAGENTS_CONVERTERS: Mapping[str, Callable[[Any], list[Tool]]] = {"smolagents.tools.Tool": _tool}
