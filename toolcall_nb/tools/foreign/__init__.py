"""Converts tools of other packages to `Tool`, MCP servers, and tool definitions for the providers' SDKs.

The main entry point is `foreign_tools`. It recognises an object by the full name of its class and imports nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolcall_nb.tools.definition import Tool
from toolcall_nb.tools.foreign import (
    definitions,
    langchain,
    llama_index,
    mcp_servers,
    openai_agents,
    pydantic_ai,
    smolagents,
)

__all__ = ["foreign_tools"]

_CONVERTERS: Mapping[str, Callable[[Any], list[Tool]]] = {
    **langchain.LANGCHAIN_CONVERTERS,
    **pydantic_ai.PYDANTIC_AI_CONVERTERS,
    **openai_agents.OPENAI_AGENTS_CONVERTERS,
    **llama_index.LLAMA_INDEX_CONVERTERS,
    **smolagents.SMOLAGENTS_CONVERTERS,
    **mcp_servers.MCP_CONVERTERS,
}
"""The converters, by the full name of the class; the first that fits is used."""


def foreign_tools(thing: Any) -> Callable[[], list[Tool]] | None:
    """Returns a function that converts another package's object; None for an object of no such package.

    The function raises `UsageError` for a tool that cannot run here, and says why.
    """
    if mcp_servers.is_server_list(thing):
        return lambda: mcp_servers.listed_tools(thing)
    if isinstance(thing, Mapping) or definitions.is_pair(thing):
        return definitions.definition_tools(thing)
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(thing).__mro__}
    make = next((make for name, make in _CONVERTERS.items() if name in names), None)
    return None if make is None else lambda: make(thing)
