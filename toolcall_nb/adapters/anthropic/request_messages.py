"""Converts messages to a request of Anthropic's Messages API: `to_anthropic`.

Source: anthropic-sdk-python 2.11, ``types/message_create_params.py`` and ``types/content_block_param.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from toolcall_nb.core.call_display import sent_contents
from toolcall_nb.core.events import MISSING, Object
from toolcall_nb.core.json_text import to_strict_json
from toolcall_nb.core.sdk_objects import get
from toolcall_nb.core.transcript import FilePart, Message, Part, ReasoningPart, State, TextPart, ToolCall

_OTHER_CHARACTERS = re.compile(r"[^a-zA-Z0-9_-]")


def to_anthropic(messages: Sequence[Message]) -> Object:
    """Returns ``messages`` and, where there are system messages, ``system``: arguments of ``messages.create``.

    Each call is in the message that requested it, and its result follows in a message of the user: the texts and
    pictures that `toolcall_nb.core.call_display.sent_contents` gives. A call that has not ended is written as
    interrupted. The API wants an object as input; any other input is in its field ``input``. Reasoning is included
    where it is signed. Sources, data, errors, files of the assistant, and what ran inside a call are left out.
    """
    system = "\n\n".join(message.text for message in messages if message.role == "system" and message.text)
    ids = _CallIds()
    request = [written for message in messages for written in _written(message, ids)]
    return {**({"system": system} if system else {}), "messages": request}


class _CallIds:
    """Gives each call an id of the characters that the API allows, and no two calls the same."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def put(self, call: ToolCall) -> ToolCall:
        """Returns the call with its id."""
        allowed = _OTHER_CHARACTERS.sub("_", call.id)
        unique_id = allowed
        while unique_id in self._taken:
            self._taken[allowed] += 1
            unique_id = f"{allowed}_{self._taken[allowed]}"
        self._taken[unique_id] = 1
        return call if unique_id == call.id else replace(call, id=unique_id)


def _written(message: Message, ids: _CallIds) -> Iterator[Object]:
    if message.role == "user":
        blocks: list[Object] = []
        for part in message.parts:
            if isinstance(part, TextPart) and part.text.strip():
                blocks.append({"type": "text", "text": part.text})
            elif isinstance(part, FilePart):
                blocks.append(_file(part))
        if blocks:
            yield {"role": "user", "content": blocks}
    elif message.role == "assistant":
        for step in message.steps:
            for parts in _replies(step.parts):
                yield from _reply(parts, ids)


def _replies(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Yields the parts of a step. What follows calls that the provider ran was written with their results.

    Such a call is written as one of the program's own, whose result is in the next message.
    """
    reply: list[Part] = []
    for part in parts:
        if isinstance(part, ToolCall):
            reply.append(part)
        elif _answer_block(part):
            calls = [each for each in reply if isinstance(each, ToolCall)]
            if calls and all(call.provider_executed for call in calls):
                yield reply
                reply = []
            reply.append(part)
    if reply:
        yield reply


def _reply(parts: Sequence[Part], ids: _CallIds) -> Iterator[Object]:
    with_ids = [ids.put(part) if isinstance(part, ToolCall) else part for part in parts]
    blocks = [_call(part) if isinstance(part, ToolCall) else _answer_block(part) for part in with_ids]
    yield {"role": "assistant", "content": blocks}
    results = [_result(part) for part in with_ids if isinstance(part, ToolCall)]
    if results:
        yield {"role": "user", "content": results}


def _answer_block(part: Part) -> Object | None:
    """Returns a part of an answer as a block; None for one that the API does not take."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text} if part.text.strip() else None
    if not isinstance(part, ReasoningPart):
        return None
    metadata = get(part.provider_metadata, "anthropic", Mapping)
    if (data := get(metadata, "redactedData", str)) is not None:
        return {"type": "redacted_thinking", "data": data}
    signature = get(metadata, "signature", str)
    return None if signature is None else {"type": "thinking", "thinking": part.text, "signature": signature}


def _call(call: ToolCall) -> Object:
    arguments = {} if call.input is MISSING else to_strict_json(call.input)
    arguments = arguments if isinstance(arguments, dict) else {"input": arguments}
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def _result(call: ToolCall) -> Object:
    ended = call if call.is_final else replace(call, state=State.INTERRUPTED)
    sent = sent_contents(ended)
    blocks = [
        {"type": "text", "text": item} if isinstance(item, str) else _file(item)
        for item in sent
        if isinstance(item, FilePart) or item.strip()
    ]
    is_text = all(isinstance(item, str) for item in sent)
    result: Object = {"type": "tool_result", "tool_use_id": call.id, "content": sent[0] if is_text else blocks}
    return result if ended.state is State.OUTPUT_AVAILABLE else {**result, "is_error": True}


def _file(part: FilePart) -> Object:
    is_image = part.media_type.startswith("image/")
    if not is_image and part.media_type != "application/pdf":
        return {"type": "text", "text": f"A file of the type {part.media_type} is at {part.url:.200}"}
    kind = "image" if is_image else "document"
    named = {"title": part.filename} if part.filename and not is_image else {}
    head, _, data = part.url.partition(";base64,")
    if head.startswith("data:") and data:
        source = {"type": "base64", "media_type": head.removeprefix("data:").partition(";")[0], "data": data}
        return {"type": kind, "source": source, **named}
    return {"type": kind, "source": {"type": "url", "url": part.url}, **named}
