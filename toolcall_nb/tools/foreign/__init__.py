"""Converts tools of other packages to `Tool`: LangChain, pydantic-ai, and tool definitions for the providers' SDKs.

The main entry point is `foreign_tools`. It recognises an object by the full name of its class and imports nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolcall_nb.tools.definition import Tool
from toolcall_nb.tools.foreign import definitions, langchain, pydantic_ai

__all__ = ["foreign_tools"]


def foreign_tools(thing: Any) -> Callable[[], list[Tool]] | None:
    """Returns a function that converts another package's object; None for an object of no such package.

    The function raises `UsageError` for a tool that cannot run here, and says why.
    """
    if isinstance(thing, Mapping) or definitions.is_pair(thing):
        return definitions.definition_tools(thing)
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(thing).__mro__}
    for converters in (langchain.LANGCHAIN_CONVERTERS, pydantic_ai.PYDANTIC_AI_CONVERTERS):
        for name, make in converters.items():
            if name in names:
                return lambda make=make: make(thing)  # type: ignore[misc] # the default binds the loop variable
    return None
