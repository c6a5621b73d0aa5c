"""Writes a tool call as Python source, to run again or edit: `call_code`."""

from __future__ import annotations

import keyword
import pprint

from toolcall_nb.core.events import Json

_WIDTH = 88


def call_code(name: str, arguments: Json) -> str:
    """Returns ``name(key=value, …)``, on one line if it fits.

    A name that is not an identifier is looked up in the registry. Keys that are not identifiers are passed as a
    mapping, and arguments that are not an object as the only positional argument.
    """
    function, imports = name, ""
    if not _is_name(name):
        function, imports = f"registry[{name!r}].function", "from toolcall_nb.tools import registry\n\n"
    if not isinstance(arguments, dict):
        items = [_value(arguments)]
    elif all(map(_is_name, arguments)):
        items = [f"{key}={_value(value)}" for key, value in arguments.items()]
    else:
        items = [f"**{_value(arguments)}"]
    line = f"{function}({', '.join(items)})"
    if len(line) <= _WIDTH and "\n" not in line:
        return imports + line
    body = "".join(f"    {item.replace(chr(10), chr(10) + '    ')},\n" for item in items)
    return f"{imports}{function}(\n{body})"


def _value(value: Json) -> str:
    """Returns a literal. NaN and the infinities, which have none, are written as calls."""
    text = pprint.pformat(value, width=_WIDTH - 4, sort_dicts=False)
    return text if isinstance(value, str) or not _has_no_literal(value) else _with_float_calls(value)


def _has_no_literal(value: Json) -> bool:
    if isinstance(value, float):
        return value != value or value in (float("inf"), float("-inf"))
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(_has_no_literal, items))


def _with_float_calls(value: Json) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_with_float_calls(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_with_float_calls, value)) + "]"
    return f'float("{value}")' if _has_no_literal(value) else repr(value)


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)
