"""Reads streams and complete replies of Anthropic's Messages API, and the further events of its SDK's helper.

Source: the raw stream events and blocks of anthropic-sdk-python 2.11 (``types/raw_message_stream_event.py``,
``types/content_block.py`` and their beta twins); the helper's own events are ``lib/streaming/_types.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.adapters.base import Format, MessageAdapter
from toolcall_nb.adapters.common_events import add_counts, file_event, unknown_item, usage_of
from toolcall_nb.adapters.fields_in_use import in_use
from toolcall_nb.core.contents import read_contents
from toolcall_nb.core.events import MISSING, Event, Object
from toolcall_nb.core.sdk_objects import (
    as_json_text,
    as_mapping,
    dump,
    get,
    nonempty,
    object_fields,
    object_type,
)

_RAW = frozenset(
    {
        *("message_start", "message_delta", "message_stop", "ping"),
        *("content_block_start", "content_block_delta", "content_block_stop"),
    }
)
_DERIVED = frozenset({"text", "thinking", "signature", "citation", "input_json", "compaction"})
"""Events that the SDK's helper derives from the raw ones and yields beside them."""

_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool-calls",
    "refusal": "content-filter",
}
_USAGE = {
    "inputTokens": ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    "outputTokens": "output_tokens",
    "reasoningTokens": "output_tokens_details.thinking_tokens",
    "cacheWriteTokens": "cache_creation_input_tokens",
    "cachedInputTokens": "cache_read_input_tokens",
}
_BLOCK_TYPES = {"signature_delta": "thinking", "citations_delta": "text"}
"""The types of blocks by deltas that do not name them."""

_DELTAS = {
    "text_delta": in_use("text"),
    "thinking_delta": in_use("thinking"),
    "signature_delta": in_use("signature"),
    "input_json_delta": in_use("partial_json"),
    "citations_delta": in_use("citation"),
}
_USED = in_use(
    "content_block usage error",
    message=in_use("id model stop_reason content usage", envelope=True, snapshot=True),
    delta=in_use(kinds=_DELTAS, envelope=True),
)
_USED_AT_THE_END = in_use("usage", delta=in_use("stop_reason", envelope=True), snapshot=True)
_USED_OF_BLOCK = in_use(
    kinds={
        "text": in_use("text citations"),
        "thinking": in_use("thinking signature"),
        "redacted_thinking": in_use("data"),
        "tool_use": in_use("id name input caller server_name toolset_name"),
        "*_tool_use": in_use("id name input caller server_name toolset_name"),
        "*tool_result": in_use("tool_use_id content is_error"),
    }
)
_USED_OF_USAGE = in_use(
    "input_tokens output_tokens cache_creation_input_tokens cache_read_input_tokens",
    output_tokens_details=in_use("thinking_tokens"),
)


def request_counts(usage: Mapping[str, Any]) -> dict[str, int]:
    """Returns the ``usage`` of one request under our names.

    The totals do not include the requests in which Anthropic compacts the context, so these are added.
    """
    iterations = [as_mapping(each) for each in get(usage, "iterations", list) or []]
    compactions = [each for each in iterations if each.get("type") == "compaction"]
    counts = add_counts(usage_of(each, _USAGE) for each in (usage, *compactions))
    if "inputTokens" in counts and "outputTokens" in counts:
        counts["totalTokens"] = counts["inputTokens"] + counts["outputTokens"]
    return counts


class _Block(Struct):
    """An open block. ``fields`` holds its start; deltas of unknown kinds are added to it."""

    key: Any
    fields: Object
    has_grown: bool = False


class _Request(Struct):
    """One message of the API; a stream may contain several in sequence."""

    id: str | None = None
    usage: Object = field(default_factory=dict)
    blocks: dict[Any, _Block] = field(default_factory=dict)
    has_begun: bool = False


class AnthropicAdapter(MessageAdapter):
    """Reads raw stream events and those of ``client.messages.stream()``, whose derived events are skipped.

    A repeated ``message_start`` with the same id is ignored; one with another id begins a further step of the same
    message. Text that Anthropic split into blocks for its citations is joined again, followed by its sources.
    """

    def __init__(self) -> None:
        super().__init__()
        self._request = _Request()
        self._joins = False
        self._texts = 0

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one item."""
        if not isinstance(item, Mapping) and _type_of(item) in _DERIVED:
            return []  # not dumped: each of them contains everything before it
        chunk = object_fields(item)
        index = chunk.get("index") if isinstance(chunk.get("index"), int) else None
        kind = get(chunk, "type", str) or ""
        events = self._read(kind, chunk, index)
        if events is None:
            return [] if kind in _DERIVED else unknown_item(ANTHROPIC.title, chunk or item)
        self._request.has_begun = self._request.has_begun or kind != "ping"
        self.message.keep_unread("anthropic", (_USED_AT_THE_END if kind == "message_delta" else _USED).unread(chunk))
        return events

    def _read(self, kind: str, chunk: Mapping[str, Any], index: int | None) -> list[Event] | None:
        """Returns the events of an item; None for one of another type."""
        match kind:
            case "message_start":
                return self._start(as_mapping(chunk.get("message")))
            case "content_block_start":
                return self._begin(index, as_mapping(chunk.get("content_block")))
            case "content_block_delta":
                return self._grow(index, as_mapping(chunk.get("delta")))
            case "content_block_stop":
                return self._stop(index)
            case "message_delta":
                return self._update(as_mapping(chunk.get("delta")), as_mapping(chunk.get("usage")))
            case "message_stop" | "ping":
                return []
            case "error":
                return self.message.fail("Anthropic", chunk.get("error"))
        return None

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open."""
        return [*self._end_request(), *self.message.close()]

    # The message

    def _start(self, message: Mapping[str, Any]) -> list[Event]:
        message_id, before = get(message, "id", str), self._request
        if before.has_begun and message_id is not None and message_id == before.id:
            return []
        events = self.next_step() if before.has_begun else []
        self._request.id = message_id
        events += self.message.start(message_id)
        self.message.describe(model=get(message, "model", str), response_id=message_id)
        for index, block in enumerate(get(message, "content", list) or []):
            events += [*self._begin(index, object_fields(block)), *self._stop(index)]
        events += self._update(message, as_mapping(message.get("usage")))
        return events if self.message.reason else [*events, *self.message.complete_calls()]  # a message that is whole

    def next_step(self) -> list[Event]:
        """Ends a reply and begins the next one of the same message."""
        events = [*self._end_request(), *self.message.complete_calls(), *self.message.next_step()]
        self._request = _Request()
        return events

    def _end_request(self) -> list[Event]:
        """Ends the blocks that were cut off."""
        cut = [event for index in list(self._request.blocks) for event in self._stop(index)]
        self._joins = False
        self.message.describe(usage=request_counts(self._request.usage))
        self.message.keep_unread("anthropic", _USED_OF_USAGE.unread(self._request.usage, "usage."))
        return [*cut, *self.message.end_block(), *self.message.end_calls()]

    def _update(self, delta: Mapping[str, Any], usage: Mapping[str, Any]) -> list[Event]:
        """Reads the stop reason and the usage of a ``message_delta`` or a message."""
        self._request.usage.update({name: count for name, count in usage.items() if count is not None})
        reason = get(delta, "stop_reason", str)
        if reason is not None:
            self.message.reason = _REASONS.get(reason, "other")
        explanation = get(delta.get("stop_details"), "explanation", str)
        return self.message.text(explanation, "refusal") if reason == "refusal" and explanation else []

    # Content blocks

    def _begin(self, index: Any, fields: Mapping[str, Any]) -> list[Event]:
        blocks = self._request.blocks
        old = blocks.get(index)
        if old is not None and old.fields.get("id") is not None and old.fields.get("id") == fields.get("id"):
            return []
        events = self._stop(index)
        block = blocks[index] = _Block(object(), dict(fields))
        return events + self._first(block, get(fields, "type", str) or "")

    def _first(self, block: _Block, kind: str) -> list[Event]:
        """Returns the events of a block's start."""
        fields, is_joined, self._joins = block.fields, self._joins, False
        match kind:
            case "text":
                cited = get(fields, "citations", list)
                if not (is_joined or (cited is not None and self._texts)):
                    self._texts += 1
                block.key = self._texts
                self._joins = cited is not None
                events = self.message.text(get(fields, "text", str) or "", block.key)
                return events + [event for citation in cited or [] for event in self._cite(citation)]
            case "thinking":
                return self.message.reasoning(get(fields, "thinking", str) or "", block.key)
            case "redacted_thinking":
                return self.message.reasoning("", block.key, {"anthropic": {"redactedData": fields.get("data")}})
            case _ if name := tool_use_name(fields):
                call_fields: Object = {} if kind == "tool_use" else {"provider_executed": True}
                metadata = {key: fields[key] for key in ("caller", "server_name", "toolset_name") if fields.get(key)}
                call_fields["provider_metadata"] = {"anthropic": {"type": kind, **metadata}} if metadata else None
                if caller := nonempty(fields.get("caller"), "tool_id"):
                    call_fields["tool_metadata"] = {"parent": caller}  # code that the model wrote made the call
                return self.message.begin_call(block.key, get(fields, "id", str), name, **call_fields)
            case _:
                return []

    def _cite(self, annotation: Any) -> list[Event]:
        """Adds the source of a citation when it is new: a web page, or a document of the request."""
        citation, sources = object_fields(annotation), self.message.sources
        metadata = {"anthropic": dict(citation)}
        url = get(citation, "url", str) or get(citation, "source", str)
        if url and "://" in url:
            return self.message.cite("anthropic", citation, sources.page(url, citation.get("title"), metadata))
        title = get(citation, "document_title", str) or get(citation, "title", str)
        number = citation.get("document_index", citation.get("search_result_index"))
        media_type = "application/pdf" if citation.get("type") == "page_location" else "text/plain"
        source = sources.document([number, title, url], media_type, title, metadata)
        return self.message.cite("anthropic", citation, source)

    def _grow(self, index: Any, delta: Mapping[str, Any]) -> list[Event]:
        block, kind = self._request.blocks.get(index), get(delta, "type", str) or "unknown"
        if block is None:  # its start was not seen
            block_type = _BLOCK_TYPES.get(kind, kind.removesuffix("_delta"))
            block = self._request.blocks[index] = _Block(object(), {"type": block_type})
            return self._first(block, block_type) + self._grow(index, delta)
        match kind:
            case "text_delta":
                return self.message.text(get(delta, "text", str) or "", block.key)
            case "thinking_delta":
                return self.message.reasoning(get(delta, "thinking", str) or "", block.key)
            case "signature_delta":
                return self.message.annotate({"anthropic": {"signature": delta.get("signature")}})
            case "input_json_delta" if tool_use_name(block.fields):
                block.has_grown = block.has_grown or bool(delta.get("partial_json"))
                return self.message.arguments(block.key, get(delta, "partial_json", str) or "")
            case "citations_delta":
                return self._cite(delta.get("citation"))
            case _:
                block.fields = _merged(block.fields, delta)
                return []

    def _stop(self, index: Any) -> list[Event]:
        block = self._request.blocks.pop(index, None)
        if block is None:
            return []
        fields, kind = block.fields, get(block.fields, "type", str) or ""
        self.message.keep_unread("anthropic", _USED_OF_BLOCK.unread(fields))
        match kind:
            case "text":
                return []
            case "thinking":
                signature = get(fields, "signature", str)
                return self.message.end_block({"anthropic": {"signature": signature}} if signature else None)
            case "redacted_thinking":
                return self.message.end_block()
            case _ if tool_use_name(fields):
                whole = as_mapping(fields.get("input"))
                return self.message.end_call(block.key, dict(whole) if whole and not block.has_grown else MISSING)
            case _:
                if kind == "fallback":
                    self.message.describe(model=get(fields.get("to"), "model", str))
                return result_events(self.message, fields) or self.message.custom("anthropic", kind, fields)


def _merged(fields: Object, delta: Mapping[str, Any]) -> Object:
    """Adds a delta to a block of an unknown type: strings grow, other values are replaced."""
    grown = dict(fields)
    for name, value in delta.items():
        if name != "type":
            start = grown.get(name)
            grown[name] = start + value if isinstance(start, str) and isinstance(value, str) else value
    return grown


def is_message(thing: Any) -> bool:
    """Whether an object is a complete message of the API or of the SDK."""
    if not isinstance(thing, Mapping):
        return _type_of(thing) == "message"
    is_answer = "stop_reason" in thing or "model" in thing  # OpenAI's items of this type have neither
    return _type_of(thing) == "message" and is_answer and isinstance(thing.get("content"), list)


def _is_item(item: Any) -> bool:
    kind = _type_of(item)
    if not isinstance(item, Mapping):
        return kind in _RAW | _DERIVED
    error = as_mapping(item.get("error"))
    is_error = kind == "error" and "type" in error and "message" in error and "sequence_number" not in item
    return kind in _RAW or is_error


def _type_of(thing: Any) -> str:
    return object_type(thing, "anthropic.types.", "anthropic.lib.streaming.")


def _read_message(thing: Any) -> list[Event]:
    adapter = AnthropicAdapter()
    return [*adapter.take({"type": "message_start", "message": dump(thing)}), *adapter.close()]


ANTHROPIC = Format(
    name="anthropic",
    title="an Anthropic message or its stream",
    adapter=AnthropicAdapter,
    is_item=_is_item,
    is_whole=is_message,
    whole=_read_message,
)


def tool_use_name(block: Mapping[str, Any]) -> str | None:
    """Returns the tool's name, if the block is a call: ``tool_use``, ``server_tool_use``, ``mcp_tool_use`` …"""
    kind = get(block, "type", str) or ""
    return get(block, "name", str) if kind == "tool_use" or kind.endswith("_tool_use") else None


def result_events(message: Assembler, block: Mapping[str, Any]) -> list[Event]:
    """Returns the events of a tool's result (``tool_result``, ``web_search_tool_result`` …) for a known call."""
    call_id, content = get(block, "tool_use_id", str) or "", block.get("content")
    if not str(block.get("type")).endswith("tool_result"):
        return []
    fields: Object = {} if block.get("type") == "tool_result" else {"provider_executed": True}
    result = read_contents(content, anthropic_file_event)
    fields["contents"] = result.contents
    if block.get("is_error") is True:
        return message.failure(call_id, result.error, **fields)
    if (get(content, "type", str) or "").endswith("_error"):
        error, code = as_mapping(content), get(content, "error_code", str)
        text = get(error, "error_message", str) or get(error, "message", str)
        return message.failure(call_id, ": ".join(filter(None, (code, text))) or as_json_text(dict(error)), **fields)
    return message.output(call_id, result.output, **fields)


def anthropic_file_event(block: Mapping[str, Any]) -> Event | None:
    """Returns the event of a block that is a picture or a document, by its content or its URL; else None."""
    source, title = as_mapping(block.get("source")), get(block, "title", str)
    kind = get(block, "type", str) or ""
    media_type = get(source, "media_type", str) or {"image": "image/*", "document": "application/pdf"}.get(kind)
    match get(source, "type", str):
        case "base64":
            return file_event(media_type, source.get("data"), filename=title)
        case "text":
            return file_event("text/plain", str(source.get("data")).encode("utf-8", "replace"), filename=title)
        case "url":
            return file_event(media_type, url=get(source, "url", str), filename=title)
        case _:
            return None
