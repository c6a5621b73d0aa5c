"""One conversation of several steps, as each format has it."""

from __future__ import annotations

from typing import Any

Item = dict[str, Any]


_CONNECTOR = {"id": "t1", "name": "web_search"}


_REFERENCE = {"type": "tool_reference", "tool": "web_search", "title": "A", "url": "https://a.example"}


_FUNCTION = {"type": "function.call.delta", "id": "f1", "name": "f", "tool_call_id": "c1"}


CONVERSATION: list[Item] = [
    {"type": "conversation.response.started", "conversation_id": "conv"},
    {"type": "tool.execution.started", **_CONNECTOR, "arguments": '{"q": "ca'},
    {"type": "tool.execution.delta", **_CONNECTOR, "arguments": 'ts"}'},
    {"type": "tool.execution.done", **_CONNECTOR, "info": {"found": 1}},
    {"type": "message.output.delta", "id": "m", "content": "Cats ", "model": "mistral-x"},
    {"type": "message.output.delta", "id": "m", "content": _REFERENCE},
    {"type": "message.output.delta", "id": "m", "content": {"type": "text", "text": "sleep."}},
    {**_FUNCTION, "arguments": '{"q"'},
    {**_FUNCTION, "arguments": ": 1}"},
    {"type": "agent.handoff.started", "id": "h", "previous_agent_id": "a", "previous_agent_name": "A"},
    {
        "type": "conversation.response.done",
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
    },
]
