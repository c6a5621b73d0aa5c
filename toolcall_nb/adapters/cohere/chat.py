"""Cohere's chat API, version 2: streams and whole replies.

Source: docs.cohere.com, "Chat with Streaming (V2)" and "Chat (V2)"; the recordings of ``ai/packages/cohere``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.assembling import Assembler, usage_of
from toolcall_nb.adapters.base import Format
from toolcall_nb.adapters.parts import Sources, custom, error_event, strange_item
from toolcall_nb.adapters.plain import get, json_value, mapping, plain, type_name
from toolcall_nb.core.events import Event

__all__ = ["FORMAT", "CohereAdapter"]

_PROVIDER = "cohere"
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
    "tokens.input_tokens": "inputTokens",
    "tokens.output_tokens": "outputTokens",
    "cached_tokens": "cachedInputTokens",
}
_PLAN = "plan"


class CohereAdapter:
    """Reads the events of one stream. The plan that comes before calls is reasoning."""

    def __init__(self) -> None:
        self.message = Assembler()
        self._sources = Sources()

    def take(self, item: Any) -> list[Event]:
        """The events of one item."""
        chunk = mapping(plain(item))
        index, delta = chunk.get("index"), mapping(chunk.get("delta"))
        index = index if isinstance(index, int) else None
        message = mapping(delta.get("message"))
        match get(chunk, "type", str):
            case "message-start":
                return self.message.start(get(chunk, "id", str))
            case "content-start" | "content-delta":
                return self._content(index, message.get("content"))
            case "tool-plan-delta":
                return self.message.reasoning(get(message, "tool_plan", str) or "", _PLAN)
            case "tool-call-start" | "tool-call-delta":
                return self._call(("call", index), mapping(message.get("tool_calls")))
            case "tool-call-end":
                return self.message.end_call(("call", index))
            case "content-end":
                return self.message.end_block()
            case "citation-start":
                return self._cite(message.get("citations"))
            case "message-end":
                return self._end(delta)
            case "citation-end" | "debug":
                return []
            case _:
                return strange_item(FORMAT.title, chunk or item)

    def whole(self, reply: Any) -> list[Event]:
        """The events of a whole reply."""
        given = mapping(plain(reply))
        message = mapping(given.get("message"))
        found = self.message.start(get(given, "id", str))
        if plan := get(message, "tool_plan", str):
            found += self.message.reasoning(plan, _PLAN)
        for index, content in enumerate(get(message, "content", list) or []):
            found += self._content(index, content)
        for citation in get(message, "citations", list) or []:
            found += self._cite(citation)
        for index, call in enumerate(get(message, "tool_calls", list) or []):
            found += [*self._call(("call", index), mapping(call)), *self.message.end_call(("call", index))]
        return [*found, *self._end(given), *self.close()]

    def close(self) -> list[Event]:
        """The stream is over, or was cut off: the ends of what is open."""
        return self.message.close()

    def _content(self, index: int | None, given: Any) -> list[Event]:
        content = mapping(given)
        if (text := get(content, "text", str)) is not None:
            return self.message.text(text, index)
        if (thought := get(content, "thinking", str)) is not None:
            return self.message.reasoning(thought, index) if thought else []
        return self.message.other(custom(_PROVIDER, get(content, "type", str) or "content", content)) if content else []

    def _call(self, key: Any, call: Mapping[str, Any]) -> list[Event]:
        function = mapping(call.get("function"))
        begun = []
        if (name := get(function, "name", str)) is not None:
            begun = self.message.begin_call(key, get(call, "id", str), name)
        return [*begun, *self.message.arguments(key, get(function, "arguments", str) or "")]

    def _cite(self, citation: Any) -> list[Event]:
        found = []
        for given in get(citation, "sources", list) or []:
            document = mapping(get(given, "document"))
            title, metadata = document.get("title"), {_PROVIDER: json_value(citation)}
            source = self._sources.page(document.get("url"), title, metadata)
            if source is None and not document.get("url"):
                source = self._sources.document(get(given, "id"), "text/plain", title or get(given, "id"), metadata)
            found += self.message.after_block(source) if source is not None else []
        return found

    def _end(self, given: Mapping[str, Any]) -> list[Event]:
        self.message.reason = _REASONS.get(get(given, "finish_reason", str) or "", "other")
        if usage := usage_of(mapping(given.get("usage")), _USAGE):
            total = usage.get("inputTokens", 0) + usage.get("outputTokens", 0)
            self.message.metadata["usage"] = {**usage, "totalTokens": total}
        error = get(given, "error", str)
        return self.message.other(error_event("Cohere", error)) if error else []


def _kind(thing: Any) -> str:
    if isinstance(thing, Mapping):
        return get(thing, "type", str) or ""
    kind = getattr(thing, "type", "") if type_name(thing).startswith("cohere.") else ""
    return kind if isinstance(kind, str) else ""


def _is_whole(thing: Any) -> bool:
    if not isinstance(thing, Mapping):
        return type_name(thing).startswith("cohere.") and hasattr(thing, "message")
    return isinstance(thing.get("message"), Mapping) and get(thing, "finish_reason", str) in _REASONS


FORMAT = Format(
    name="cohere",
    title="a reply of Cohere's chat or its stream",
    is_item=lambda item: _kind(item) in _ITEMS,
    adapter=CohereAdapter,
    is_whole=_is_whole,
    whole=lambda thing: CohereAdapter().whole(thing),
)
