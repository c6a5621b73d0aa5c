"""Converts tools of LangChain: `BaseTool`, `StructuredTool`, those that its ``@tool`` makes, and toolkits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolcall_nb.core.events import Object
from toolcall_nb.errors import UsageError
from toolcall_nb.tools.definition import Tool, function_origin
from toolcall_nb.tools.execution.runner import Binding
from toolcall_nb.tools.schemas.json_schema import SchemaArguments
from toolcall_nb.tools.schemas.pydantic_types import ModelArguments


def _tool(tool: Any) -> list[Tool]:
    all_fields = getattr(tool.args_schema, "model_fields", {})
    model_fields = getattr(tool.tool_call_schema, "model_fields", {})  # without those that LangGraph fills in
    if injected := sorted({*all_fields, *getattr(tool, "_injected_args_keys", ())} - {*model_fields}):
        raise UsageError(
            f"The LangChain tool {tool.name!r} takes {', '.join(map(repr, injected))}, which LangGraph fills in while "
            "a graph runs. Give a function that takes only what the model writes."
        )
    schema, binding = _arguments(tool)
    source = getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)
    made = Tool(
        name=tool.name,
        description=tool.description,
        parameters={"type": "object", "properties": {}, **schema},
        function=_function(tool),
        signature=binding,
        origin=f"langchain {function_origin(source)}",
    )
    return [made]


def _function(tool: Any) -> Callable[..., Any]:
    """Calls the tool through its ``invoke``, so that callbacks, validators and error handlers work as in LangChain."""

    def call(**arguments: Any) -> Any:
        return tool.invoke(arguments)

    async def call_async(**arguments: Any) -> Any:
        return await tool.ainvoke(arguments)

    is_async = getattr(tool, "coroutine", None) is not None and getattr(tool, "func", None) is None
    return call_async if is_async else call


def _arguments(tool: Any) -> tuple[Object, Binding]:
    if tool.args_schema is None and type(tool).__name__ == "Tool":  # a function of one string, with any name
        described = {"type": "object", "properties": tool.args, "required": [*tool.args]}
        return described, SchemaArguments(tool.name, described, trusted=True)
    schema = tool.tool_call_schema
    if isinstance(schema, Mapping):
        described = dict(schema)
        return described, SchemaArguments(tool.name, described, trusted=True)
    if hasattr(schema, "model_json_schema"):
        described = dict(schema.model_json_schema())
        described.pop("description", None)
        return described, ModelArguments(tool.name, schema)
    described = dict(schema.schema())  # a model of pydantic's first version
    return described, SchemaArguments(tool.name, described, trusted=True)


LANGCHAIN_CONVERTERS: Mapping[str, Callable[[Any], list[Tool]]] = {
    "langchain_core.tools.base.BaseTool": _tool,
    "langchain_core.tools.base.BaseToolkit": lambda toolkit: [
        made for tool in toolkit.get_tools() for made in _tool(tool)
    ],
}
