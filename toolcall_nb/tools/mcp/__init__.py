"""Tools of servers of the Model Context Protocol (MCP).

    from toolcall_nb.tools.mcp import mcp_tools

    files = mcp_tools("npx -y @modelcontextprotocol/server-filesystem .", prefix="fs_")
    for each in files.tools:
        registry.add(each)

Speaking the protocol is left to the official package, which is an extra: ``toolcall-nb[mcp]``.
"""

from __future__ import annotations

from toolcall_nb.tools.mcp.server import McpServer, ServerFailed, mcp_tools

__all__ = ["McpServer", "ServerFailed", "mcp_tools"]
