"""The values of ``--output``: `find_output_type` finds the type of an answer by its name in the notebook."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from inspect import get_annotations
from typing import Any

from toolcall_nb.core.similar_names import did_you_mean
from toolcall_nb.errors import UsageError

_PLAIN = ("bool", "dict", "float", "int", "list", "str")


def find_output_type(name: str, namespace: Mapping[str, Any]) -> Any:
    """Returns what a variable of the notebook holds, an attribute of one (``models.Report``), or a built-in type.

    Raises `UsageError` for an unknown name, and for a variable that holds nothing.
    """
    first, *attributes = name.split(".")
    value = namespace.get(first)
    for attribute in attributes if value is not None else ():
        value = getattr(value, attribute, None)
    if value is None and name in _PLAIN:
        value = getattr(builtins, name)
    if value is None:
        hint = did_you_mean(name, output_type_names(namespace))
        raise UsageError(
            f"--output {name!r:.100} is not known.{hint} It is the name of a class or a JSON Schema in this notebook: "
            "a dataclass, a TypedDict, a pydantic model; or int, str, list."
        )
    return value


def output_type_names(namespace: Mapping[str, Any]) -> list[str]:
    """Returns the notebook's own classes that have fields, and the built-in types."""
    public = ((name, value) for name, value in namespace.items() if not name.startswith("_"))
    classes = [(name, value) for name, value in public if isinstance(value, type) and value.__module__ == "__main__"]
    return [*(name for name, value in classes if get_annotations(value)), *_PLAIN]
