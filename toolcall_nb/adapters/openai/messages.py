"""Converts messages and tools to the form of OpenAI's chat API (`to_openai`), which most models accept.

Source: openai-python 3.52, ``types/chat/chat_completion_message_param.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from toolcall_nb.core.events import MISSING, Object
from toolcall_nb.core.json_text import to_strict_json
from toolcall_nb.core.result_text import format_result
from toolcall_nb.core.sdk_objects import get
from toolcall_nb.core.transcript import FilePart, Message, Part, State, TextPart, ToolCall

_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def to_openai(messages: Sequence[Message]) -> list[Object]:
    """Returns the messages as dicts with ``role``, ``content``, ``tool_calls`` and ``tool_call_id``.

    Each call is in the message that requested it and is followed by its ``tool`` message, whose text is that of
    `toolcall_nb.core.result_text.format_result`. A call that has not ended is written as interrupted. The images, sound
    (wav, mp3) and files of the user are included. Reasoning, sources, data, errors and files of the assistant, and
    calls that ran inside another call, are left out, and so are messages that contain nothing else.
    """
    return [written for message in messages for written in _written(message)]


def openai_tool(name: str, description: str, parameters: Mapping[str, Any]) -> Object:
    """Returns a tool as an entry of ``tools``; ``parameters`` is the JSON schema of its input."""
    function = {"name": name, "description": description, "parameters": dict(parameters)}
    return {"type": "function", "function": function}


def _written(message: Message) -> Iterator[Object]:
    match message.role:
        case "system":
            if message.text:
                yield {"role": "system", "content": message.text}
        case "user":
            content = _content(message.parts)
            if content:
                yield {"role": "user", "content": content}
        case "assistant":
            for texts, calls in _requests(message.parts):
                yield from _request(texts, calls)


# The assistant


def _requests(parts: Sequence[Part]) -> Iterator[tuple[list[str], list[ToolCall]]]:
    """Yields the texts and then the calls of each request of a message. Text after a call belongs to the next one."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    call_ids: set[str] = set()
    for part in parts:
        if isinstance(part, ToolCall):
            calls += [part] if part.parent not in call_ids else []
            call_ids.add(part.id)
        elif isinstance(part, TextPart) and part.text:
            if calls:
                yield texts, calls
                texts, calls = [], []
            texts.append(part.text)
    if texts or calls:
        yield texts, calls


def _request(texts: list[str], calls: list[ToolCall]) -> Iterator[Object]:
    reply: Object = {"role": "assistant", "content": "\n\n".join(texts) if texts else None}
    if calls:
        reply["tool_calls"] = [_call(call) for call in calls]
    yield reply
    for call in calls:
        ended = call if call.is_final else replace(call, state=State.INTERRUPTED)
        yield {"role": "tool", "tool_call_id": call.id, "content": format_result(ended)}


def _call(call: ToolCall) -> Object:
    arguments = {} if call.input is MISSING else to_strict_json(call.input)  # servers parse the text: it is never empty
    function = {"name": call.name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": call.id, "type": "function", "function": function}


# The user


def _content(parts: Sequence[Part]) -> str | list[Object]:
    """Returns a text, or a list of parts if there are files."""
    written: list[Object] = []
    for part in parts:
        if isinstance(part, TextPart) and part.text:
            written.append({"type": "text", "text": part.text})
        elif isinstance(part, FilePart):
            written.append(_file(part))
    if all(part["type"] == "text" for part in written):
        return "\n\n".join(part["text"] for part in written)
    return written


def _file(part: FilePart) -> Object:
    if part.media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": part.url}}
    if not part.url.startswith("data:"):
        return {"type": "text", "text": f"A file of the type {part.media_type} is at {part.url}"}
    if part.media_type in _SOUNDS:
        sound = {"data": part.url.partition(",")[2], "format": _SOUNDS[part.media_type]}
        return {"type": "input_audio", "input_audio": sound}
    named = get((part.provider_metadata or {}).get("openai"), "filename", str)
    return {"type": "file", "file": {"file_data": part.url, "filename": named or "file"}}
