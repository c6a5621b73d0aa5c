"""Agents of pydantic-ai with scripted replies, for the tests of several rooms."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel


class Scripted:
    """A model that calls each tool in ``calls`` once, all in its first reply, and then reports the results."""

    def __init__(self, **calls: str) -> None:
        self.calls = calls
        self.requests: list[list[ModelMessage]] = []
        self.tools: list[list[str]] = []
        self.model = FunctionModel(stream_function=self._reply)

    async def _reply(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        self.requests.append(list(messages))
        self.tools.append([tool.name for tool in info.function_tools])
        returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        if returns:
            yield "Results: "
            yield ", ".join(str(part.content) for part in returns)
            return
        yield {0: DeltaThinkingPart(content="Which tools?", signature="signed")}
        yield "Let me see."
        for number, (name, arguments) in enumerate(self.calls.items(), 2):
            yield {number: DeltaToolCall(name=name, json_args=arguments[:4], tool_call_id=f"id-{name}")}
            yield {number: DeltaToolCall(json_args=arguments[4:])}


def weather(city: str) -> str:
    """Returns the weather of a city."""
    return f"sunny in {city}"


LYON = '{"city": "Lyon"}'
