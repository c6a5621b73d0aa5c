"""What a docstring tells: the description of the whole, and of each parameter.

Google, NumPy, Sphinx and Epydoc styles are read by the ``docstring_parser`` package.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

__all__ = ["Documentation", "read_docstring"]


class Documentation(NamedTuple):
    """The text above the sections, and one text for each documented parameter."""

    description: str
    parameters: dict[str, str]


def read_docstring(function: Callable[..., Any]) -> Documentation:
    """The documentation of a function; empty where it has none. A docstring in no known style is all description."""
    while isinstance(function, partial):
        function = function.func
    text = inspect.getdoc(function)
    if not text:
        return Documentation("", {})
    import docstring_parser  # 20 ms that a session without tools need not pay

    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return Documentation(text, {})
    parameters = {
        name.strip().lstrip("*"): " ".join(item.description.split())
        for item in parsed.params
        if item.description
        for name in item.arg_name.split(",")
    }
    return Documentation((parsed.description or "").strip(), parameters)
