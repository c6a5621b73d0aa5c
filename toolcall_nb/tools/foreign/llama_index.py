"""Converts tools of LlamaIndex: `FunctionTool` and other tools, and tool specs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from toolcall_nb.errors import UsageError
from toolcall_nb.tools.definition import Tool, function_origin
from toolcall_nb.tools.execution.runner import Binding
from toolcall_nb.tools.results.failures import ToolFailed
from toolcall_nb.tools.schemas.json_schema import SchemaArguments
from toolcall_nb.tools.schemas.pydantic_types import ModelArguments


def _tool(tool: Any) -> list[Tool]:
    metadata = tool.metadata
    name = metadata.get_name()
    if getattr(tool, "requires_context", False):
        raise UsageError(
            f"The LlamaIndex tool {name!r} takes the context of a workflow, which does not exist here. "
            "Give a function that takes only what the model writes."
        )
    schema = {"type": "object", "properties": {}, **metadata.get_parameters_dict()}
    model = metadata.fn_schema
    binding: Binding = SchemaArguments(name, schema, trusted=True) if model is None else ModelArguments(name, model)
    source = getattr(tool, "real_fn", type(tool))
    made = Tool(
        name=name,
        description=metadata.description or "",
        parameters=schema,
        function=_function(tool, is_async=inspect.iscoroutinefunction(source)),
        signature=binding,
        origin=f"llama_index {function_origin(source)} {name}",
    )
    return [made]


def _function(tool: Any, *, is_async: bool) -> Callable[..., Any]:
    """Calls the tool itself, so that its fixed parameters and callbacks work as in LlamaIndex."""

    def call(**arguments: Any) -> Any:
        return _value(tool(**arguments))

    async def call_async(**arguments: Any) -> Any:
        return _value(await tool.acall(**arguments))

    return call_async if is_async else call


def _value(output: Any) -> Any:
    """Returns what the function returned; the text of LlamaIndex's own objects, or that a callback put in its place."""
    if output.is_error:
        raise ToolFailed(output.content)
    value = output.raw_output
    is_own = type(value).__module__.partition(".")[0] == "llama_index"
    return value if output.content in (str(value), "") and not is_own else output.content


LLAMA_INDEX_CONVERTERS: Mapping[str, Callable[[Any], list[Tool]]] = {
    "llama_index.core.tools.types.BaseTool": _tool,
    "llama_index.core.tools.tool_spec.base.BaseToolSpec": lambda spec: [
        made for tool in spec.to_tool_list() for made in _tool(tool)
    ],
}
