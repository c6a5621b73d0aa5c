"""Converts tools of other packages to `Tool`, MCP servers, and tool definitions for the providers' SDKs.

The main entry point is `foreign_tools`. It recognises an object by the full name of its class and imports nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolcall_nb.tools.definition import Tool
from toolcall_nb.tools.foreign.definitions import definition_tools, is_pair
from toolcall_nb.tools.foreign.frameworks import FRAMEWORK_CONVERTERS

__all__ = ["foreign_tools"]


def foreign_tools(thing: Any) -> Callable[[], list[Tool]] | None:
    """Returns a function that converts another package's object; None for an object of no such package.

    The function raises `UsageError` for a tool that cannot run here, and says why.
    """
    if _is_server_list(thing):
        return lambda: _listed_tools(thing)
    if isinstance(thing, Mapping) or is_pair(thing):
        return definition_tools(thing)
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(thing).__mro__}
    make = next((make for name, make in _CONVERTERS.items() if name in names), None)
    return None if make is None else lambda: make(thing)


def _is_server_list(thing: Any) -> bool:
    """Whether a mapping has the form of an ``mcp.json``: servers by name, below ``mcpServers`` or ``servers``."""
    return isinstance(thing, Mapping) and any(
        isinstance(servers := thing.get(key), Mapping) and all(isinstance(each, Mapping) for each in servers.values())
        for key in ("mcpServers", "servers")
    )


# The modules about MCP import asyncio and more, which most notebooks do not need.


def _listed_tools(servers: Mapping[str, Any]) -> list[Tool]:
    from toolcall_nb.tools.mcp.config_file import config_tools

    return config_tools(servers)


def _mcp_tools(target: Any) -> list[Tool]:
    from toolcall_nb.tools.mcp.server import server_tools

    return server_tools(target)


_CONVERTERS: Mapping[str, Callable[[Any], list[Tool]]] = {
    **FRAMEWORK_CONVERTERS,
    "mcp.server.mcpserver.server.MCPServer": _mcp_tools,
    "mcp.server.lowlevel.server.Server": _mcp_tools,
    "mcp.client.stdio.StdioServerParameters": _mcp_tools,
}
"""The converters, by the full name of the class; the first that fits is used."""
