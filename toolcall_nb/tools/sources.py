"""Turns what users give as tools into `Tool` objects: `as_tools`, and `tools_named` for what a name means.

A name is looked up among the tools made with ``@tool``, the built-in tools, and what the notebook defines. Imported
functions are none of these, nor is Python's own ``open``. A name that two of them claim is refused.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from types import MethodType
from typing import Any, TypeAlias

from toolcall_nb.core.similar_names import did_you_mean
from toolcall_nb.errors import UsageError
from toolcall_nb.tools.built_in import BUILT_IN_NAMES, built_in_tool
from toolcall_nb.tools.collection import Registry, registry
from toolcall_nb.tools.definition import Tool, as_tool, is_function, made_tool
from toolcall_nb.tools.foreign import foreign_tools

ToolSource: TypeAlias = Any
"""A `Tool`, a function, a name (or several, with commas between them), a registry, an MCP server or an ``mcp.json``
(its path or its content), a tool or toolset of LangChain, pydantic-ai, the OpenAI Agents SDK, LlamaIndex or
smolagents, a pair ``(definition, function)``, functions by name in a dict, or a list of any of these."""


def as_tools(thing: ToolSource) -> list[Tool]:
    """Returns the tools that something is or contains, in order. Raises `UsageError` where it is none."""
    if isinstance(thing, str):
        return [tool for name in thing.replace(",", " ").split() for tool in tools_named(name)]
    if isinstance(thing, os.PathLike):
        return _file_tools(thing)
    if (made := made_tool(thing)) is not None:
        return [made]
    if (contained := _contained(thing)) is not None:
        return [tool for item in contained for tool in as_tools(item)]
    if (make := foreign_tools(thing)) is not None:
        return make()
    if callable(thing):
        return [as_tool(thing)]
    if isinstance(thing, Iterable) and not isinstance(thing, Mapping | bytes | bytearray):
        return [tool for item in thing for tool in as_tools(item)]
    raise UsageError(
        f"{thing!r:.100} is not a tool. A tool is a function, a name, an MCP server, an mcp.json, a registry, a tool "
        "of LangChain, pydantic-ai, the OpenAI Agents SDK, LlamaIndex or smolagents, or a pair of a definition and "
        "its function; or give a list of these."
    )


def is_tools(thing: Any) -> bool:
    """Whether something is a tool or contains tools; a plain function is not a tool yet."""
    if made_tool(thing) is not None:
        return True
    items = thing if isinstance(thing, list | tuple) else _contained(thing)
    if items is None:
        return foreign_tools(thing) is not None
    return bool(items) and all(is_function(item) or is_tools(item) for item in items)


def _file_tools(path: str | os.PathLike[str]) -> list[Tool]:
    from toolcall_nb.tools.mcp.config_file import config_file_tools  # asyncio and more, only where there are servers

    return config_file_tools(path)


def _contained(thing: Any) -> list[Any] | None:
    """Returns the tools of a registry, or of an object with the attribute ``tools``, such as an MCP server."""
    if isinstance(thing, Registry):
        return [*thing.values()]
    items = inspect.getattr_static(thing, "tools", None)
    return [*items] if isinstance(items, list | tuple) else None


# Names --------------------------------------------------------------------------------------------------------


def tools_named(name: str, namespace: Mapping[str, Any] | None = None) -> list[Tool]:
    """Returns the tools that a name means; several where a variable holds several, as an MCP server does.

    ``namespace`` holds the variables of the notebook; by default those of ``__main__``. A name that ends with
    ``.json`` is a file that lists MCP servers. Raises `UsageError` for a name that means nothing, or two things.
    """
    if name.endswith(".json"):
        return _file_tools(name)
    variables = _main() if namespace is None else namespace
    claims = _claims(name, variables)
    if len(claims) > 1:
        both = " and ".join(claims)
        raise UsageError(f"{name!r} could mean {both}. Rename one of them, or give it another name with @tool(name=…).")
    if claims:
        (thing,) = claims.values()
        return as_tools(thing) if is_tools(thing) else [Tool.from_function(thing, name=name)]
    if callable(variables.get(name)):
        raise UsageError(
            f"{name!r} is {_origin(variables[name])} here, which the notebook does not define. To let a model call "
            f"it, make a tool of it first: tool({name})."
        )
    raise UsageError(unknown_name("tool or function", name, tool_names(variables)))


def tool_names(namespace: Mapping[str, Any] | None = None) -> list[str]:
    """Returns the names that `tools_named` takes: registered tools, variables of the notebook, built-in tools."""
    variables = _main() if namespace is None else namespace
    defined = [name for name in variables if not name.startswith("_") and _is_tool_here(variables[name], variables)]
    return [
        name for name in dict.fromkeys([*registry, *defined, *BUILT_IN_NAMES]) if len(_claims(name, variables)) == 1
    ]


def unknown_name(kind: str, name: str, names: list[str]) -> str:
    """Explains in a sentence that a name is not there: what may have been meant, and what there is."""
    return f"There is no {kind} {name!r:.100}.{did_you_mean(name, names)} There are: {', '.join(names) or 'none'}."


def _main() -> Mapping[str, Any]:
    return vars(sys.modules["__main__"])


def _claims(name: str, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the things that the name may mean, each by its description for a message."""
    claims: dict[str, Any] = {}
    registered, built_in, variable = registry.get(name), built_in_tool(name), namespace.get(name)
    if registered is not None:
        claims[f"the tool made with @tool ({registered.origin})"] = registered
    if built_in is not None and (registered is None or registered.function is not built_in.function):
        claims[f"the built-in tool {name}"] = built_in
    made = made_tool(variable)
    function = variable if made is None else made.function
    if _is_tool_here(variable, namespace) and not any(tool.function is function for tool in claims.values()):
        claims[f"the notebook's {name} ({_origin(variable)})"] = variable
    return claims


def _is_tool_here(value: Any, namespace: Mapping[str, Any]) -> bool:
    """Whether a variable holds tools, or a function that the notebook defines."""
    return is_tools(value) or (is_function(value) and _is_defined(value, namespace))


def _is_defined(value: Any, namespace: Mapping[str, Any]) -> bool:
    """Whether a function is defined in the notebook, or in a script that it ran with ``%run``."""
    if isinstance(value, partial):
        return _is_defined(value.func, namespace)
    if isinstance(value, MethodType):
        return _is_defined(value.__func__, namespace)
    if getattr(value, "__globals__", None) is namespace:
        return True
    return bool(getattr(value, "__module__", None) == namespace.get("__name__", "__main__"))


def _origin(value: Any) -> str:
    """Describes what a variable holds for a message: the function's own name, or the type."""
    if (made := made_tool(value)) is not None:
        return f"the tool {made.origin}"
    name = getattr(value, "__qualname__", None)
    if not isinstance(name, str):
        return f"an object of the type {type(value).__qualname__}"
    kind = "the class" if isinstance(value, type) else "the function"
    return f"{kind} {getattr(value, '__module__', None) or 'builtins'}.{name}"
