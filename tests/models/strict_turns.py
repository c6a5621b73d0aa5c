"""Turns that are sent to strict providers."""

from __future__ import annotations

from typing import Any

from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall
from toolcall_nb.tools import Tool

GO_ON = Message("user", (TextPart("And now?"),))


def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def fails(city: str) -> str:
    """Fails without a message."""
    raise ValueError


def interrupted(city: str) -> str:
    """Is interrupted by the user."""
    raise KeyboardInterrupt


def silent(city: str) -> str:
    """Returns nothing."""
    return ""


TOOLS = [*map(Tool.from_function, (weather, fails, interrupted, silent))]


def call_of(call_id: str, **more: Any) -> ToolCall:
    fields: dict[str, Any] = {"name": "weather", "input": {"city": "Paris"}, "output": "sunny", **more}
    return ToolCall(id=call_id, state=State.OUTPUT_AVAILABLE, **fields)
