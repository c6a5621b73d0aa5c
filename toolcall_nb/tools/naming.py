"""Finds the tool that a name means: `tools_named`. The magic, `Chat` and the command line ask here.

Three sources are asked: the tools made with ``@tool``, the built-in tools, and what the notebook defines. An imported
function is none of these, nor is Python's own ``open``. A name that two sources claim is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from functools import partial
from types import MethodType
from typing import Any

from toolcall_nb.errors import UsageError
from toolcall_nb.tools.accepting import as_tools, is_tools
from toolcall_nb.tools.builtin import BUILTIN, builtin
from toolcall_nb.tools.collection import registry
from toolcall_nb.tools.definition import Tool, is_function, made_tool

__all__ = ["tool_names", "tools_named", "unknown_name"]


def tools_named(name: str, namespace: Mapping[str, Any] | None = None) -> list[Tool]:
    """Returns the tools that a name means; several where a variable holds several, as an MCP server does.

    ``namespace`` holds the variables of the notebook; by default those of ``__main__``. Raises `UsageError` for a
    name that means nothing, or two things.
    """
    variables = _main() if namespace is None else namespace
    claims = _claims(name, variables)
    if len(claims) > 1:
        both = " and ".join(claims)
        raise UsageError(f"{name!r} could mean {both}. Rename one of them, or give it another name with @tool(name=…).")
    if claims:
        return next(iter(claims.values()))
    if callable(variables.get(name)):
        raise UsageError(
            f"{name!r} is {_origin(variables[name])} here, which the notebook does not define. To let a model call "
            f"it, make a tool of it first: tool({name})."
        )
    raise UsageError(unknown_name("tool or function", name, tool_names(variables)))


def tool_names(namespace: Mapping[str, Any] | None = None) -> list[str]:
    """Returns the names that `tools_named` takes: registered tools, variables of the notebook, built-in tools."""
    variables = _main() if namespace is None else namespace
    own = [name for name in variables if not name.startswith("_") and _is_own(variables[name], variables)]
    return [name for name in dict.fromkeys([*registry, *own, *BUILTIN]) if len(_sources(name, variables)) == 1]


def unknown_name(kind: str, name: str, known: list[str]) -> str:
    """Returns one sentence for a name that is not there: what it may have meant, and what there is."""
    close = get_close_matches(name, known, 1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"There is no {kind} {name!r:.100}.{hint} There are: {', '.join(known) or 'none'}."


def _main() -> Mapping[str, Any]:
    return vars(sys.modules["__main__"])


def _claims(name: str, namespace: Mapping[str, Any]) -> dict[str, list[Tool]]:
    """The tools of each source that claims the name, by what the source calls them."""
    return {claim: _tools(name, thing) for claim, thing in _sources(name, namespace).items()}


def _sources(name: str, namespace: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    registered, own, variable = registry.get(name), builtin(name), namespace.get(name)
    if registered is not None:
        found[f"the tool made with @tool ({registered.origin})"] = registered
    if own is not None and (registered is None or registered.function is not own.function):
        found[f"the built-in tool {name}"] = own
    if _is_own(variable, namespace) and not any(_is_same(variable, tool) for tool in found.values()):
        found[f"the notebook's {name} ({_origin(variable)})"] = variable
    return found


def _is_same(variable: Any, tool: Tool) -> bool:
    made = made_tool(variable)
    return tool.function is (made.function if made is not None else variable)


def _tools(name: str, thing: Any) -> list[Tool]:
    return as_tools(thing) if is_tools(thing) else [Tool.from_function(thing, name=name)]


def _is_own(value: Any, namespace: Mapping[str, Any]) -> bool:
    """Whether a variable holds tools, or a function that the notebook defines."""
    return is_tools(value) or (is_function(value) and _is_defined(value, namespace))


def _is_defined(value: Any, namespace: Mapping[str, Any]) -> bool:
    """Whether the code of a function stands in the notebook, or in a script that it ran with ``%run``."""
    if isinstance(value, partial):
        return _is_defined(value.func, namespace)
    if isinstance(value, MethodType):
        return _is_defined(value.__func__, namespace)
    if getattr(value, "__globals__", None) is namespace:
        return True
    return bool(getattr(value, "__module__", None) == namespace.get("__name__", "__main__"))


def _origin(value: Any) -> str:
    """What a variable holds, in a message: the function's own name, or the type."""
    if (made := made_tool(value)) is not None:
        return f"the tool {made.origin}"
    name = getattr(value, "__qualname__", None)
    if not isinstance(name, str):
        return f"an object of the type {type(value).__qualname__}"
    kind = "the class" if isinstance(value, type) else "the function"
    return f"{kind} {getattr(value, '__module__', None) or 'builtins'}.{name}"
