"""Converts the `FunctionTool` of the OpenAI Agents SDK. Tools that need the run of an agent are refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

from toolcall_nb.errors import UsageError
from toolcall_nb.tools.definition import Tool, function_origin
from toolcall_nb.tools.schemas.json_schema import SchemaArguments

_NEEDS = {
    "needs_approval": ("asks for approval in an agent's run", "its function, with approval_mode='ask'"),
    "tool_input_guardrails": ("has guardrails, which only an agent's run checks", "a function that checks by itself"),
    "tool_output_guardrails": ("has guardrails, which only an agent's run checks", "a function that checks by itself"),
}


def _tool(tool: Any) -> list[Tool]:
    for attribute, (need, instead) in _NEEDS.items():
        if getattr(tool, attribute, None):
            raise UsageError(f"The Agents SDK tool {tool.name!r} {need}, which does not exist here. Give {instead}.")
    if tool.is_enabled is not True:
        raise UsageError(
            f"The Agents SDK tool {tool.name!r} is enabled only in some runs of an agent (is_enabled). Give a plain "
            "function, or the tool with is_enabled=True."
        )
    schema = {"type": "object", "properties": {}, **tool.params_json_schema}
    made = Tool(
        name=tool.name,
        description=tool.description or "",
        parameters=schema,
        function=_function(tool),
        signature=SchemaArguments(tool.name, schema, trusted=True),
        origin=f"agents {function_origin(getattr(tool, '__wrapped__', type(tool)))} {tool.name}",
        timeout=tool.timeout_seconds,
    )
    return [made]


def _function(tool: Any) -> Callable[..., Any]:
    """Invokes the tool as a run does, in an empty context.

    The SDK's default text for a failure does not say what has happened; here the exception is raised instead.
    """
    if getattr(tool, "_use_default_failure_error_function", False):
        from agents.tool import set_function_tool_failure_error_function

        tool = set_function_tool_failure_error_function(copy.copy(tool), None)

    async def call(**arguments: Any) -> Any:
        from agents.tool_context import ToolContext

        text = json.dumps(arguments)
        context: Any = ToolContext(context=None, tool_name=tool.name, tool_call_id="call", tool_arguments=text)
        return await tool.on_invoke_tool(context, text)

    return call


OPENAI_AGENTS_CONVERTERS: Mapping[str, Callable[[Any], list[Tool]]] = {"agents.tool.FunctionTool": _tool}
