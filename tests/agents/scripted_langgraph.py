"""Agents of LangGraph with scripted replies, for the tests of several rooms."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver

from tests.support.graphs import Streaming, add


class Asked(Streaming):
    """Records the messages of each request."""

    asked: list[list[BaseMessage]]

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _stream(self, messages: Any, *args: Any, **others: Any) -> Any:
        self.asked.append([*messages])
        return super()._stream(messages, *args, **others)


def scripted(*replies: AIMessage | str) -> Asked:
    return Asked(messages=iter(replies), asked=[])


def calls(name: str, *arguments: dict[str, Any]) -> AIMessage:
    """Returns a reply with calls of a tool, whose ids are the tool's name and a number."""
    made = [
        {"name": name, "args": given, "id": f"{name}-{number}", "type": "tool_call"}
        for number, given in enumerate(arguments, 1)
    ]
    return AIMessage("Let me see.", tool_calls=made)


def remembering(*replies: AIMessage | str, saver: Any = None, **settings: Any) -> tuple[Any, Asked]:
    model = scripted(*replies)
    return create_agent(model, [add], checkpointer=saver or InMemorySaver(), **settings), model
