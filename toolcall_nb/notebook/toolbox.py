"""The tools that a notebook can name: functions of its own, those made with ``@tool``, and those of the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from toolcall_nb.errors import UsageError
from toolcall_nb.tools import Registry, Tool, as_tool, registry
from toolcall_nb.tools.builtin import BUILTIN, builtin

__all__ = ["describe", "named", "names", "unknown"]


def named(name: str, namespace: Mapping[str, Any]) -> list[Tool]:
    """The tool of this name: the notebook's own before the registry's before the package's; else `UsageError`.

    A variable may also hold several: a registry, a list of tools or functions, an MCP server.
    """
    value = namespace.get(name)
    several = _several(value)
    if several:
        return [*map(as_tool, several)]
    if callable(value) or isinstance(value, Tool):
        return [as_tool(value)]
    found = registry.get(name) or builtin(name)
    if found is None:
        raise UsageError(unknown("tool or function", name, names(namespace)))
    return [found]


def names(namespace: Mapping[str, Any], hidden: Mapping[str, Any] | None = None) -> list[str]:
    """What `named` finds; of the notebook's names those that are functions and not ``hidden`` or private."""
    functions = [
        name
        for name, value in namespace.items()
        if _is_function(value) and name not in (hidden or {}) and not name.startswith("_")
    ]
    return list(dict.fromkeys([*registry, *functions, *BUILTIN]))


def describe(tools: Sequence[Tool]) -> str:
    """One tool a line, and which of the package's are not among them."""
    lines = [
        f"{tool.name}({', '.join(tool.parameters.get('properties', ()))})  {_first_line(tool)}".rstrip()
        for tool in tools
    ]
    there = {tool.name for tool in tools}
    off = [name for name in BUILTIN if name not in there]
    lines = lines or ["There are no tools; make one with @tool."]
    return "\n".join([*lines, *([f"Off until asked for: {', '.join(off)}."] if off else [])])


def unknown(kind: str, name: str, known: list[str]) -> str:
    """One sentence for a name that is not there."""
    close = get_close_matches(name, known, 1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"There is no {kind} {name!r:.100}.{hint} There are: {', '.join(known) or 'none'}."


def _several(value: Any) -> Sequence[Any]:
    """The tools that a value holds, if it is one that holds tools."""
    if isinstance(value, Registry):
        return [*value.values()]
    held = value if isinstance(value, list | tuple) else getattr(value, "tools", None)
    is_some = isinstance(held, list | tuple) and all(callable(item) or isinstance(item, Tool) for item in held)
    return held if is_some and held is not None else ()


def _is_function(value: Any) -> bool:
    return type(value).__name__ == "function" or isinstance(value, Tool)


def _first_line(tool: Tool) -> str:
    return tool.description.strip().partition("\n")[0]
