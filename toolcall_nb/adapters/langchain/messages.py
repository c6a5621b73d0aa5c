"""LangChain's messages, in each of the forms that they are found in, and the blocks of their content.

Source: langchain_core/messages (1.7): the classes, ``messages_to_dict``, ``load/dump.py`` (``dumpd``), the content
blocks of ``content.py``. A message is a mapping of its fields, whichever form it came in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcall_nb.adapters.assembling import usage_of
from toolcall_nb.adapters.parts import custom, file_event, json_text
from toolcall_nb.adapters.plain import class_names, get, json_value, mapping
from toolcall_nb.core.events import Event, Object

__all__ = [
    "blocks_of",
    "content_text",
    "described",
    "file_of",
    "is_chunk",
    "message_of",
    "messages_in",
    "role_of",
    "spoken",
]

_FIELDS = (
    *("type", "role", "content", "id", "name", "tool_calls", "invalid_tool_calls", "tool_call_chunks", "tool_call_id"),
    *("status", "artifact", "usage_metadata", "response_metadata", "additional_kwargs"),
)
_ROLES = {
    **{"human": "user", "HumanMessage": "user", "HumanMessageChunk": "user"},
    **{"system": "system", "SystemMessage": "system", "SystemMessageChunk": "system", "developer": "system"},
    **{"ai": "assistant", "AIMessage": "assistant", "AIMessageChunk": "assistant"},
    **{"tool": "tool", "ToolMessage": "tool", "ToolMessageChunk": "tool", "function": "tool"},
    **{"user": "user", "assistant": "assistant", "chat": "chat", "ChatMessage": "chat"},
}
_OF_DICTS = frozenset({"human", "system", "ai", "AIMessageChunk", "tool", "function", "chat"})
_REASONS = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence", "eos", "complete"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    **dict.fromkeys(("tool_calls", "tool_use", "function_call"), "tool-calls"),
    **dict.fromkeys(("content_filter", "refusal", "safety", "guardrail_intervened"), "content-filter"),
}
_USAGE = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "total_tokens": "totalTokens",
    "input_token_details.cache_read": "cachedInputTokens",
    "input_token_details.cache_creation": "cacheWriteTokens",
    "output_token_details.reasoning": "reasoningTokens",
}


def message_of(thing: Any) -> Mapping[str, Any] | None:
    """The fields of a message: an object, its JSON in any of LangChain's three forms, or a pair of role and text."""
    if type(thing) is dict:
        return _of_dict(thing)
    if type(thing) is tuple and len(thing) == 2 and isinstance(thing[0], str) and isinstance(thing[1], str):
        return {"type": thing[0], "content": thing[1]} if thing[0] in _ROLES else None
    if ("langchain_core.messages.base", "BaseMessage") in class_names(type(thing)):
        return {name: found for name in _FIELDS if (found := getattr(thing, name, None)) is not None}
    return None


def _of_dict(thing: dict[str, Any]) -> Mapping[str, Any] | None:
    kind, path = thing.get("type"), thing.get("id")
    if thing.get("lc") == 1 and kind == "constructor" and isinstance(path, list) and path:
        known = mapping(thing.get("kwargs"))
        return {"type": path[-1], **known} if path[-1] in _ROLES and "content" in known else None
    if not isinstance(kind, str) or kind not in _OF_DICTS:
        return None
    inner = thing.get("data")
    if type(inner) is dict and "content" in inner:
        return {"type": kind, **inner}
    return thing if "content" in thing and "role" not in thing else None


def messages_in(state: Any) -> list[Any]:
    """What a state, or an update of one, holds under ``messages``; a state that is a list of messages, or one."""
    found = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
    if isinstance(state, list):
        found = state
    if isinstance(found, list | tuple) and message_of(found) is None:
        return [item for item in found if message_of(item) is not None]
    return [found] if message_of(found) is not None else [state] if message_of(state) is not None else []


def role_of(message: Mapping[str, Any]) -> str | None:
    """``user``, ``system``, ``assistant`` or ``tool``; None for what says nothing, such as a removal."""
    role = _ROLES.get(str(message.get("type")))
    if role == "chat":
        role = _ROLES.get(str(message.get("role")), "user")
    return role


def is_chunk(message: Mapping[str, Any]) -> bool:
    """Whether it is a piece of a message."""
    return str(message.get("type")).endswith("Chunk")


def blocks_of(content: Any) -> Iterator[Mapping[str, Any]]:
    """The blocks of a content; a text that stands alone is a block of text."""
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, str):
            yield {"type": "text", "text": item}
        elif isinstance(item, Mapping):
            yield item


def content_text(content: Any) -> str:
    """The content of a tool's answer as text: its texts, one after the other, or its JSON."""
    if isinstance(content, str):
        return content
    texts = [text for block in blocks_of(content) if (text := get(block, "text", str)) is not None]
    return "\n\n".join(texts) if texts else json_text(json_value(content))


def file_of(block: Mapping[str, Any]) -> Event | None:
    """A block of an image, a sound, a film or a file, in LangChain's form or OpenAI's; None for any other."""
    kind = str(block.get("type"))
    if kind == "image_url":
        image = block.get("image_url")
        return file_event("image/*", url=image if isinstance(image, str) else get(image, "url", str))
    if kind not in ("image", "audio", "video", "file", "text-plain"):
        return None
    media_type = get(block, "mime_type", str) or (f"{kind}/*" if kind != "file" else None)
    return file_event(media_type, get(block, "base64", str) or get(block, "data", str), get(block, "url", str))


def spoken(content: Any) -> Iterator[str | Event]:
    """What a person said, block by block."""
    for block in blocks_of(content):
        text = get(block, "text", str)
        if text is None:
            yield file_of(block) or custom("langchain", get(block, "type", str) or "block", json_value(block))
        elif text:
            yield text


def described(message: Mapping[str, Any]) -> Object:
    """What a message says of itself: ``model``, ``usage`` and ``reason``, where it does."""
    known = mapping(message.get("response_metadata"))
    found: Object = {}
    names = ("finish_reason", "stop_reason", "done_reason")
    if reason := next((given for name in names if (given := get(known, name, str))), None):
        found["reason"] = _REASONS.get(reason.lower(), "other")
    if model := get(known, "model_name", str) or get(known, "model", str):
        found["model"] = model
    if usage := usage_of(mapping(message.get("usage_metadata")), _USAGE):
        found["usage"] = {name: count for name, count in usage.items() if count or name.endswith("putTokens")}
    return found
