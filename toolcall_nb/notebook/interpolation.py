"""Fills ``{name}`` in a prompt with a variable of the notebook: `fill`, and `fill_values` for lists of values.

A field is a name, followed by attributes and lookups: ``{city}``, ``{df.shape}``, ``{rows[0]}``, ``{totals[Oslo]}``.
Nothing is called or computed. ``{{`` and ``}}`` stand for braces. Braces around anything else, as in JSON or code, stay
as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolcall_nb.errors import UsageError

_NAME = r"[^\W\d]\w*"
_FIELD = re.compile(rf"(?P<escape>\{{\{{|\}}\}})|\{{(?P<name>{_NAME})(?P<path>(?:\.{_NAME}|\[[^\[\]{{}}\n]+\])*)\}}")
_STEP = re.compile(rf"\.(?P<attribute>{_NAME})|\[(?P<key>[^\]]+)\]")
_ITEM = re.compile(r"(?:\{[^{}]*+\}|[^,])++")
_INTEGER = re.compile(r"-?\d+")


def fill(text: str, namespace: Mapping[str, Any]) -> str:
    """Returns ``text`` with its fields filled. Raises `UsageError`, which names every field that cannot be filled."""
    problems: list[str] = []

    def value(match: re.Match[str]) -> str:
        if match["escape"]:
            return match["escape"][0]
        try:
            return str(_look_up(match["name"], match["path"], namespace))
        except Exception as error:  # an attribute or a lookup may run any code
            problems.append(f"{match[0]} ({_reason(error)})")
            return match[0]

    filled = _FIELD.sub(value, text)
    if problems:
        raise UsageError(
            f"The prompt names what the notebook does not have: {', '.join(dict.fromkeys(problems))}. "
            "Define it, or write {{ and }} for braces that are meant as such."
        )
    return filled


def fill_values(text: str, namespace: Mapping[str, Any]) -> list[Any]:
    """Returns the values of a list with commas: the variable itself of an item ``{name}``, else the filled text.

    Raises `UsageError` as `fill` does.
    """
    values: list[Any] = []
    for item in filter(None, (item.strip() for item in _ITEM.findall(text))):
        field = _FIELD.fullmatch(item)
        if field is None or field["escape"]:
            values.append(fill(item, namespace))
            continue
        try:
            values.append(_look_up(field["name"], field["path"], namespace))
        except Exception as error:  # an attribute or a lookup may run any code
            raise UsageError(f"The notebook does not have {item} ({_reason(error)}). Define it first.") from None
    return values


def _look_up(name: str, path: str, namespace: Mapping[str, Any]) -> Any:
    if name not in namespace:
        raise LookupError("there is no such name")
    value = namespace[name]
    for step in _STEP.finditer(path):
        value = getattr(value, step["attribute"]) if step["attribute"] else value[_key(step["key"])]
    return value


def unquoted(text: str) -> str:
    """Returns a text without the quotes around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _key(text: str) -> int | str:
    """Parses a key as `str.format` does: digits are a number. It may also be quoted."""
    return int(text) if _INTEGER.fullmatch(text) else unquoted(text)


def _reason(error: Exception) -> str:
    return str(error) if type(error) is LookupError else f"{type(error).__name__}: {error}"
