"""Reads Cohere's chat API, version 2: streams and complete replies.

Source: docs.cohere.com, "Chat with Streaming (V2)" and "Chat (V2)"; the recordings of ``ai/packages/cohere``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.base import Format, MessageAdapter
from toolcall_nb.adapters.common_events import error_event, unknown_item, usage_of
from toolcall_nb.adapters.fields_in_use import in_use
from toolcall_nb.core.events import Event
from toolcall_nb.core.sdk_objects import as_json_value, as_mapping, get, object_fields, object_type, type_name

_ITEMS = frozenset(
    {
        *("message-start", "content-start", "content-delta", "content-end", "tool-plan-delta", "message-end"),
        *("tool-call-start", "tool-call-delta", "tool-call-end", "citation-start", "citation-end"),
    }
)
_REASONS = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "MAX_TOKENS": "length",
    "TOOL_CALL": "tool-calls",
    "ERROR": "error",
    "TIMEOUT": "error",
}
_USAGE = {
    "inputTokens": "tokens.input_tokens",
    "outputTokens": "tokens.output_tokens",
    "cachedInputTokens": "cached_tokens",
}
_PLAN = "plan"
_USED_OF_REPLY = in_use(
    "id finish_reason error",
    usage=in_use("cached_tokens", tokens=in_use("input_tokens output_tokens"), snapshot=True),
    message=in_use(
        "tool_plan citations",
        content=in_use("text thinking", needs="text thinking"),
        tool_calls=in_use("id", function=in_use("name arguments"), envelope=True),
        envelope=True,
    ),
    envelope=True,
)
_USED = in_use("id", delta=_USED_OF_REPLY)


class CohereAdapter(MessageAdapter):
    """Reads the events of one stream. The plan before tool calls is reasoning."""

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one item."""
        chunk = object_fields(item)
        events = self._read(chunk)
        if events is None:
            return unknown_item(COHERE_CHAT.title, chunk or item)
        self.message.keep_unread("cohere", _USED.unread(chunk))
        return events

    def _read(self, chunk: Mapping[str, Any]) -> list[Event] | None:
        """Returns the events of an item; None for one of another type."""
        index, delta = chunk.get("index"), as_mapping(chunk.get("delta"))
        index = index if isinstance(index, int) else None
        message = as_mapping(delta.get("message"))
        match get(chunk, "type", str):
            case "message-start":
                return self._start(chunk)
            case "content-start" | "content-delta":
                return self._content(index, message.get("content"))
            case "tool-plan-delta":
                return self.message.reasoning(get(message, "tool_plan", str) or "", _PLAN)
            case "tool-call-start" | "tool-call-delta":
                return self._call(("call", self.replies, index), as_mapping(message.get("tool_calls")))
            case "tool-call-end":
                return self.message.end_call(("call", self.replies, index))
            case "content-end":
                return self.message.end_block()
            case "citation-start":
                return self._cite(message.get("citations"))
            case "message-end":
                return self._end(delta)
            case "citation-end" | "debug":
                return []
        return None

    def _start(self, fields: Mapping[str, Any]) -> list[Event]:
        events = self.next_step() if self.message.reason is not None else []
        self.message.describe(response_id=get(fields, "id", str))
        return [*events, *self.message.start(get(fields, "id", str))]

    def whole(self, reply: Any) -> list[Event]:
        """Returns the events of a complete reply."""
        fields = object_fields(reply)
        message = as_mapping(fields.get("message"))
        events = self._start(fields)
        self.message.keep_unread("cohere", _USED_OF_REPLY.unread(fields))
        if plan := get(message, "tool_plan", str):
            events += self.message.reasoning(plan, _PLAN)
        for index, content in enumerate(get(message, "content", list) or []):
            events += self._content(index, content)
        for citation in get(message, "citations", list) or []:
            events += self._cite(citation)
        for index, call in enumerate(get(message, "tool_calls", list) or []):
            events += [
                *self._call(("call", self.replies, index), as_mapping(call)),
                *self.message.end_call(("call", self.replies, index)),
            ]
        return [*events, *self._end(fields), *self.close()]

    def _content(self, index: int | None, item: Any) -> list[Event]:
        content = as_mapping(item)
        if (text := get(content, "text", str)) is not None:
            return self.message.text(text, index)
        if (thought := get(content, "thinking", str)) is not None:
            return self.message.reasoning(thought, index) if thought else []
        return self.message.custom("cohere", get(content, "type", str) or "content", content) if content else []

    def _call(self, key: Any, call: Mapping[str, Any]) -> list[Event]:
        function = as_mapping(call.get("function"))
        name = get(function, "name", str)
        begins = [] if name is None else self.message.begin_call(key, get(call, "id", str), name)
        return [*begins, *self.message.arguments(key, get(function, "arguments", str) or "")]

    def _cite(self, citation: Any) -> list[Event]:
        events: list[Event] = []
        metadata = {"cohere": as_json_value(citation)}
        for entry in get(citation, "sources", list) or []:
            document = as_mapping(get(entry, "document"))
            title, key = document.get("title"), get(entry, "id")
            source = self.message.sources.page(document.get("url"), title, metadata)
            if source is None and not document.get("url"):
                source = self.message.sources.document(key, "text/plain", title or key, metadata)
            events += self.message.cite("cohere", citation, source)
        return events

    def _end(self, fields: Mapping[str, Any]) -> list[Event]:
        self.message.reason = _REASONS.get(get(fields, "finish_reason", str) or "", "other")
        if usage := usage_of(as_mapping(fields.get("usage")), _USAGE):
            total = usage.get("inputTokens", 0) + usage.get("outputTokens", 0)
            self.message.describe(usage={**usage, "totalTokens": total})
        error = get(fields, "error", str)
        return self.message.other(error_event("Cohere", error)) if error else []


def _is_whole(thing: Any) -> bool:
    if not isinstance(thing, Mapping):
        return type_name(thing).startswith("cohere.") and hasattr(thing, "message")
    return isinstance(thing.get("message"), Mapping) and get(thing, "finish_reason", str) in _REASONS


COHERE_CHAT = Format(
    name="cohere",
    title="a reply of Cohere's chat or its stream",
    adapter=CohereAdapter,
    is_item=lambda item: object_type(item, "cohere.") in _ITEMS,
    is_whole=_is_whole,
    whole=lambda thing: CohereAdapter().whole(thing),
)
