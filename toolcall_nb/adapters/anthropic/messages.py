"""Reads lists of messages as the Anthropic SDK takes them: ``messages=[{"role": ..., "content": ...}, ...]``.

Source: anthropic-sdk-python 2.11, ``types/message_param.py`` and ``types/content_block_param.py``. A list that contains
only plain text cannot be told from the lists of other providers, and is read as OpenAI's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolcall_nb.adapters.anthropic.stream import AnthropicAdapter, anthropic_file_event, is_message, result_events
from toolcall_nb.adapters.base import Format
from toolcall_nb.adapters.message_lists import BlockMessages, read_message_list
from toolcall_nb.core.sdk_objects import dump, first_items, get, type_name

_ONLY_HERE = frozenset(
    {
        *("tool_use", "tool_result", "server_tool_use", "mcp_tool_use", "mcp_tool_result", "web_search_tool_result"),
        *("thinking", "redacted_thinking", "document", "search_result", "container_upload", "compaction"),
        *("web_fetch_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result"),
        *("text_editor_code_execution_tool_result", "tool_search_tool_result", "advisor_tool_result"),
    }
)
"""Types of blocks that no other provider has."""


def anthropic_messages(turn: Callable[[], AnthropicAdapter] = AnthropicAdapter) -> BlockMessages[AnthropicAdapter]:
    """Returns a reader of messages, one by one; ``turn`` creates the adapter of each turn of the assistant."""
    return BlockMessages(
        "anthropic",
        turn=turn,
        assistant="assistant",
        item=lambda message: {"type": "message_start", "message": {**message, "content": _blocks(message)}},
        blocks=_blocks,
        is_result=lambda block: block.get("type") == "tool_result",
        result=lambda turn, block: result_events(turn.message, block),
        result_id=lambda block: get(block, "tool_use_id", str) or None,
        file=anthropic_file_event,
    )


def _blocks(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [dump(block) for block in content] if isinstance(content, list | tuple) else []


def _is_ours(message: Any) -> bool:
    if not isinstance(message, Mapping):
        return is_message(message)
    if message.get("role") not in ("user", "assistant", "system") or "parts" in message:
        return False
    return any(_is_block(block) for block in first_items(message.get("content")))


def _is_block(block: Any) -> bool:
    if not isinstance(block, Mapping):
        return type_name(block).startswith("anthropic.types.")
    kind = get(block, "type", str)
    is_image = kind == "image" and isinstance(block.get("source"), Mapping)
    is_cited = kind == "text" and "citations" in block
    return (kind in _ONLY_HERE and (kind != "thinking" or "thinking" in block)) or is_image or is_cited


ANTHROPIC_MESSAGES = Format(
    name="anthropic-messages",
    title="a list of Anthropic messages",
    adapter=AnthropicAdapter,
    is_whole=lambda thing: any(_is_ours(message) for message in first_items(thing)),
    whole=lambda messages: read_message_list(messages, anthropic_messages()),
)
