"""Agents of smolagents with scripted replies, for the tests of several rooms."""

from __future__ import annotations

from typing import Any

from smolagents import Model, Tool, ToolCallingAgent
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
)
from smolagents.monitoring import TokenUsage


class Scripted(Model):  # type: ignore[misc]
    """A model of smolagents that gives a list of replies: text, or a text and calls (name and arguments)."""

    def __init__(self, *replies: str | tuple[str, list[tuple[str, str]]]) -> None:
        super().__init__()
        self.replies = list(replies)
        self.asked: list[list[ChatMessage]] = []
        self.ids = "{name}-{place}"

    def _reply(self, messages: Any) -> tuple[str, list[tuple[str, str]]]:
        self.asked.append([*messages])
        reply = self.replies.pop(0)
        return (reply, []) if isinstance(reply, str) else reply

    def generate(self, messages: Any, *_: Any, **__: Any) -> ChatMessage:
        text, calls = self._reply(messages)
        made = [
            ChatMessageToolCall(
                ChatMessageToolCallFunction(given, name), self.ids.format(name=name, place=place), "function"
            )
            for place, (name, given) in enumerate(calls, 1)
        ]
        return ChatMessage(MessageRole.ASSISTANT, text, made or None, token_usage=TokenUsage(3, 4))


class Add(Tool):  # type: ignore[misc]
    name = "add"
    description = "Adds two numbers."
    inputs = {"x": {"type": "integer", "description": "one"}, "y": {"type": "integer", "description": "another"}}  # noqa: RUF012
    output_type = "integer"

    def forward(self, x: int, y: int) -> int:
        if x < 0:
            raise ValueError("too small")
        return x + y


ADD = ("add", '{"x": 1, "y": 2}')


ANSWER = ("final_answer", '{"answer": "Three."}')


REPLIES = (("Let me see.", [ADD]), ("", [ANSWER]))


def adder(model: Model, **about: Any) -> ToolCallingAgent:
    return ToolCallingAgent(tools=[Add()], model=model, **about)
