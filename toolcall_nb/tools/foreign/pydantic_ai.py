"""Converts tools of pydantic-ai: `Tool` and toolsets of functions. Tools that need an agent's run are refused."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from toolcall_nb.core.events import Json
from toolcall_nb.errors import UsageError
from toolcall_nb.tools.definition import Tool, function_origin
from toolcall_nb.tools.execution.runner import Binding
from toolcall_nb.tools.schemas.json_schema import SchemaArguments
from toolcall_nb.tools.schemas.pydantic_types import wrong_arguments

_NEEDS = {
    "takes_ctx": "takes the context of an agent's run",
    "prepare": "is prepared for each step of an agent's run",
    "args_validator": "has a validator that takes the context of an agent's run",
    "requires_approval": "asks for approval in an agent's run",
}


def _tool(tool: Any) -> list[Tool]:
    for attribute, need in _NEEDS.items():
        if getattr(tool, attribute):
            is_approval = attribute == "requires_approval"
            instead = "its function, with approval_mode='ask'" if is_approval else "a plain function"
            raise UsageError(f"The pydantic-ai tool {tool.name!r} {need}, which does not exist here. Give {instead}.")
    schema = {"type": "object", "properties": {}, **tool.function_schema.json_schema}
    function = tool.function
    binding: Binding = SchemaArguments(tool.name, schema, trusted=True)
    try:
        tool.function_schema.validator.validate_python(None)  # takes anything if Tool.from_schema made it
    except ValueError:
        binding = _Arguments(tool)
    made = Tool(
        name=tool.name,
        description=tool.description or "",
        parameters=schema,
        function=_with_plain_result(function),
        signature=binding,
        origin=f"pydantic-ai {function_origin(function)}",
        timeout=tool.timeout,
    )
    return [made]


def _toolset(toolset: Any) -> list[Tool]:
    """Returns the tools of a toolset that needs no agent's run: of functions, or such toolsets combined or renamed."""
    match type(toolset).__name__:
        case "PrefixedToolset":
            return [replace(tool, name=f"{toolset.prefix}_{tool.name}") for tool in _inner(toolset.wrapped)]
        case "RenamedToolset":
            names = {old: new for new, old in toolset.name_map.items()}
            return [replace(tool, name=names.get(tool.name, tool.name)) for tool in _inner(toolset.wrapped)]
        case "CombinedToolset":
            return [tool for each in toolset.toolsets for tool in _inner(each)]
    return [made for tool in toolset.tools.values() for made in _tool(tool)]


def _inner(toolset: Any) -> list[Tool]:
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(toolset).__mro__}
    return next(make for name, make in PYDANTIC_AI_CONVERTERS.items() if name in names)(toolset)


def _unknown(thing: Any) -> list[Tool]:
    raise UsageError(
        f"A {type(thing).__name__} of pydantic-ai needs the run of an agent. Give the tools that it contains, or, for "
        "an MCP server, mcp_tools(…)."
    )


def _with_plain_result(function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            return _plain_result(await function(*args, **kwargs))

        return call_async

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _plain_result(function(*args, **kwargs))

    return call


def _plain_result(value: Any) -> Any:
    """Returns the value of a `ToolReturn`, with its content for the model if there is any; other values as they are."""
    if type(value).__module__.partition(".")[0] != "pydantic_ai" or not hasattr(value, "return_value"):
        return value
    return value.return_value if not value.content else {"result": value.return_value, "content": value.content}


class _Arguments:
    """Checks and converts arguments with the validator that pydantic-ai made for a tool."""

    def __init__(self, tool: Any) -> None:
        self._name, self._schema = tool.name, tool.function_schema

    def bind(self, arguments: Json) -> tuple[list[Any], dict[str, Any]]:
        """Returns positional and keyword arguments. Raises `WrongArguments`, which names each wrong one."""
        with wrong_arguments(self._name, arguments) as text:
            values = dict(self._schema.validator.validate_json(text))
        positional = [values.pop(name) for name in self._schema.positional_fields]
        if self._schema.var_positional_field is not None:
            positional += values.pop(self._schema.var_positional_field)
        return positional, values


PYDANTIC_AI_CONVERTERS: Mapping[str, Callable[[Any], list[Tool]]] = {
    "pydantic_ai.tools.Tool": _tool,
    "pydantic_ai.toolsets.function.FunctionToolset": _toolset,
    "pydantic_ai.toolsets.prefixed.PrefixedToolset": _toolset,
    "pydantic_ai.toolsets.renamed.RenamedToolset": _toolset,
    "pydantic_ai.toolsets.combined.CombinedToolset": _toolset,
    "pydantic_ai.toolsets.abstract.AbstractToolset": _unknown,
    "pydantic_ai.tools.ToolDefinition": _unknown,
    "pydantic_ai.agent.abstract.AbstractAgent": _unknown,
}
"""The converters, by the full name of the class; the first that fits is used."""
