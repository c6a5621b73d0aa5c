"""Reads the messages of a ``MESSAGES_SNAPSHOT``: `snapshot_events` yields those that were not streamed before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.wire.ag_ui.terms import ROLES
from toolcall_nb.wire.base import JsonText, list_or_empty, object_or_empty


class EmittedIds:
    """The ids of the messages and calls that the stream, or the request that it answers, contained so far."""

    def __init__(self) -> None:
        self.messages: set[str] = set()
        self.calls: set[str] = set()

    def add_messages(self, messages: Any) -> None:
        """Adds the messages of the request."""
        for message in messages if isinstance(messages, list) else ():
            self.messages.add(str(object_or_empty(message).get("id")))
            self.calls.update(
                str(object_or_empty(call).get("id"))
                for call in list_or_empty(object_or_empty(message).get("toolCalls"))
            )


def snapshot_events(messages: Any, emitted: EmittedIds) -> Iterator[Event]:
    """Yields the events of the messages that are new, and adds them to ``emitted``."""
    role: str | None = None
    for sent in list_or_empty(messages):
        message = object_or_empty(sent)
        message_id = str(message.get("id"))
        if message_id in emitted.messages:
            continue
        wanted = ROLES.get(str(message.get("role")))
        if wanted is not None or role is not None:
            yield ev.Start(role=wanted, message_id=message_id if wanted else None)
        role = wanted
        yield from _message(message, message_id, emitted)
        emitted.messages.add(message_id)
        if wanted is not None:
            yield ev.Finish(finish_reason="stop")


def _message(message: Mapping[str, Any], message_id: str, emitted: EmittedIds) -> Iterator[Event]:
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
            for call in list_or_empty(message.get("toolCalls")):
                yield from _call(object_or_empty(call), emitted)
        case _:
            yield ev.Diagnostic(f"A snapshot has a message of no known role: {message!r:.200}.", ev.LEFT_OUT)


def _content(content: Any, message_id: str) -> Iterator[Event]:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list_or_empty(content)
    for number, part in enumerate(parts):
        text = object_or_empty(part).get("text")
        if object_or_empty(part).get("type") != "text" or not isinstance(text, str):
            yield _file(object_or_empty(part))
        elif text:
            block = f"{message_id}-{number}" if number else message_id
            yield from (ev.TextStart(block), ev.TextDelta(block, text), ev.TextEnd(block))


def _file(part: Mapping[str, Any]) -> Event:
    """Returns an image, a sound, a film or a document by its URL; data becomes a data URL."""
    source = object_or_empty(part.get("source")) or part
    media_type = str(source.get("mimeType") or f"{part.get('type')}/*")
    if isinstance(url := source.get("url"), str):
        return ev.File(url, media_type)
    value = source.get("value", source.get("data"))
    if isinstance(value, str) and source.get("type") == "url":
        return ev.File(value, media_type)
    if isinstance(value, str):
        return ev.File(f"data:{media_type};base64,{value}", media_type)
    return ev.Data(str(part.get("type")), dict(part))


def _call(call: Mapping[str, Any], emitted: EmittedIds) -> Iterator[Event]:
    call_id, function = call.get("id"), object_or_empty(call.get("function"))
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(call_id, str) or not isinstance(name, str):
        yield ev.Diagnostic(f"A snapshot has a tool call without id or name: {call!r:.200}.", ev.LEFT_OUT)
    elif call_id not in emitted.calls:
        emitted.calls.add(call_id)
        yield JsonText(arguments if isinstance(arguments, str) else "").event(call_id, name)


def _result(message: Mapping[str, Any]) -> Event:
    call_id, error = str(message.get("toolCallId")), message.get("error")
    if isinstance(error, str) and error:
        return ev.ToolOutputError(call_id, error)
    return ev.ToolOutputAvailable(call_id, message.get("content"))
