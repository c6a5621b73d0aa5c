"""Tools of other packages as `Tool`: LangChain, pydantic-ai, and tool definitions as the providers' SDKs take them.

Nothing is imported to recognise an object: its class says which package it is from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolcall_nb.tools.definition import Tool
from toolcall_nb.tools.foreign import definitions, langchain, pydantic_ai

__all__ = ["foreign_tools"]


def foreign_tools(thing: Any) -> Callable[[], list[Tool]] | None:
    """Returns what makes the tools of another package's object; None for an object that is none of these.

    What is returned raises `UsageError` for a tool that cannot run here, with the reason.
    """
    if isinstance(thing, Mapping) or definitions.is_pair(thing):
        return definitions.recognise(thing)
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(thing).__mro__}
    for known in (langchain.KINDS, pydantic_ai.KINDS):
        for name, make in known.items():
            if name in names:
                return lambda make=make: make(thing)  # type: ignore[misc] # the default binds it at once
    return None
