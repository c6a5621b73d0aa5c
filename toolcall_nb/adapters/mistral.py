"""Reads Mistral's conversations (``client.beta.conversations``): streams of their events, and complete responses.

Source: mistralai 3, ``client/models/conversationevents.py`` and ``conversationresponse.py``. The SDK wraps each event
and puts its content under ``data``. Mistral's chat completions have OpenAI's shape and are read by openai/chat.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.base import Format, MessageAdapter
from toolcall_nb.adapters.common_events import file_event, unknown_item, usage_of
from toolcall_nb.adapters.fields_in_use import in_use
from toolcall_nb.core.events import Event
from toolcall_nb.core.sdk_objects import as_json_value, as_mapping, dump, get, joined_text, object_fields, type_name

_KINDS = ("conversation.response.", "message.output", "tool.execution", "function.call", "agent.handoff")
_USAGE = {"inputTokens": "prompt_tokens", "outputTokens": "completion_tokens", "totalTokens": "total_tokens"}
_USED = in_use(
    "name arguments info tool_call_id model message code outputs output_index",
    usage=in_use("prompt_tokens completion_tokens total_tokens"),
    content=in_use(
        kinds={"text": in_use("text"), "thinking": in_use("thinking"), "image_url": in_use("image_url")},
    ),
)


class MistralAdapter(MessageAdapter):
    """Reads the events of one response. Tools that Mistral runs (connectors) are calls with their details."""

    def __init__(self) -> None:
        super().__init__()
        self._has_calls = False

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one item."""
        event = _event(dump(item))
        events = self._read(event)
        if events is not None:
            self.message.keep_unread("mistral", _USED.unread(event))
            return events
        kind = get(event, "type", str) or ""
        if kind.startswith(_KINDS):
            return self.message.custom("mistral", kind, event)
        return unknown_item(MISTRAL_CONVERSATIONS.title, event or item)

    def _read(self, event: Mapping[str, Any]) -> list[Event] | None:
        """Returns the events of an item; None for one of another type."""
        kind, event_id = (get(event, "type", str) or "").split(".")[0], get(event, "id", str)
        key = self.replies, kind, event_id
        match get(event, "type", str):
            case "conversation.response.started":
                return self.begin_reply()
            case "message.output.delta" | "message.output":
                return self._output(event)
            case "function.call.delta" | "function.call":
                self._has_calls = True
                return self._call(
                    (*key, event.get("output_index"), get(event, "tool_call_id", str)),
                    get(event, "tool_call_id", str),
                    event,
                )
            case "tool.execution.started" | "tool.execution.delta":
                return self._call(key, event_id, event, provider_executed=True)
            case "tool.execution.done":
                return self._done(event)
            case "tool.execution":
                begins = self._call(key, event_id, event, provider_executed=True)
                return [*begins, *self._done(event)]
            case "conversation.response.done":
                return self._end(event)
            case "conversation.response.error":
                return self.message.fail("Mistral", dict(event))
        return None

    def _output(self, event: Mapping[str, Any]) -> list[Event]:
        self.message.describe(model=get(event, "model", str))
        content, events = event.get("content"), self.message.start()
        for piece in content if isinstance(content, list) else [content]:
            events += self.message.text(piece) if isinstance(piece, str) else self._piece(as_mapping(piece))
        return events

    def _piece(self, piece: Mapping[str, Any]) -> list[Event]:
        match get(piece, "type", str):
            case "text":
                return self.message.text(get(piece, "text", str) or "")
            case "thinking":
                return self.message.reasoning(joined_text(piece.get("thinking") or ""))
            case "tool_reference" if piece.get("url"):
                metadata = {"mistral": as_json_value(piece)}
                source = self.message.sources.page(piece["url"], piece.get("title"), metadata)
                return self.message.cite("mistral", piece, source)
            case "image_url":
                url = get(piece, "image_url", str) or get(piece.get("image_url"), "url", str)
                return self.message.other(file_event("image/*", url=url))
            case kind:
                return self.message.custom("mistral", kind or "content", piece) if piece else []

    def _call(self, key: Any, call_id: str | None, event: Mapping[str, Any], **fields: Any) -> list[Event]:
        begins = self.message.begin_call(key, call_id, get(event, "name", str) or "tool", **fields)
        arguments = event.get("arguments")
        if isinstance(arguments, Mapping):
            return [*begins, *self.message.end_call(key, as_json_value(arguments))]
        return [*begins, *self.message.arguments(key, arguments if isinstance(arguments, str) else "")]

    def _done(self, event: Mapping[str, Any]) -> list[Event]:
        key = self.replies, "tool", get(event, "id", str)
        call_id, info = self.message.id_of(key), event.get("info")
        ends = self.message.end_call(key)
        if call_id is None:
            return self.message.custom("mistral", "tool.execution", event)
        return [*ends, *self.message.output(call_id, as_json_value(info), provider_executed=True)]

    def next_step(self) -> list[Event]:
        """Ends a reply and begins the next one of the same message."""
        self._has_calls = False
        return super().next_step()

    def _end(self, event: Mapping[str, Any]) -> list[Event]:
        self.message.reason = self.message.reason or ("tool-calls" if self._has_calls else "stop")
        self.message.describe(usage=usage_of(as_mapping(event.get("usage")), _USAGE))
        return [*self.message.end_block(), *self.message.end_calls()]


def _event(item: Any) -> Mapping[str, Any]:
    """Returns the event itself, which the SDK and the stream put under ``data``."""
    data = get(item, "data", Mapping)
    return data if data is not None and "type" in data else as_mapping(item)


def _is_item(item: Any) -> bool:
    if isinstance(item, Mapping):
        kind = get(_event(item), "type", str) or ""
        return kind.startswith(_KINDS) and kind.count(".") == 2
    return type_name(item) == "mistralai.client.models.conversationevents.ConversationEvents"


def _is_whole(thing: Any) -> bool:
    if isinstance(thing, Mapping):
        return thing.get("object") == "conversation.response" and isinstance(thing.get("outputs"), list)
    return type_name(thing) == "mistralai.client.models.conversationresponse.ConversationResponse"


def _read_response(thing: Any) -> list[Event]:
    adapter, response = MistralAdapter(), object_fields(thing)
    done = {"type": "conversation.response.done", "usage": response.get("usage")}
    outputs = [*(get(response, "outputs", list) or []), done]
    adapter.message.keep_unread("mistral", _USED.unread({**response, "usage": None}))
    return [*(event for output in outputs for event in adapter.take(output)), *adapter.close()]


MISTRAL_CONVERSATIONS = Format(
    name="mistral",
    title="a response of Mistral's conversations or its stream",
    adapter=MistralAdapter,
    is_item=_is_item,
    is_whole=_is_whole,
    whole=_read_response,
)
