"""The functions that were decorated with ``@tool``: `decorated_functions`, and `decoration_listeners` for new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any
from weakref import WeakSet

from toolcall_nb.tools.definition import Tool, made_tool

_functions: WeakSet[FunctionType] = WeakSet()

decoration_listeners: list[Callable[[Callable[..., Any], Tool], None]] = []
"""Functions that are called with each function that is decorated, and its tool."""


def decorated_functions() -> Iterator[tuple[FunctionType, Tool]]:
    """Yields the decorated functions that exist, with their tools."""
    for function in list(_functions):
        made = made_tool(function)
        if made is not None:
            yield function, made


def note_decorated(function: Callable[..., Any], made: Tool) -> None:
    """Notes that a function was decorated."""
    if isinstance(function, FunctionType):
        _functions.add(function)
    for listener in tuple(decoration_listeners):
        listener(function, made)
