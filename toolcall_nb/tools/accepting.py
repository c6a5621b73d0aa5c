"""Turns whatever people have into tools: `as_tools`, for `Chat`, the dialects, the magic, the server and the CLI."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from toolcall_nb.errors import UsageError
from toolcall_nb.tools.collection import Registry
from toolcall_nb.tools.definition import Tool, as_tool, is_function, made_tool
from toolcall_nb.tools.foreign import foreign_tools

__all__ = ["ToolSource", "as_tools", "is_tools"]

ToolSource: TypeAlias = Any
"""A `Tool`, a function, a name (or several, with commas between them), an MCP server, a registry, a tool or toolset of
LangChain or pydantic-ai, a pair ``(definition, function)``, functions by name in a dict, or a list of any of these."""


def as_tools(thing: ToolSource) -> list[Tool]:
    """Returns the tools that something is or holds, in order. Raises `UsageError` for what holds none."""
    if isinstance(thing, str):
        from toolcall_nb.tools.naming import tools_named  # which finds tools that it hands to this function

        return [tool for name in thing.replace(",", " ").split() for tool in tools_named(name)]
    if (made := made_tool(thing)) is not None:
        return [made]
    if (held := _held(thing)) is not None:
        return [tool for item in held for tool in as_tools(item)]
    if (make := foreign_tools(thing)) is not None:
        return make()
    if callable(thing):
        return [as_tool(thing)]
    if isinstance(thing, Iterable) and not isinstance(thing, Mapping | bytes | bytearray):
        return [tool for item in thing for tool in as_tools(item)]
    raise UsageError(
        f"{thing!r:.100} is no tool. A tool is a function, a name, an MCP server, a registry, a tool of LangChain or "
        "pydantic-ai, or a pair of a definition and its function; or give a list of these."
    )


def is_tools(thing: Any) -> bool:
    """Whether something is a tool, or holds tools; a plain function is none yet."""
    if made_tool(thing) is not None:
        return True
    held = thing if isinstance(thing, list | tuple) else _held(thing)
    if held is None:
        return foreign_tools(thing) is not None
    return bool(held) and all(is_function(item) or is_tools(item) for item in held)


def _held(thing: Any) -> list[Any] | None:
    """The tools of a registry, or those in the attribute ``tools`` of an object, as an MCP server has it."""
    if isinstance(thing, Registry):
        return [*thing.values()]
    held = inspect.getattr_static(thing, "tools", None)
    return [*held] if isinstance(held, list | tuple) else None
