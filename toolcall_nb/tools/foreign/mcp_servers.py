"""Connects to MCP servers that are given as objects of the ``mcp`` package, or in the form of an ``mcp.json``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolcall_nb.tools.definition import Tool

_KEYS = ("mcpServers", "servers")


def is_server_list(thing: Any) -> bool:
    """Whether a mapping has the form of an ``mcp.json``: servers by name, below ``mcpServers`` or ``servers``."""
    return isinstance(thing, Mapping) and any(
        isinstance(servers := thing.get(key), Mapping) and all(isinstance(each, Mapping) for each in servers.values())
        for key in _KEYS
    )


def listed_tools(thing: Mapping[str, Any]) -> list[Tool]:
    """Connects to each server of such a mapping and returns their tools."""
    from toolcall_nb.tools.mcp.config_file import config_tools

    return config_tools(thing)


def _connected(target: Any) -> list[Tool]:
    from toolcall_nb.tools.mcp.open_servers import server_tools  # asyncio and more, which most notebooks do not need

    return server_tools(target)


MCP_CONVERTERS: Mapping[str, Callable[[Any], list[Tool]]] = {
    "mcp.server.mcpserver.server.MCPServer": _connected,
    "mcp.server.lowlevel.server.Server": _connected,
    "mcp.client.stdio.StdioServerParameters": _connected,
}
"""The converters, by the full name of the class."""
