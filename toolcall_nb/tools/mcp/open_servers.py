"""Keeps MCP servers open that a chat was given as such, not by `mcp_tools`: `server_tools`.

A cell names its tools anew each time. The same server, under the same prefix, is connected once, as long as any of its
tools is in use.
"""

from __future__ import annotations

import threading
from weakref import WeakValueDictionary

from toolcall_nb.tools.definition import Tool
from toolcall_nb.tools.mcp.server import McpServer, mcp_tools
from toolcall_nb.tools.mcp.targets import Target, identity

_open: WeakValueDictionary[tuple[str, str], McpServer] = WeakValueDictionary()
_lock = threading.Lock()


def server_tools(target: Target, *, prefix: str = "", key: str | None = None) -> list[Tool]:
    """Returns the tools of a server; connects only if there is no open connection to it. Raises as `mcp_tools` does.

    ``key`` says which targets are the same server; by default the same command, or the same object.
    """
    if key is None:
        is_command = isinstance(target, str | list | tuple) or hasattr(target, "model_dump_json")
        key = identity(target) if is_command else f"object {id(target)}"  # an open server keeps its target alive
    with _lock:
        server = _open.get((key, prefix))
        if server is None:
            server = _open[key, prefix] = mcp_tools(target, prefix=prefix)
    return [*server.tools]
