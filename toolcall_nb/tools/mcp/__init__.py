"""Makes tools of the servers of the Model Context Protocol (MCP): `mcp_tools`.

    from toolcall_nb.tools.mcp import mcp_tools

    files = mcp_tools("npx -y @modelcontextprotocol/server-filesystem .", prefix="fs_")
    for each in files.tools:
        registry.add(each)

The official package implements the protocol. It is an extra: ``toolcall-nb[mcp]``.
"""

from __future__ import annotations

from toolcall_nb.tools.mcp.server import McpServer, ServerFailed, mcp_tools

__all__ = ["McpServer", "ServerFailed", "mcp_tools"]
