"""Reads arguments that a model wrote as JSON inside a text: ``"[1, 2]"`` for a list. See `read_json_texts`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolcall_nb.core.events import Json, Object

_MOST_STEPS = 200
"""The most schemas that are looked at for one argument; a server's schema may refer to itself."""
_NO_TYPES: frozenset[str] = frozenset()
_ANY_TYPE = frozenset({"string", "array", "object", "number", "integer", "boolean", "null"})


def read_json_texts(arguments: Json, schema: Object) -> Json:
    """Returns the arguments, with lists and objects in the place of the texts that spell them.

    A text is read only if its parameter takes a list or an object and no text, and if it spells what the parameter
    takes. ``schema`` is the JSON Schema of all parameters.
    """
    properties = schema.get("properties")
    if not isinstance(arguments, Mapping) or not isinstance(properties, Mapping):
        return arguments
    others = schema.get("additionalProperties")
    return {
        name: _read(value, properties.get(name, others), schema) if isinstance(value, str) else value
        for name, value in arguments.items()
    }


def _read(text: str, rule: Any, schema: Object) -> Json:
    if text.lstrip()[:1] not in ("[", "{"):
        return text
    types = _types(rule, schema, [_MOST_STEPS])
    if "string" in types:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if ("array" if isinstance(value, list) else "object") in types else text


def _types(rule: Any, schema: Object, steps: list[int]) -> frozenset[str]:
    """Returns the JSON types that a schema allows; all of them where it does not say, or is too large to tell."""
    steps[0] -= 1
    if not isinstance(rule, Mapping) or steps[0] < 0:
        return _ANY_TYPE
    types = _ANY_TYPE
    if "type" in rule:
        names = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
        types &= frozenset(name for name in names if isinstance(name, str))
    if "$ref" in rule:
        types &= _types(_definition(rule["$ref"], schema), schema, steps)
    for key in ("anyOf", "oneOf"):
        if isinstance(rule.get(key), list):
            types &= _NO_TYPES.union(*(_types(each, schema, steps) for each in rule[key]))
    for each in rule["allOf"] if isinstance(rule.get("allOf"), list) else ():
        types &= _types(each, schema, steps)
    for values in ([rule["const"]] if "const" in rule else None, rule.get("enum")):
        if isinstance(values, list) and not any(isinstance(value, str) for value in values):
            types -= {"string"}
    return types


def _definition(reference: Any, schema: Object) -> Any:
    """Returns the definition that a reference names; None for any other reference."""
    names = reference.split("/") if isinstance(reference, str) else []
    holder = schema.get(names[1]) if len(names) == 3 and names[0] == "#" else None
    return holder.get(names[2].replace("~1", "/").replace("~0", "~")) if isinstance(holder, Mapping) else None
