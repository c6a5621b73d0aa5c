"""Builds small replies in each provider's wire format, written by hand from its documentation."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["NAMES", "call_reply", "text_reply"]

NAMES = {
    "openai_chat": ("openai-chat:gpt-4o", "/v1"),
    "openai_responses": ("openai:gpt-5", "/v1"),
    "anthropic": ("anthropic:claude-sonnet-5", ""),
    "google": ("google:gemini-2.5-flash", ""),
}
"""By wire, the model's name and the path that its base URL adds to the server's address."""

_Json = dict[str, Any]


def text_reply(wire: str, text: str) -> str:
    """Returns a reply with this text."""
    match wire:
        case "openai_chat":
            return _chat([{"role": "assistant", "content": text}], "stop")
        case "openai_responses":
            return _responses(_message_item(text), [{"type": "response.output_text.delta", "delta": text}])
        case "anthropic":
            return _anthropic({"type": "text", "text": ""}, {"type": "text_delta", "text": text}, "end_turn")
    return _google({"text": text})


def call_reply(wire: str, call_id: str, name: str, arguments: _Json) -> str:
    """Returns a reply with one tool call. Google's has no id."""
    written = json.dumps(arguments)
    match wire:
        case "openai_chat":
            function = {"name": name, "arguments": ""}
            begin: _Json = {"index": 0, "id": call_id, "type": "function", "function": function}
            more = {"index": 0, "function": {"name": "", "arguments": written}}  # Mistral's package requires the name
            return _chat([{"role": "assistant", "tool_calls": [begin]}, {"tool_calls": [more]}], "tool_calls")
        case "openai_responses":
            item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name}
            delta = {"type": "response.function_call_arguments.delta", "delta": written}
            return _responses({**item, "arguments": written}, [delta])
        case "anthropic":
            block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
            return _anthropic(block, {"type": "input_json_delta", "partial_json": written}, "tool_use")
    return _google({"functionCall": {"name": name, "args": arguments}, "thoughtSignature": "c2lnbmVk"})


def _chat(deltas: list[_Json], reason: str) -> str:
    head = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    choices: list[_Json] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    chunks: list[_Json] = [{**head, "choices": [choice]} for choice in choices]
    last = {**head, "choices": [], "usage": usage, "x_groq": {"id": "req_1", "usage": usage}}
    return _lines([*chunks, last]) + "data: [DONE]\n\n"


def _message_item(text: str) -> _Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


def _responses(item: _Json, deltas: list[_Json]) -> str:
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5", "tools": [], "output": []}
    place = {"output_index": 0, "item_id": item["id"], "content_index": 0}
    empty: _Json = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
    usage = {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    events: list[_Json] = [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, **empty}},
        *({**delta, **place} for delta in deltas),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {**response, "status": "completed", "output": [item], "usage": {**usage, **details}},
        },
    ]
    return _named([{**event, "sequence_number": number} for number, event in enumerate(events)])


def _anthropic(block: _Json, delta: _Json, reason: str) -> str:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": []}
    start = {**message, "stop_reason": None, "usage": {"input_tokens": 7, "output_tokens": 1}}
    return _named(
        [
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ]
    )


def _google(part: _Json) -> str:
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 5, "totalTokenCount": 12}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return _lines([{"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash"}])


def _lines(items: list[_Json]) -> str:
    return "".join(f"data: {json.dumps(item)}\n\n" for item in items)


def _named(items: list[_Json]) -> str:
    return "".join(f"event: {item['type']}\ndata: {json.dumps(item)}\n\n" for item in items)
