"""Reads Amazon Bedrock's Converse: streams, complete replies and lists of messages, as boto3 has them.

Source: the API reference of the Bedrock Runtime (``ConverseStreamOutput``, ``Message``, ``ContentBlock``,
``StopReason``). An item is a mapping with one key, the event's type; recorded bodies are binary frames of the same
content.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from toolcall_nb.adapters.base import Format, MessageAdapter
from toolcall_nb.adapters.common_events import file_event, unknown_item, usage_of
from toolcall_nb.adapters.fields_in_use import FieldsInUse, in_use
from toolcall_nb.adapters.message_lists import BlockMessages, read_message_list
from toolcall_nb.core.contents import json_piece, read_contents
from toolcall_nb.core.events import MISSING, Event, Object
from toolcall_nb.core.sdk_objects import as_json_value, as_mapping, first_items, get, joined_text

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
    "inputTokens": ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"),
    "outputTokens": "outputTokens",
    "totalTokens": "totalTokens",
    "cachedInputTokens": "cacheReadInputTokens",
    "cacheWriteTokens": "cacheWriteInputTokens",
}
_USED_OF_BLOCK = in_use(
    "text citation",
    needs="text toolUse toolResult reasoningContent citationsContent citation",
    toolUse=in_use("toolUseId name input"),
    toolResult=in_use("toolUseId content status"),
    reasoningContent=in_use("text signature redactedContent", reasoningText=in_use("text signature")),
    citationsContent=in_use("content citations"),
    envelope=True,
)
_USED = in_use(
    "stopReason message originalMessage",
    delta=_USED_OF_BLOCK,
    start=_USED_OF_BLOCK,
    output=in_use(envelope=True, message=in_use(envelope=True, content=_USED_OF_BLOCK)),
    usage=in_use("inputTokens outputTokens totalTokens cacheReadInputTokens cacheWriteInputTokens", snapshot=True),
    envelope=True,
)
"""The fields of an event, and of a complete reply."""
_USED_OF_ITEM = FieldsInUse(frozenset(), dict.fromkeys(_ITEMS, _USED))


class _Block(Struct):
    """An open block: its start, and the pieces of a tool result in it."""

    key: Any
    start: Mapping[str, Any]
    results: list[Any] = field(default_factory=list)


class BedrockAdapter(MessageAdapter):
    """Reads the events of one stream. `CONVERSE_MESSAGES` uses `blocks` and `result` too."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[Any, _Block] = {}

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one item."""
        kind = next((key for key in _ITEMS if isinstance(get(item, key), Mapping)), None)
        event: Mapping[str, Any] = as_mapping(item)[kind] if kind else {}
        events = self._read(kind, event, item)
        self.message.keep_unread("bedrock", _USED_OF_ITEM.unread(as_mapping(item) if kind else {}))
        return events

    def _read(self, kind: str | None, event: Mapping[str, Any], item: Any) -> list[Event]:
        index = event.get("contentBlockIndex") if isinstance(event.get("contentBlockIndex"), int) else None
        match kind:
            case "messageStart":
                return [] if self._blocks else self.begin_reply()
            case "contentBlockStart":
                return [*self._stop(index), *self._begin(index, as_mapping(event.get("start")))]
            case "contentBlockDelta":
                return self._grow(index, as_mapping(event.get("delta")))
            case "contentBlockStop":
                return self._stop(index)
            case "messageStop" | "metadata":
                self._describe(event)
                return self.message.start()
            case None:
                return unknown_item(CONVERSE.title, item)
            case _:
                text = get(event, "message", str) or get(event, "originalMessage", str)
                return self.message.fail("Bedrock", {**event, "type": kind, "message": text or kind})

    def whole(self, reply: Mapping[str, Any]) -> list[Event]:
        """Returns the events of a complete reply."""
        events = self.blocks(as_mapping(as_mapping(reply.get("output")).get("message")))
        self._describe(reply)
        self.message.describe(response_id=get(reply.get("ResponseMetadata"), "RequestId", str))
        self.message.keep_unread("bedrock", _USED.unread(reply))
        return [*events, *self.close()]

    def blocks(self, message: Mapping[str, Any]) -> list[Event]:
        """Returns the events of a message's blocks."""
        blocks = get(message, "content", list) or []
        return [*self.message.start(), *(event for block in blocks for event in self._block(as_mapping(block)))]

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open."""
        return [*(event for index in list(self._blocks) for event in self._stop(index)), *self.message.close()]

    def _describe(self, report: Mapping[str, Any]) -> None:
        """Reads the stop reason and the token counts."""
        if (reason := get(report, "stopReason", str)) is not None:
            self.message.reason = _REASONS.get(reason, "other")
        self.message.describe(usage=usage_of(as_mapping(report.get("usage")), _USAGE))

    # Blocks of a stream

    def _begin(self, index: Any, start: Mapping[str, Any]) -> list[Event]:
        block = self._blocks[index] = _Block(object(), start)
        return self._call(block.key, as_mapping(start["toolUse"])) if get(start, "toolUse", Mapping) else []

    def _grow(self, index: Any, delta: Mapping[str, Any]) -> list[Event]:
        block = self._blocks.get(index)
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
        block = self._blocks.pop(index, None)
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
            arguments = use.get("input", MISSING)
            begins = self._call(key, use)
            return [*begins, *self.message.end_call(key, MISSING if arguments == "" else as_json_value(arguments))]
        if (result := get(block, "toolResult", Mapping)) is not None and (events := self.result(result)):
            return events
        if (thought := get(block, "reasoningContent", Mapping)) is not None:
            whole = as_mapping(thought.get("reasoningText")) or thought
            return [*self._reasoning(key, whole), *self.message.end_block()]
        if (cited := get(block, "citationsContent", Mapping)) is not None:
            text = joined_text(cited.get("content") or "")
            sources = [event for each in get(cited, "citations", list) or [] for event in self._cite(as_mapping(each))]
            return [*self.message.text(text, key), *self.message.end_block(), *sources]
        if (file := _file(block)) is not None:
            return self.message.other(file)
        return self.message.custom("bedrock", next(iter(block)), block) if block else []

    def _call(self, key: Any, use: Mapping[str, Any]) -> list[Event]:
        fields = {"provider_executed": True} if use.get("type") == "server_tool_use" else {}
        return self.message.begin_call(key, get(use, "toolUseId", str), get(use, "name", str) or "tool", **fields)

    def result(self, result: Mapping[str, Any]) -> list[Event]:
        """Returns the events of a tool result for a known call."""
        call_id, content = get(result, "toolUseId", str) or "", result.get("content")
        content = read_contents(content, _piece)
        fields = {**({"provider_executed": True} if "type" in result else {}), "contents": content.contents}
        if result.get("status") == "error":
            return self.message.failure(call_id, content.error, **fields)
        return self.message.output(call_id, content.output, **fields)

    def _reasoning(self, key: Any, thought: Mapping[str, Any]) -> list[Event]:
        events = self.message.reasoning(get(thought, "text", str) or "", key)
        if signature := get(thought, "signature", str):
            events += self.message.annotate({"bedrock": {"signature": signature}})
        hidden = thought.get("redactedContent")
        if isinstance(hidden, str | bytes):
            data = base64.b64encode(hidden).decode("ascii") if isinstance(hidden, bytes) else hidden
            events += self.message.annotate({"bedrock": {"redactedData": data}})
        return events

    def _cite(self, citation: Mapping[str, Any]) -> list[Event]:
        location = as_mapping(citation.get("location"))
        url = get(location.get("web"), "url", str) or get(citation, "source", str) or ""
        metadata = {"bedrock": as_json_value(citation)}
        title = citation.get("title")
        if "://" in url:
            source = self.message.sources.page(url, title, metadata)
        else:
            document_index = next((as_mapping(value).get("documentIndex") for value in location.values()), None)
            source = self.message.sources.document([url, document_index], "text/plain", title or url, metadata)
        return self.message.cite("bedrock", citation, source)


def _file(block: Mapping[str, Any]) -> Event | None:
    """Returns the event of an image, a document and the like, by its content or its S3 location."""
    for name, pattern in _FILES.items():
        if (content := get(block, name, Mapping)) is not None:
            source = as_mapping(content.get("source"))
            kind = get(content, "format", str) or "*"
            media_type = _TEXTS.get(kind) or pattern.format(kind)
            url = get(source.get("s3Location"), "uri", str)
            return file_event(media_type, source.get("bytes"), url, filename=get(content, "name", str))
    return None


def _piece(block: Mapping[str, Any]) -> Event | Object | None:
    """Returns the piece or the event of a block of a tool's result that is no text."""
    return json_piece(as_json_value(block["json"])) if "json" in block else _file(block)


def _is_item(item: Any) -> bool:
    return isinstance(item, Mapping) and len(item) <= 2 and any(get(item, key, Mapping) is not None for key in _ITEMS)


def _is_whole(thing: Any) -> bool:
    return isinstance(get(as_mapping(get(thing, "output")), "message"), Mapping) and "stopReason" in thing


CONVERSE = Format(
    name="bedrock",
    title="a reply of Amazon Bedrock's Converse or its stream",
    adapter=BedrockAdapter,
    is_item=_is_item,
    is_whole=_is_whole,
    whole=lambda thing: BedrockAdapter().whole(thing),
)


# Lists of messages

_ONLY_HERE = ("toolUse", "toolResult", "reasoningContent", "citationsContent", "cachePoint", "guardContent")
"""Blocks that only Bedrock has. A list that contains only text is not recognised as Bedrock's."""


class _Turn(BedrockAdapter):
    """Reads a turn of the assistant in a list of messages; its items are messages."""

    def take(self, item: Any) -> list[Event]:
        return self.blocks(as_mapping(item))


def _read_messages(messages: Iterable[Any]) -> list[Event]:
    reader = BlockMessages(
        "bedrock",
        turn=_Turn,
        assistant="assistant",
        item=lambda message: message,
        blocks=lambda message: get(message, "content", list) or [],
        is_result=lambda block: "toolResult" in block,
        result=_result,
        file=_file,
    )
    return read_message_list(messages, reader)


def _result(turn: BedrockAdapter, block: Mapping[str, Any]) -> list[Event]:
    result = get(block, "toolResult", Mapping)
    return turn.result(result) if result is not None else []


def _is_list(thing: Any) -> bool:
    blocks = [block for message in first_items(thing) for block in first_items(get(message, "content"))]
    return any("type" not in as_mapping(block) and _is_only_here(block) for block in blocks)


def _is_only_here(block: Any) -> bool:
    is_file = any(get(get(block, name), "source", Mapping) is not None for name in _FILES)
    return is_file or any(get(block, key, Mapping) for key in _ONLY_HERE)


CONVERSE_MESSAGES = Format(
    name="bedrock-messages",
    title="a list of Bedrock's messages",
    adapter=BedrockAdapter,
    is_whole=_is_list,
    whole=_read_messages,
)
