"""Converts a conversation into input items of OpenAI's Responses API: `responses_input`.

Source: openai-python 3.52, ``types/responses/response_input_item_param.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from toolcall_nb.core.events import MISSING, Object
from toolcall_nb.core.json_text import to_strict_json
from toolcall_nb.core.result_text import format_result
from toolcall_nb.core.transcript import FilePart, Message, Part, ReasoningPart, State, TextPart, ToolCall


def responses_input(messages: Sequence[Message]) -> list[Any]:
    """Returns the items: messages, calls with their outputs, and reasoning that OpenAI has encrypted.

    Other reasoning, calls inside other calls, calls that the provider ran, sources and errors are left out. The user's
    images and files are included.
    """
    return [item for message in messages for item in _items(message)]


def _items(message: Message) -> Iterator[Object]:
    if message.role != "assistant":
        content = _content(message.parts) if message.role == "user" else message.text
        if content:
            yield {"role": message.role, "content": content}
        return
    known: set[str] = set()
    reasoning: list[Object] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            is_nested = part.parent in known
            known.add(part.id)
            if is_nested or part.provider_executed:
                continue
        found = list(_answer_items(part))
        if isinstance(part, ReasoningPart):
            reasoning += found  # an item has to follow: "provided without its required following item"
        elif found:
            yield from reasoning
            yield from found
            reasoning = []


def _answer_items(part: Part) -> Iterator[Object]:
    match part:
        case TextPart() if part.text:
            yield {"role": "assistant", "content": part.text}
        case ReasoningPart():
            own: Any = (part.provider_metadata or {}).get("openai")
            if isinstance(own, dict) and own.get("encryptedContent"):
                summary = [{"type": "summary_text", "text": part.text}] if part.text else []
                encrypted = own["encryptedContent"]
                yield {"type": "reasoning", "id": own.get("itemId"), "summary": summary, "encrypted_content": encrypted}
        case ToolCall():
            arguments = {} if part.input is MISSING else to_strict_json(part.input)
            text = json.dumps(arguments, ensure_ascii=False)
            yield {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": text}
            ended = part if part.is_final else replace(part, state=State.INTERRUPTED)
            yield {"type": "function_call_output", "call_id": part.id, "output": format_result(ended)}


def _content(parts: Sequence[Part]) -> str | list[Object]:
    """Returns a text, or a list of parts if there are files."""
    content: list[Object] = []
    for part in parts:
        if isinstance(part, TextPart) and part.text:
            content.append({"type": "input_text", "text": part.text})
        elif isinstance(part, FilePart) and part.media_type.startswith("image/"):
            content.append({"type": "input_image", "image_url": part.url, "detail": "auto"})
        elif isinstance(part, FilePart):
            is_data = part.url.startswith("data:")
            about = {"filename": "file", "file_data": part.url} if is_data else {"file_url": part.url}
            content.append({"type": "input_file", **about})
    if all(part["type"] == "input_text" for part in content):
        return "\n\n".join(part["text"] for part in content)
    return content
