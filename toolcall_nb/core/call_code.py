"""A tool call as Python source, to be run again or changed."""

from __future__ import annotations

import keyword
import pprint

from toolcall_nb.core.events import Json

__all__ = ["call_code"]

_WIDTH = 88


def call_code(name: str, arguments: Json) -> str:
    """``name(key=value, …)``, on one line where it fits.

    A name that Python cannot have is looked up in the registry; arguments that are no names are given as a mapping;
    arguments that are no object are the only positional one.
    """
    called = name if _is_name(name) else f"registry[{name!r}].function"
    lines = [] if _is_name(name) else ["from toolcall_nb.tools import registry", ""]
    return "\n".join([*lines, _call(called, arguments)])


def _call(called: str, arguments: Json) -> str:
    if not isinstance(arguments, dict):
        given = [_value(arguments)]
    elif all(map(_is_name, arguments)):
        given = [f"{key}={_value(value)}" for key, value in arguments.items()]
    else:
        given = [f"**{_value(arguments)}"]
    line = f"{called}({', '.join(given)})"
    if len(line) <= _WIDTH and "\n" not in line:
        return line
    body = "".join(f"    {item.replace(chr(10), chr(10) + '    ')},\n" for item in given)
    return f"{called}(\n{body})"


def _value(value: Json) -> str:
    """The literal; NaN and the infinities, which have none, as a call."""
    text = pprint.pformat(value, width=_WIDTH - 4, sort_dicts=False)
    return text if isinstance(value, str) or not _has_no_literal(value) else _without_names(value)


def _has_no_literal(value: Json) -> bool:
    if isinstance(value, float):
        return value != value or value in (float("inf"), float("-inf"))
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(_has_no_literal, items))


def _without_names(value: Json) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_without_names(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_without_names, value)) + "]"
    return f'float("{value}")' if _has_no_literal(value) else repr(value)


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)
