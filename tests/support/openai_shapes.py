"""Builds chunks, call deltas and replies in the shapes of OpenAI's two APIs."""

from __future__ import annotations

from typing import Any

__all__ = [
    "CREATED",
    "REASONING",
    "Item",
    "call_item",
    "chunk",
    "items_done",
    "message_item",
    "news",
    "piece",
    "reply",
    "whole_response",
]

Item = dict[str, Any]


def chunk(delta: Item | None = None, reason: str | None = None, index: int = 0, **more: Any) -> Item:
    """Returns a chunk of a chat completion with one choice."""
    choice = {"index": index, "delta": delta or {}, "finish_reason": reason}
    return {"id": "c1", "object": "chat.completion.chunk", "model": "gpt-x", "choices": [choice], **more}


def piece(arguments: Any = None, name: str | None = None, call_id: str | None = None, index: int | None = 0) -> Item:
    """Returns one entry of ``tool_calls`` with the given fields."""
    function = {"name": name, "arguments": arguments}
    entry = {
        "index": index,
        "id": call_id,
        "function": {key: value for key, value in function.items() if value is not None},
    }
    return {key: value for key, value in entry.items() if value is not None}


def reply(message: Item, reason: str = "stop") -> Item:
    """Returns a complete chat completion."""
    return {"object": "chat.completion", "choices": [{"message": message, "finish_reason": reason}]}


# The Responses API


def news(kind: str, **fields: Any) -> Item:
    """Returns an event of a response stream; its type has the prefix ``response.``, except ``error``."""
    return {"type": kind if kind == "error" else f"response.{kind}", **fields}


def whole_response(*output: Item, status: str = "completed", **more: Any) -> Item:
    """Returns a complete response."""
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 15,
    }
    return {
        "id": "r1",
        "object": "response",
        "status": status,
        "model": "gpt-x",
        "output": [*output],
        "usage": usage,
        **more,
    }


def message_item(text: str = "Done.", **more: Any) -> Item:
    """Returns a message item of a response."""
    return {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
        **more,
    }


def call_item(arguments: str = '{"q": "cats"}', call_id: str = "call_a", **more: Any) -> Item:
    """Returns a function call item of a response."""
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": "search",
        "arguments": arguments,
        **more,
    }


REASONING = {"type": "reasoning", "id": "rs1", "summary": [{"type": "summary_text", "text": "Cats?"}]}
CREATED = news("created", response={"id": "r1", "model": "gpt-x", "output": []})


def items_done(*items: Item, **more: Any) -> list[Item]:
    """Returns a stream of complete items."""
    ends = [news("output_item.done", output_index=place, item=item) for place, item in enumerate(items)]
    return [CREATED, *ends, news("completed", response=whole_response(*items, **more))]
