"""Converts messages to the AI SDK's UI messages (`to_ui`) and back (`from_ui`), which its front ends keep and send.

Source: vercel/ai, packages/ai/src/ui/ui-messages.ts, version 7.0.77. What its parts have no field for is kept where
its readers skip it: an interrupted call is an ``output-error`` with ``interrupted``; the displayed result, printed
output and the like are under ``toolcall``, and so is, in a message's metadata, the reason why it ended early; an error
is a ``data-error`` part. Ids of text blocks are not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolcall_nb.adapters.ai_sdk.calls import OWN_FIELD, from_tool_part, is_tool_part, to_tool_part
from toolcall_nb.adapters.base import Format, one_or_list
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.replay import message_events
from toolcall_nb.core.sdk_objects import as_mapping, get
from toolcall_nb.core.transcript import (
    CustomPart,
    DataPart,
    ErrorPart,
    FilePart,
    Message,
    Part,
    ReasoningPart,
    Role,
    SourceDocumentPart,
    SourceUrlPart,
    TextPart,
    ToolCall,
)

_ROLES: tuple[Role, ...] = ("system", "user", "assistant")
_KINDS = frozenset(
    {"text", "reasoning", "file", "reasoning-file", "source-url", "source-document", "step-start", "custom"}
)
_LOOK_AT = 4


def to_ui(messages: Iterable[Message]) -> list[Object]:
    """Returns the messages in the form of the AI SDK's front ends; one without an id is ``message-N``, from 1.

    A step of the assistant begins with its message, and after calls that were not the provider's own.
    """
    return [_to_ui(message, number) for number, message in enumerate(messages, 1)]


def _to_ui(message: Message, number: int) -> Object:
    end = {"finishReason": message.finish_reason, "aborted": message.aborted}
    ours = {name: value for name, value in end.items() if value is not None}
    metadata = {**message.metadata, **({OWN_FIELD: ours} if ours else {})}
    parts = [*(_with_steps(message.parts) if message.role == "assistant" else map(_part, message.parts))]
    found: Object = {"id": message.id or f"message-{number}", "role": message.role, "parts": parts}
    return {**found, "metadata": metadata} if metadata else found


def _with_steps(parts: Iterable[Part]) -> Iterator[Object]:
    is_first, after_call = True, False
    for part in parts:
        is_own_call = isinstance(part, ToolCall) and not part.provider_executed
        if is_first or (after_call and not is_own_call):
            yield {"type": "step-start"}
        yield _part(part)
        is_first, after_call = False, is_own_call


def _part(part: Part) -> Object:
    match part:
        case TextPart():
            return _with({"type": "text", "text": part.text, "state": "done"}, part)
        case ReasoningPart():
            return _with({"type": "reasoning", "text": part.text, "state": "done"}, part)
        case ToolCall():
            return to_tool_part(part)
        case SourceUrlPart():
            found: Object = {"type": "source-url", "sourceId": part.source_id, "url": part.url}
            return _with(found, part, title=part.title)
        case SourceDocumentPart():
            found = {"type": "source-document", "sourceId": part.source_id, "mediaType": part.media_type}
            return _with({**found, "title": part.title}, part, filename=part.filename)
        case FilePart():
            kind = "reasoning-file" if part.reasoning else "file"
            return _with({"type": kind, "url": part.url, "mediaType": part.media_type}, part)
        case DataPart():
            named = {} if part.id is None else {"id": part.id}
            return {"type": f"data-{part.name}", **named, "data": part.data}
        case CustomPart():
            return _with({"type": "custom", "kind": part.kind}, part)
        case ErrorPart():
            details = {} if part.details is None else {"details": part.details}
            return {"type": "data-error", "data": {"text": part.text, **details}}


def _with(found: Object, part: Any, **optional: Any) -> Object:
    given = {**optional, "providerMetadata": part.provider_metadata}
    return {**found, **{name: value for name, value in given.items() if value is not None}}


# From UI messages


def from_ui(message: Mapping[str, Any]) -> Message:
    """Returns the message of a UI message as a front end sent it; of any other mapping, what can be read of it."""
    metadata = {**as_mapping(message.get("metadata"))}
    ours = metadata.pop(OWN_FIELD) if isinstance(metadata.get(OWN_FIELD), dict) else {}
    parts = (_from_part(as_mapping(part)) for part in get(message, "parts", list) or ())
    role: Role = next((role for role in _ROLES if role == message.get("role")), "assistant")
    found = tuple(part for part in parts if part is not None)
    end = get(ours, "finishReason", str), get(ours, "aborted", str)
    return Message(role, found, get(message, "id", str), metadata, *end)


def _from_part(part: Mapping[str, Any]) -> Part | None:
    kind = get(part, "type", str) or ""
    metadata = get(part, "providerMetadata", dict)
    match kind:
        case "text":
            return TextPart(get(part, "text", str) or "", metadata)
        case "reasoning":
            return ReasoningPart(get(part, "text", str) or "", metadata)
        case "source-url":
            return SourceUrlPart(_text(part, "sourceId"), _text(part, "url"), get(part, "title", str), metadata)
        case "source-document":
            title, name = _text(part, "title"), get(part, "filename", str)
            return SourceDocumentPart(_text(part, "sourceId"), _text(part, "mediaType"), title, name, metadata)
        case "file" | "reasoning-file":
            return FilePart(_text(part, "url"), _text(part, "mediaType"), metadata, kind == "reasoning-file")
        case "custom":
            return CustomPart(_text(part, "kind"), metadata)
        case "step-start":
            return None
        case "data-error" if (text := get(part.get("data"), "text", str)) is not None:
            return ErrorPart(text, get(part.get("data"), "details", str))
    if is_tool_part(part):
        return from_tool_part(part)
    if kind.startswith("data-"):
        return DataPart(kind.removeprefix("data-"), part.get("data"), get(part, "id", str))
    return CustomPart(f"ui.{kind or 'part'}", {"ui": dict(part)})


def _text(part: Mapping[str, Any], name: str) -> str:
    return get(part, name, str) or ""


# Recognising and reading


def _is_part(part: Any) -> bool:
    kind = part.get("type") if type(part) is dict else None
    return isinstance(kind, str) and (kind in _KINDS or kind.startswith("data-") or is_tool_part(part))


def _is_message(thing: Any) -> bool:
    if type(thing) is not dict or thing.get("role") not in _ROLES or type(thing.get("parts")) is not list:
        return False
    parts = thing["parts"]
    return all(_is_part(part) for part in parts[:_LOOK_AT]) and (bool(parts) or isinstance(thing.get("id"), str))


def _read_messages(thing: Any) -> Iterator[Event]:
    for message in thing if type(thing) is list else [thing]:
        yield from message_events(from_ui(as_mapping(message)))


class UIMessagesAdapter:
    """Reads messages one by one. A message that comes again under the same id replaces the earlier one."""

    def __init__(self) -> None:
        self._messages: dict[Any, Any] = {}

    def take(self, item: Any) -> list[Event]:
        """Keeps the message, since ``readUIMessageStream`` yields it again with more content."""
        self._messages[get(item, "id", str) or len(self._messages)] = item
        return []

    def close(self) -> list[Event]:
        """Returns the events of the messages as they came last."""
        return [*_read_messages([*self._messages.values()])]


UI_MESSAGES = Format(
    name="ui-messages",
    title="the AI SDK's UI messages",
    is_item=_is_message,
    adapter=UIMessagesAdapter,
    is_whole=one_or_list(_is_message),
    whole=_read_messages,
)
