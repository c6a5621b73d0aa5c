"""Writes messages and values as the attributes of spans: `recorded_messages` and `recorded_value`.

The form of messages is that of OpenTelemetry's conventions for generative AI (``gen_ai.input.messages`` and
``gen_ai.output.messages``): a role and parts, as JSON text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from toolcall_nb.core.events import MISSING, Json, Object
from toolcall_nb.core.json_text import json_text
from toolcall_nb.core.result_text import format_result
from toolcall_nb.core.transcript import FilePart, Message, Part, ReasoningPart, State, TextPart, ToolCall

_MODALITIES = frozenset({"audio", "image", "text", "video"})


def recorded_value(value: Json) -> str | bool | int | float:
    """Returns a JSON value as an attribute: texts, numbers and truth values as they are, all else as JSON text."""
    return value if isinstance(value, str | bool | int | float) else json_text(value)


def recorded_messages(messages: Iterable[Message], finish_reason: str | None = None) -> str:
    """Returns the messages as JSON text. ``finish_reason`` is that of an answer."""
    records = [made for message in messages for made in _messages(message)]
    if finish_reason is not None:
        records = [{**made, "finish_reason": finish_reason} for made in records]
    return json_text(records)


def _messages(message: Message) -> Iterator[Object]:
    """Yields a message in the conventions' form. Each result of a call is a message of its own, of the role ``tool``.

    The conventions allow several results in one message, but Phoenix reads the last one of them only.
    """
    parts: list[Object] = []
    results: list[Object] = []
    for part in message.parts:
        if results and not isinstance(part, ToolCall):
            yield {"role": message.role, "parts": parts}
            yield from ({"role": "tool", "parts": [result]} for result in results)
            parts, results = [], []
        if (made := _part(part)) is not None:
            parts.append(made)
        if isinstance(part, ToolCall) and part.is_final:
            results.append({"type": "tool_call_response", "id": part.id, "response": _response(part)})
    if parts:
        yield {"role": message.role, "parts": parts}
    yield from ({"role": "tool", "parts": [result]} for result in results)


def _response(call: ToolCall) -> Any:
    is_plain = call.state is State.OUTPUT_AVAILABLE and call.model_text is None and not call.contents
    return call.output if is_plain else format_result(call)


def _part(part: Part) -> Object | None:
    match part:
        case TextPart():
            return {"type": "text", "content": part.text}
        case ReasoningPart():
            return {"type": "reasoning", "content": part.text}
        case ToolCall():
            arguments = part.input_text if part.input is MISSING else part.input
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": arguments}
        case FilePart():
            kind = part.media_type.partition("/")[0]
            file = {"mime_type": part.media_type, "modality": kind if kind in _MODALITIES else "document"}
            head, comma, data = part.url.partition(",")
            if comma and head.startswith("data:") and head.endswith(";base64"):
                return {"type": "blob", **file, "content": data}
            return {"type": "uri", **file, "uri": part.url}
    return None
