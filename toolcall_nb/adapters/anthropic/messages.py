"""Lists of messages as the Anthropic SDK takes them: ``messages=[{"role": ..., "content": ...}, ...]``.

Source: anthropic-sdk-python 2.11, ``types/message_param.py`` and ``types/content_block_param.py``. A list that holds
nothing but text is told from those of other providers by nobody, and read as one of OpenAI's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from toolcall_nb.adapters.anthropic.blocks import PROVIDER, result_events
from toolcall_nb.adapters.anthropic.stream import AnthropicAdapter, is_message
from toolcall_nb.adapters.base import Format, never
from toolcall_nb.adapters.parts import custom, file_event
from toolcall_nb.adapters.plain import get, mapping, plain, type_name
from toolcall_nb.adapters.turns import Turns, first_of
from toolcall_nb.core.events import Event

__all__ = ["FORMAT"]

_ONLY_HERE = frozenset(
    {
        *("tool_use", "tool_result", "server_tool_use", "mcp_tool_use", "mcp_tool_result", "web_search_tool_result"),
        *("thinking", "redacted_thinking", "document", "search_result", "container_upload", "compaction"),
        *("web_fetch_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result"),
        *("text_editor_code_execution_tool_result", "tool_search_tool_result", "advisor_tool_result"),
    }
)


def _events(messages: Iterable[Any]) -> list[Event]:
    turns = Turns(AnthropicAdapter)
    for given in messages:
        message = mapping(plain(given))
        if message.get("role") == "assistant":
            turns.assistant({"type": "message_start", "message": {**message, "content": _blocks(message)}})
        else:
            turns.other(str(message.get("role")), list(_user_parts(turns, message)))
    turns.end()
    return turns.events


def _blocks(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [plain(block) for block in content] if isinstance(content, list | tuple) else []


def _user_parts(turns: Turns[AnthropicAdapter], message: Mapping[str, Any]) -> Iterable[str | Event]:
    """What a person said; results that stand with it go to their calls."""
    for given in _blocks(message):
        block = mapping(given)
        kind = get(block, "type", str) or "unknown"
        if kind == "tool_result" and turns.answer(partial(_result, block)):
            continue
        text = get(block, "text", str)
        if kind == "text" and text is not None:
            yield text
        else:
            yield _file(block) or custom(PROVIDER, kind, dict(block))


def _result(block: Mapping[str, Any], turn: AnthropicAdapter) -> list[Event]:
    return result_events(turn.message, block)


def _file(block: Mapping[str, Any]) -> Event | None:
    source = mapping(block.get("source"))
    kind = get(block, "type", str) or ""
    media_type = get(source, "media_type", str) or {"image": "image/*", "document": "application/pdf"}.get(kind)
    match get(source, "type", str):
        case "base64":
            return file_event(media_type, source.get("data"))
        case "text":
            return file_event("text/plain", str(source.get("data")).encode("utf-8", "replace"))
        case "url":
            return file_event(media_type, url=get(source, "url", str))
        case _:
            return None


def _is_list(thing: Any) -> bool:
    return any(_is_ours(message) for message in first_of(thing))


def _is_ours(message: Any) -> bool:
    if not isinstance(message, Mapping):
        return is_message(message)
    if message.get("role") not in ("user", "assistant", "system") or "parts" in message:
        return False
    return any(_is_our_block(block) for block in first_of(message.get("content")))


def _is_our_block(block: Any) -> bool:
    if not isinstance(block, Mapping):
        return type_name(block).startswith("anthropic.types.")
    kind = get(block, "type", str)
    is_image = kind == "image" and isinstance(block.get("source"), Mapping)
    return (kind in _ONLY_HERE and (kind != "thinking" or "thinking" in block)) or is_image


FORMAT = Format(
    name="anthropic-messages",
    title="a list of Anthropic messages",
    is_item=never,
    adapter=AnthropicAdapter,
    is_whole=_is_list,
    whole=_events,
)
