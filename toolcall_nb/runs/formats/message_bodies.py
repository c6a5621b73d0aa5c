"""Reads a conversation out of a record, whatever field holds it: `has_conversation` and `read_conversation`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from toolcall_nb.adapters import format_of_whole
from toolcall_nb.adapters.message_lists import prompt_events
from toolcall_nb.adapters.openai import OpenAIMessages
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.sdk_objects import as_mapping, get
from toolcall_nb.core.transcript import Message, Transcript
from toolcall_nb.core.usage import RequestUsage, read_token_counts, to_metadata
from toolcall_nb.runs.formats.sharegpt import is_sharegpt, openai_messages
from toolcall_nb.runs.run_facts import RunFacts, assemble

_LISTS = ("messages", "contents", "conversations", "conversation", "traj", "history", "input")
_REQUESTS = ("request", "body", "params")
"""The fields of a record that hold the body of a request."""

_SYSTEM = ("system", "systemInstruction", "system_instruction", "instructions")
_CONTENT = ("content", "parts", "tool_calls", "function_call", "toolCalls")
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function", "model"})
_REPLY_CONTENT = frozenset({"choices", "content", "candidates", "output"})
_LOOK_AT = 4


class _Body(Struct):
    """A conversation in a record: its messages, the request around them, the reply, and the record's other fields."""

    messages: list[Any]
    request: Mapping[str, Any]
    reply: Any
    extra: Object


def has_conversation(record: Any) -> bool:
    """Whether the record is a list of messages, or holds one."""
    return _body(record) is not None


def _body(record: Any) -> _Body | None:
    if isinstance(record, list):
        return _Body(record, {}, None, {}) if _is_messages(record) else None
    fields = as_mapping(record)
    for name in _REQUESTS:
        request = get(fields, name, Mapping)
        if request is not None and (found := _messages_in(request)) is not None:
            reply = fields.get("response")
            extra = {key: value for key, value in fields.items() if key not in (name, "response")}
            rest = _without(request, found[0])
            return _Body(
                found[1], request, get(reply, "body", Mapping) or reply, extra | ({name: rest} if rest else {})
            )
    found = _messages_in(fields)
    return None if found is None else _Body(found[1], fields, None, _without(fields, found[0]))


def _without(request: Mapping[str, Any], name: str) -> Object:
    return {key: value for key, value in request.items() if key != name and key not in _SYSTEM}


def _messages_in(fields: Mapping[str, Any]) -> tuple[str, list[Any]] | None:
    """Returns the name and the value of the field that holds messages."""
    for name in _LISTS:
        value = fields.get(name)
        if isinstance(value, Mapping) and isinstance(value.get("messages"), list):
            value = value["messages"]
        if isinstance(value, list) and _is_messages(value):
            return name, value
        if name == "input" and isinstance(value, str) and "model" in fields:
            return name, [{"role": "user", "content": value}]
    return None


def _is_messages(items: list[Any]) -> bool:
    first = items[:_LOOK_AT]
    return any(_is_message(item) for item in first) or (bool(first) and format_of_whole(items) is not None)


def _is_message(item: Any) -> bool:
    fields = as_mapping(item)
    return is_sharegpt(item) or (isinstance(fields.get("role"), str) and any(name in fields for name in _CONTENT))


def read_conversation(record: Any) -> tuple[Transcript, Object]:
    """Reads a record with a conversation, or a reply of a model. Returns also the fields that have no place in it."""
    body = _body(record)
    if body is None:
        known = format_of_whole(record)
        return assemble(known.read_whole(record) if known is not None else (), RunFacts("messages")), {}
    added, extra = _reply_messages(body.reply)
    if added:
        body.extra["response"] = extra
    elif body.reply is not None:
        body.extra["response"] = body.reply
    events = [*_system_events(body.request), *_events([*body.messages, *added])]
    transcript = assemble(events, RunFacts("messages"))
    if added and transcript.messages:
        last = _with_usage(transcript.messages[-1], body.reply)
        transcript = replace(transcript, messages=(*transcript.messages[:-1], last))
    return transcript, body.extra


def _events(messages: list[Any]) -> list[Event]:
    if any(is_sharegpt(message) for message in messages[:_LOOK_AT]):
        messages = openai_messages(messages)
    known = format_of_whole(messages)
    if known is not None:
        return list(known.read_whole(messages))
    reader = OpenAIMessages()
    for message in messages:
        fields = as_mapping(message)
        role = fields.get("role")
        if isinstance(role, str) and role not in _ROLES:
            reader.take({**fields, "role": "user"}, {"role": role})
        else:
            reader.take({**fields, "role": "assistant"} if role == "model" else message)
    reader.close()
    return reader.events


def _system_events(request: Mapping[str, Any]) -> list[Event]:
    """Returns the system message that a request has beside its messages."""
    texts = [text for name in _SYSTEM for text in _texts(request.get(name))]
    return prompt_events("system", texts) if texts else []


def _texts(given: Any) -> list[str]:
    parts = get(given, "parts", list) or given
    each = parts if isinstance(parts, list) else [parts]
    found = (part if isinstance(part, str) else get(part, "text", str) for part in each)
    return [text for text in found if text]


def _reply_messages(reply: Any) -> tuple[list[Any], Object]:
    """Returns a reply as messages that continue the request's, and its other fields."""
    fields = as_mapping(reply)
    first = _first(fields.get("choices")) or _first(fields.get("candidates")) or fields.get("output")
    found: Any = get(first, "message", Mapping) or get(first, "content", Mapping)
    if found is None and isinstance(first, list):
        items = [item for item in first if isinstance(item, Mapping)]
        return items, {name: value for name, value in fields.items() if name not in _REPLY_CONTENT}
    if found is None and fields.get("role") == "assistant" and "content" in fields:
        found = {"role": "assistant", "content": fields["content"]}
    rest = {name: value for name, value in fields.items() if name not in _REPLY_CONTENT}
    return ([], {}) if found is None else ([found], rest)


def _first(items: Any) -> Any:
    return items[0] if isinstance(items, list) and items else None


def _with_usage(message: Message, reply: Any) -> Message:
    """Returns the last message with what the reply says of its usage, its model and its end."""
    known = format_of_whole(reply)
    told = Transcript.from_events(known.read_whole(reply)).messages if known is not None else ()
    if not told or message.role != "assistant":
        return message
    metadata = told[0].metadata
    counts = read_token_counts(metadata.get("usage"))
    model = get(metadata, "model", str)
    found = {**to_metadata([RequestUsage(counts, None, model)]), **({"model": model} if model else {})}
    return replace(message, metadata={**message.metadata, **found}, finish_reason=told[0].finish_reason)
