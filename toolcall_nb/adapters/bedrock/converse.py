"""Amazon Bedrock's Converse: streams and whole replies, as boto3 gives them.

Source: the API reference of the Bedrock Runtime (``ConverseStreamOutput``, ``ContentBlock``, ``StopReason``). An item
is a mapping of one key, the event's type; recorded bodies are binary frames that hold the same.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from toolcall_nb.adapters.assembling import Assembler, usage_of
from toolcall_nb.adapters.base import Format
from toolcall_nb.adapters.parts import Sources, custom, error_event, file_event, strange_item, text_of
from toolcall_nb.adapters.plain import get, json_value, mapping
from toolcall_nb.core.events import MISSING, Event

__all__ = ["FORMAT", "BedrockAdapter", "file_of"]

_PROVIDER = "bedrock"
_ITEMS = frozenset(
    {
        *("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"),
        *("internalServerException", "modelStreamErrorException", "validationException", "throttlingException"),
        "serviceUnavailableException",
    }
)
_FILES = {"image": "image/{}", "video": "video/{}", "audio": "audio/{}", "document": "application/{}"}
_TEXTS = {"txt": "text/plain", "md": "text/markdown", "html": "text/html", "csv": "text/csv"}
_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool-calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content-filter",
    "content_filtered": "content-filter",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}
_USAGE = {
    "inputTokens": "inputTokens",
    "cacheReadInputTokens": "inputTokens",
    "cacheWriteInputTokens": "inputTokens",
    "outputTokens": "outputTokens",
    "totalTokens": "totalTokens",
}
_CACHE = {"cacheReadInputTokens": "cachedInputTokens", "cacheWriteInputTokens": "cacheWriteTokens"}


class _Block(Struct):
    key: Any
    start: Mapping[str, Any]
    results: list[Any] = field(default_factory=list)


class BedrockAdapter:
    """Reads the events of one stream."""

    def __init__(self) -> None:
        self.message = Assembler()
        self._sources = Sources()
        self._blocks: dict[Any, _Block] = {}

    def take(self, item: Any) -> list[Event]:
        """The events of one item."""
        kind = next((key for key in _ITEMS if isinstance(get(item, key), Mapping)), None)
        given: Mapping[str, Any] = mapping(item)[kind] if kind else {}
        match kind:
            case "messageStart":
                return [] if self._blocks else self.message.start()
            case "contentBlockStart":
                index, start = given.get("contentBlockIndex"), mapping(given.get("start"))
                return [*self._stop(index), *self._begin(index, start)]
            case "contentBlockDelta":
                return self._grow(given.get("contentBlockIndex"), mapping(given.get("delta")))
            case "contentBlockStop":
                return self._stop(given.get("contentBlockIndex"))
            case "messageStop":
                return self._reason(get(given, "stopReason", str))
            case "metadata":
                return self._usage(given)
            case None:
                return strange_item(FORMAT.title, item)
            case _:
                self.message.reason = "error"
                said = get(given, "message", str) or get(given, "originalMessage", str)
                return self.message.other(error_event("Bedrock", {**given, "type": kind, "message": said or kind}))

    def whole(self, reply: Mapping[str, Any]) -> list[Event]:
        """A whole reply; what is open stays open for a further one."""
        message = mapping(mapping(reply.get("output")).get("message"))
        return [*self.blocks(message), *self._reason(get(reply, "stopReason", str)), *self._usage(reply)]

    def blocks(self, message: Mapping[str, Any]) -> list[Event]:
        """The blocks of a message."""
        found = self.message.start()
        for block in get(message, "content", list) or []:
            found += self._block(mapping(block))
        return found

    def close(self) -> list[Event]:
        """The stream is over, or was cut off: the ends of what is open."""
        return [*(event for index in list(self._blocks) for event in self._stop(index)), *self.message.close()]

    def _reason(self, reason: str | None) -> list[Event]:
        if reason is not None:
            self.message.reason = _REASONS.get(reason, "other")
        return self.message.start()

    def _usage(self, given: Mapping[str, Any]) -> list[Event]:
        reported = mapping(given.get("usage"))
        if usage := {**usage_of(reported, _USAGE), **usage_of(reported, _CACHE)}:
            self.message.metadata["usage"] = usage
        return self.message.start()

    # Blocks of a stream

    def _begin(self, index: Any, start: Mapping[str, Any]) -> list[Event]:
        block = self._blocks[index if isinstance(index, int) else None] = _Block(object(), start)
        return self._call(block.key, mapping(start["toolUse"])) if get(start, "toolUse", Mapping) else []

    def _grow(self, index: Any, delta: Mapping[str, Any]) -> list[Event]:
        block = self._blocks.get(index if isinstance(index, int) else None)
        if block is None:
            return [*self._begin(index, {}), *self._grow(index, delta)]
        if (text := get(delta, "text", str)) is not None:
            return self.message.text(text, block.key)
        if (use := get(delta, "toolUse", Mapping)) is not None:
            return self.message.arguments(block.key, get(use, "input", str) or "")
        if (thought := get(delta, "reasoningContent", Mapping)) is not None:
            return self._reasoning(block.key, thought)
        if (citation := get(delta, "citation", Mapping)) is not None:
            return self._cite(citation)
        if (results := get(delta, "toolResult", list)) is not None:
            block.results += results
            return []
        return self._block(delta)

    def _stop(self, index: Any) -> list[Event]:
        block = self._blocks.pop(index if isinstance(index, int) else None, None)
        if block is None:
            return []
        if (result := get(block.start, "toolResult", Mapping)) is not None:
            return self.result({**result, "content": block.results})
        return [*self.message.end_call(block.key), *self.message.end_block()]

    # Blocks of a message

    def _block(self, block: Mapping[str, Any]) -> list[Event]:
        key = object()
        if (text := get(block, "text", str)) is not None:
            return [*self.message.text(text, key), *self.message.end_block()]
        if (use := get(block, "toolUse", Mapping)) is not None:
            given = use.get("input", MISSING)
            return [*self._call(key, use), *self.message.end_call(key, MISSING if given == "" else json_value(given))]
        if (result := get(block, "toolResult", Mapping)) is not None and (found := self.result(result)):
            return found
        if (thought := get(block, "reasoningContent", Mapping)) is not None:
            whole = mapping(thought.get("reasoningText")) or thought
            return [*self._reasoning(key, whole), *self.message.end_block()]
        if (cited := get(block, "citationsContent", Mapping)) is not None:
            text = text_of(cited.get("content") or "")
            sources = [event for each in get(cited, "citations", list) or [] for event in self._cite(mapping(each))]
            return [*self.message.text(text, key), *self.message.end_block(), *sources]
        if (file := file_of(block)) is not None:
            return self.message.other(file)
        return self.message.other(custom(_PROVIDER, next(iter(block)), block)) if block else []

    def _call(self, key: Any, use: Mapping[str, Any]) -> list[Event]:
        about = {"provider_executed": True} if use.get("type") == "server_tool_use" else {}
        return self.message.begin_call(key, get(use, "toolUseId", str), get(use, "name", str) or "tool", **about)

    def result(self, result: Mapping[str, Any]) -> list[Event]:
        """What a call gave; of one that is not known, nothing."""
        call_id, content = get(result, "toolUseId", str) or "", result.get("content")
        about = {"provider_executed": True} if "type" in result else {}
        if result.get("status") == "error":
            return self.message.failure(call_id, text_of(content), **about)
        return self.message.output(call_id, _value(content), **about)

    def _reasoning(self, key: Any, thought: Mapping[str, Any]) -> list[Event]:
        found = self.message.reasoning(get(thought, "text", str) or "", key)
        if signature := get(thought, "signature", str):
            found += self.message.annotate({_PROVIDER: {"signature": signature}})
        hidden = thought.get("redactedContent")
        if isinstance(hidden, str | bytes):
            data = base64.b64encode(hidden).decode("ascii") if isinstance(hidden, bytes) else hidden
            found += self.message.annotate({_PROVIDER: {"redactedData": data}})
        return found

    def _cite(self, citation: Mapping[str, Any]) -> list[Event]:
        location = mapping(citation.get("location"))
        url = get(location.get("web"), "url", str) or get(citation, "source", str) or ""
        metadata = {_PROVIDER: json_value(citation)}
        if "://" in url:
            source = self._sources.page(url, citation.get("title"), metadata)
        else:
            place = next((mapping(value).get("documentIndex") for value in location.values()), None)
            source = self._sources.document([url, place], "text/plain", citation.get("title") or url, metadata)
        return self.message.after_block(source) if source is not None else []


def file_of(block: Mapping[str, Any]) -> Event | None:
    """An image, a document and the like, with its content or the place where it lies."""
    for name, pattern in _FILES.items():
        if (given := get(block, name, Mapping)) is not None:
            source = mapping(given.get("source"))
            kind = get(given, "format", str) or "*"
            media_type = _TEXTS.get(kind) or pattern.format(kind)
            return file_event(media_type, source.get("bytes"), get(source.get("s3Location"), "uri", str))
    return None


def _value(content: Any) -> Any:
    """The content of a result: one that is only text or one JSON value is that."""
    if isinstance(content, list) and len(content) == 1 and isinstance(get(content[0], "json"), dict | list):
        return json_value(content[0]["json"])
    if isinstance(content, list) and content and all(isinstance(get(part, "text"), str) for part in content):
        return text_of(content)
    return json_value(content)


def _is_item(item: Any) -> bool:
    return isinstance(item, Mapping) and len(item) <= 2 and any(get(item, key, Mapping) is not None for key in _ITEMS)


def _is_whole(thing: Any) -> bool:
    return isinstance(get(mapping(get(thing, "output")), "message"), Mapping) and "stopReason" in thing


def _whole(thing: Any) -> list[Event]:
    adapter = BedrockAdapter()
    return [*adapter.whole(thing), *adapter.close()]


FORMAT = Format(
    name="bedrock",
    title="a reply of Amazon Bedrock's Converse or its stream",
    is_item=_is_item,
    adapter=BedrockAdapter,
    is_whole=_is_whole,
    whole=_whole,
)
