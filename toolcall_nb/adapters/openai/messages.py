"""Converts messages and tools to the form of OpenAI's chat API (`to_openai`), which most models accept.

Source: openai-python 3.52, ``types/chat/chat_completion_message_param.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import zip_longest
from operator import is_
from typing import Any

from msgspec.structs import replace

from toolcall_nb.core.events import MISSING, Object
from toolcall_nb.core.json_text import to_strict_json
from toolcall_nb.core.result_text import format_result
from toolcall_nb.core.transcript import FilePart, Message, Part, State, TextPart, ToolCall

_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def to_openai(messages: Sequence[Message]) -> list[Object]:
    """Returns the messages as dicts with ``role``, ``content``, ``tool_calls`` and ``tool_call_id``.

    Each call is in the message that requested it and is followed by its ``tool`` message, whose text is that of
    `toolcall_nb.core.result_text.format_result`. A call that has not ended is written as interrupted. The images, sound
    (wav, mp3) and files of the user are included. Reasoning, sources, data, errors and files of the assistant, and
    what ran inside a call, are left out, and so are messages that contain nothing else. The dicts are the caller's own.
    """
    return [_copied(each) for message in messages for each in message.once(_written)]


class RequestsOfChat:
    """Converts the messages of one request after the other, as `to_openai` does, but only those that are new.

    The dicts of a request are those of the request before, except those that their reader has changed meanwhile.
    """

    def __init__(self) -> None:
        self._messages: list[Message] = []  # of the last request, without its last one, which may still grow
        self._written: list[Object] = []  # the dicts that say the same as these messages
        self._read: list[Object] = []  # copies of the dicts of the last request, which the reader may change

    def add(self, messages: Sequence[Message]) -> list[Object]:
        """Returns the dicts of the next request."""
        if len(self._messages) >= len(messages) or not all(map(is_, self._messages, messages)):
            self._messages, self._written = [], []  # another chat's, or one that was cut
        for message in messages[len(self._messages) : -1]:
            self._messages.append(message)
            self._written += message.once(_written)
        written = [*self._written, *(each for message in messages[-1:] for each in message.once(_written))]
        copies = zip_longest(self._read[: len(written)], written)
        try:
            self._read = [copy if copy == each else _copied(each) for copy, each in copies]
        except Exception:  # the reader put something in that cannot be compared, as an array
            self._read = [*map(_copied, written)]
        return [*self._read]


def _copied(message: Object) -> Object:
    """Returns a copy of a message, for a caller who may change it."""
    copied = message.copy()
    if "tool_calls" in message:
        copied["tool_calls"] = [{**call, "function": {**call["function"]}} for call in message["tool_calls"]]
    if type(message["content"]) is list:
        copied["content"] = deepcopy(message["content"])
    return copied


def openai_tool(name: str, description: str, parameters: Mapping[str, Any]) -> Object:
    """Returns a tool as an entry of ``tools``; ``parameters`` is the JSON schema of its input."""
    function = {"name": name, "description": description, "parameters": dict(parameters)}
    return {"type": "function", "function": function}


def _written(message: Message) -> list[Object]:
    if message.role == "assistant":
        return [each for step in message.steps for reply in _replies(step.parts) for each in _reply(*reply)]
    content = message.text if message.role == "system" else _content(message.parts)
    return [{"role": message.role, "content": content}] if content else []


# The assistant


def _replies(parts: Sequence[Part]) -> Iterator[tuple[list[str], list[ToolCall]]]:
    """Yields the texts and the calls of a step. Text after calls that the provider ran was written with their results.

    The API has no place for a result inside of a reply, so such text is in a message of its own.
    """
    texts: list[str] = []
    calls: list[ToolCall] = []
    for part in parts:
        if isinstance(part, ToolCall):
            calls.append(part)
        elif isinstance(part, TextPart) and part.text:
            if calls and all(call.provider_executed for call in calls):
                yield texts, calls
                texts, calls = [], []
            texts.append(part.text)
    if texts or calls:
        yield texts, calls


def _reply(texts: list[str], calls: list[ToolCall]) -> Iterator[Object]:
    reply: Object = {"role": "assistant", "content": "\n\n".join(texts) if texts else None}
    if calls:
        reply["tool_calls"] = [call.once(_call) for call in calls]
    yield reply
    for call in calls:
        yield {"role": "tool", "tool_call_id": call.id, "content": call.once(_result)}


def _result(call: ToolCall) -> str:
    return format_result(call if call.is_final else replace(call, state=State.INTERRUPTED))


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
    return {"type": "file", "file": {"file_data": part.url, "filename": part.filename or "file"}}
