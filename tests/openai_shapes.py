"""Chunks, pieces of calls, replies in the shapes of OpenAI's two APIs."""

from __future__ import annotations

from typing import Any

__all__ = ["Item", "chunk", "piece", "reply"]

Item = dict[str, Any]


def chunk(delta: Item | None = None, reason: str | None = None, index: int = 0, **more: Any) -> Item:
    """A chunk of a chat completion with one choice."""
    choice = {"index": index, "delta": delta or {}, "finish_reason": reason}
    return {"id": "c1", "object": "chat.completion.chunk", "model": "gpt-x", "choices": [choice], **more}


def piece(arguments: Any = None, name: str | None = None, call_id: str | None = None, index: int | None = 0) -> Item:
    """One entry of ``tool_calls``, with what is given."""
    function = {"name": name, "arguments": arguments}
    entry = {
        "index": index,
        "id": call_id,
        "function": {key: value for key, value in function.items() if value is not None},
    }
    return {key: value for key, value in entry.items() if value is not None}


def reply(message: Item, reason: str = "stop") -> Item:
    """A whole chat completion."""
    return {"object": "chat.completion", "choices": [{"message": message, "finish_reason": reason}]}
