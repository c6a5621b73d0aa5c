"""The messages of a ``MESSAGES_SNAPSHOT`` as events: those that were not streamed before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.wire.base import JsonText, mapping

__all__ = ["Seen", "snapshot_events"]

_ROLES = {"developer": "system", "system": "system", "user": "user"}


class Seen:
    """What the stream, or the request that it answers, has told already: ids of messages, calls and results."""

    def __init__(self) -> None:
        self.messages: set[str] = set()
        self.calls: set[str] = set()

    def has_call(self, call_id: str) -> bool:
        """Whether the stream has told of this call."""
        return call_id in self.calls

    def add_messages(self, messages: Any) -> None:
        """The request's own messages."""
        for message in messages if isinstance(messages, list) else ():
            self.messages.add(str(mapping(message).get("id")))
            self.calls.update(str(mapping(call).get("id")) for call in _list(mapping(message).get("toolCalls")))


def snapshot_events(messages: Any, seen: Seen) -> Iterator[Event]:
    """The events of the messages that are new; they are seen from now on."""
    role: str | None = None
    for sent in _list(messages):
        message = mapping(sent)
        message_id = str(message.get("id"))
        if message_id in seen.messages:
            continue
        wanted = _ROLES.get(str(message.get("role")))
        if wanted is not None or role is not None:
            yield ev.Start(role=wanted, message_id=message_id if wanted else None)
        role = wanted
        yield from _message(message, message_id, seen)
        seen.messages.add(message_id)
        if wanted is not None:
            yield ev.Finish(finish_reason="stop")


def _message(message: Mapping[str, Any], message_id: str, seen: Seen) -> Iterator[Event]:
    content = message.get("content")
    match message.get("role"):
        case "reasoning":
            yield from (ev.ReasoningStart(message_id), ev.ReasoningDelta(message_id, str(content or "")))
            yield ev.ReasoningEnd(message_id)
        case "tool":
            yield _result(message)
        case "activity":
            yield ev.Data(str(message.get("activityType")), content, id=message_id)
        case "assistant" | "user" | "system" | "developer":
            yield from _content(content, message_id)
            for call in _list(message.get("toolCalls")):
                yield from _call(mapping(call), seen)
        case _:
            yield ev.Diagnostic(f"A snapshot has a message of no known role: {message!r:.200}.", ev.LEFT_OUT)


def _content(content: Any, message_id: str) -> Iterator[Event]:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else _list(content)
    for number, part in enumerate(parts):
        text = mapping(part).get("text")
        if mapping(part).get("type") != "text" or not isinstance(text, str):
            yield _file(mapping(part))
        elif text:
            block = f"{message_id}-{number}" if number else message_id
            yield from (ev.TextStart(block), ev.TextDelta(block, text), ev.TextEnd(block))


def _file(part: Mapping[str, Any]) -> Event:
    """An image, a sound, a film or a document: by its address, or the data itself as one."""
    source = mapping(part.get("source")) or part
    media_type = str(source.get("mimeType") or f"{part.get('type')}/*")
    if isinstance(url := source.get("url"), str):
        return ev.File(url, media_type)
    value = source.get("value", source.get("data"))
    if isinstance(value, str) and source.get("type") == "url":
        return ev.File(value, media_type)
    if isinstance(value, str):
        return ev.File(f"data:{media_type};base64,{value}", media_type)
    return ev.Data(str(part.get("type")), dict(part))


def _call(call: Mapping[str, Any], seen: Seen) -> Iterator[Event]:
    call_id, function = call.get("id"), mapping(call.get("function"))
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(call_id, str) or not isinstance(name, str):
        yield ev.Diagnostic(f"A snapshot has a tool call without id or name: {call!r:.200}.", ev.LEFT_OUT)
    elif call_id not in seen.calls:
        seen.calls.add(call_id)
        yield JsonText(arguments if isinstance(arguments, str) else "").event(call_id, name)


def _result(message: Mapping[str, Any]) -> Event:
    call_id, error = str(message.get("toolCallId")), message.get("error")
    if isinstance(error, str) and error:
        return ev.ToolOutputError(call_id, error)
    return ev.ToolOutputAvailable(call_id, message.get("content"))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
