"""Reads LangChain's messages in each of their forms as mappings of their fields, and the blocks of their content.

Source: langchain_core/messages (1.7): the classes, ``messages_to_dict``, ``load/dump.py`` (``dumpd``), the content
blocks of ``content.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcall_nb.adapters.anthropic.stream import anthropic_file_event
from toolcall_nb.adapters.common_events import custom_part_event, file_event, usage_of
from toolcall_nb.adapters.openai.content import part_file_event
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.sdk_objects import as_json_text, as_json_value, as_mapping, class_names, get, nonempty

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
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "totalTokens": "total_tokens",
    "cachedInputTokens": "input_token_details.cache_read",
    "cacheWriteTokens": "input_token_details.cache_creation",
    "reasoningTokens": "output_token_details.reasoning",
}


def message_of(thing: Any) -> Mapping[str, Any] | None:
    """Returns the fields of a message: an object, JSON in any of LangChain's three forms, or a (role, text) pair."""
    if type(thing) is dict:
        return _of_dict(thing)
    if type(thing) is tuple and len(thing) == 2 and isinstance(thing[0], str) and isinstance(thing[1], str):
        return {"type": thing[0], "content": thing[1]} if thing[0] in _ROLES else None
    if ("langchain_core.messages.base", "BaseMessage") in class_names(type(thing)):
        return {name: value for name in _FIELDS if (value := getattr(thing, name, None)) is not None}
    return None


def _of_dict(thing: dict[str, Any]) -> Mapping[str, Any] | None:
    kind, path = thing.get("type"), thing.get("id")
    if thing.get("lc") == 1 and kind == "constructor" and isinstance(path, list) and path and isinstance(path[-1], str):
        fields = as_mapping(thing.get("kwargs"))
        return {"type": path[-1], **fields} if path[-1] in _ROLES and "content" in fields else None
    if not isinstance(kind, str) or kind not in _OF_DICTS:
        return None
    inner = thing.get("data")
    if type(inner) is dict and "content" in inner:
        return {"type": kind, **inner}
    return thing if "content" in thing and "role" not in thing else None


def messages_in(state: Any) -> list[Mapping[str, Any]]:
    """Returns the messages in a state or an update, which may also be a message or a list of messages itself."""
    messages = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
    if isinstance(state, list):
        messages = state
    if isinstance(messages, list | tuple) and message_of(messages) is None:
        return [message for item in messages if (message := message_of(item)) is not None]
    single = message_of(messages) or message_of(state)
    return [] if single is None else [single]


def role_of(message: Mapping[str, Any]) -> str | None:
    """Returns ``user``, ``system``, ``assistant`` or ``tool``; None for other messages, such as a removal."""
    role = _ROLES.get(str(message.get("type")))
    if role == "chat":
        role = _ROLES.get(str(message.get("role")), "user")
    return role


def is_chunk(message: Mapping[str, Any]) -> bool:
    """Whether it is a chunk of a message."""
    return str(message.get("type")).endswith("Chunk")


def blocks_of(content: Any) -> Iterator[Mapping[str, Any]]:
    """Yields the blocks of a message's content; a string is a block of text."""
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, str):
            yield {"type": "text", "text": item}
        elif isinstance(item, Mapping):
            yield item


def content_text(content: Any) -> str:
    """Returns the content of a tool message as text: the texts of its blocks, or else its JSON."""
    if isinstance(content, str):
        return content
    texts = [text for block in blocks_of(content) if (text := get(block, "text", str)) is not None]
    return "\n\n".join(texts) if texts else as_json_text(as_json_value(content))


def langchain_file_event(block: Mapping[str, Any]) -> Event | None:
    """Returns the event of a block with a file in LangChain's form or a provider's, which it sends as it is; else None.

    The name of the file is in the block itself, in its ``extras`` or, in the older form, in its ``metadata``.
    """
    kind, file = str(block.get("type")), None
    if kind in ("image", "audio", "video", "file", "text-plain"):
        media_type = get(block, "mime_type", str) or (f"{kind}/*" if kind != "file" else None)
        fields = (block, as_mapping(block.get("extras")), as_mapping(block.get("metadata")))
        name = next((name for each in fields if (name := nonempty(each, "filename"))), None)
        content = get(block, "base64", str) or get(block, "data", str)
        file = file_event(media_type, content, get(block, "url", str), filename=name)
    return file or part_file_event(block) or anthropic_file_event(block)


def human_parts(content: Any) -> Iterator[str | Event]:
    """Yields the texts and files of a message from the user or the system."""
    for block in blocks_of(content):
        text = get(block, "text", str)
        if text is None:
            kind = get(block, "type", str) or "block"
            yield langchain_file_event(block) or custom_part_event("langchain", kind, block)
        elif text:
            yield text


def response_details(message: Mapping[str, Any]) -> Object:
    """Returns the ``model``, ``usage``, ``reason`` and ``response_id`` that a message states."""
    metadata = as_mapping(message.get("response_metadata"))
    details: Object = {}
    names = ("finish_reason", "stop_reason", "done_reason")
    if reason := next((value for name in names if (value := get(metadata, name, str))), None):
        details["reason"] = _REASONS.get(reason.lower(), "other")
    if model := get(metadata, "model_name", str) or get(metadata, "model", str):
        details["model"] = model
    if response_id := get(metadata, "id", str):
        details["response_id"] = response_id
    if usage := usage_of(as_mapping(message.get("usage_metadata")), _USAGE):
        details["usage"] = {name: count for name, count in usage.items() if count or name.endswith("putTokens")}
    return details
