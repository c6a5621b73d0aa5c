"""Anthropic's Messages API: streams, what its SDK's helper adds to them, whole messages.

Source: the raw stream events and blocks of anthropic-sdk-python 2.11 (``types/raw_message_stream_event.py``,
``types/content_block.py`` and their beta twins); the helper's own events are ``lib/streaming/_types.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from toolcall_nb.adapters.anthropic.blocks import PROVIDER, citation_source, name_of_call, result_events
from toolcall_nb.adapters.assembling import Assembler, usage_of
from toolcall_nb.adapters.base import Format
from toolcall_nb.adapters.parts import Sources, custom, error_event, strange_item
from toolcall_nb.adapters.plain import get, mapping, plain, type_name
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Object

__all__ = ["FORMAT", "AnthropicAdapter", "is_message"]

_RAW = frozenset(
    {
        *("message_start", "message_delta", "message_stop", "ping"),
        *("content_block_start", "content_block_delta", "content_block_stop"),
    }
)
_DERIVED = frozenset({"text", "thinking", "signature", "citation", "input_json", "compaction"})
"""What the SDK's helper makes of the raw events, which it gives too."""

_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool-calls",
    "refusal": "content-filter",
}
_USAGE = {
    "input_tokens": "inputTokens",
    "cache_creation_input_tokens": "inputTokens",
    "cache_read_input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "output_tokens_details.thinking_tokens": "reasoningTokens",
}
_CACHE = {"cache_creation_input_tokens": "cacheWriteTokens", "cache_read_input_tokens": "cachedInputTokens"}


class _Block(Struct):
    """A block that is open. ``given`` is what its start said; deltas of what is not known are added to it."""

    key: Any
    given: Object
    has_grown: bool = False


class _Request(Struct):
    """One message of the API: a stream may hold several, one behind the other."""

    id: str | None = None
    usage: Object = field(default_factory=dict)
    blocks: dict[Any, _Block] = field(default_factory=dict)


class AnthropicAdapter:
    """Raw stream events, and those of ``client.messages.stream()``, whose derived ones are passed over.

    A second ``message_start`` with the id of the first is passed over; with another, a further step of the same
    message begins. Text that Anthropic cut into blocks for its citations is one text again, with its sources behind.
    """

    def __init__(self) -> None:
        self.message = Assembler()
        """What is collected; for who knows results of its calls from elsewhere."""
        self._requests: list[_Request] = []
        self._sources = Sources()
        self._joins = False
        self._texts = 0

    def take(self, item: Any) -> list[Event]:
        """The events of one item."""
        if not isinstance(item, Mapping) and _kind(item) in _DERIVED:
            return []  # not even looked at: each holds all that came before it
        chunk = mapping(plain(item))
        match get(chunk, "type", str):
            case "message_start":
                return self._start(mapping(chunk.get("message")))
            case "content_block_start":
                return self._begin(chunk.get("index"), mapping(chunk.get("content_block")))
            case "content_block_delta":
                return self._grow(chunk.get("index"), mapping(chunk.get("delta")))
            case "content_block_stop":
                return self._stop(chunk.get("index"))
            case "message_delta":
                return self._news(mapping(chunk.get("delta")), mapping(chunk.get("usage")))
            case "message_stop" | "ping":
                return []
            case "error":
                self.message.reason = "error"
                return self.message.other(error_event("Anthropic", chunk.get("error")))
            case kind:
                return [] if kind in _DERIVED else strange_item(FORMAT.title, chunk or item)

    def close(self) -> list[Event]:
        """The stream is over, or was cut off: the ends of what is open."""
        usage = self._usage()
        if usage:
            self.message.metadata["usage"] = usage
        return [*self._end_request(), *self.message.close()]

    # The message

    def _start(self, message: Mapping[str, Any]) -> list[Event]:
        message_id = get(message, "id", str)
        if self._requests and message_id is not None and message_id == self._requests[-1].id:
            return []
        found: list[Event] = [*self._end_request(), ev.FinishStep(), ev.StartStep()] if self._requests else []
        self._requests.append(_Request(message_id))
        found += self.message.start(message_id)
        if model := get(message, "model", str):
            self.message.metadata["model"] = model
        for index, block in enumerate(get(message, "content", list) or []):
            found += [*self._begin(index, mapping(plain(block))), *self._stop(index)]
        return found + self._news(message, mapping(message.get("usage")))

    def _end_request(self) -> list[Event]:
        """What the request left open: blocks that were cut off."""
        blocks = list(self._requests[-1].blocks) if self._requests else []
        cut = [event for index in blocks for event in self._stop(index, is_cut=True)]
        self._joins = False
        return [*cut, *self.message.end_block(), *self.message.end_calls()]

    def _news(self, delta: Mapping[str, Any], usage: Mapping[str, Any]) -> list[Event]:
        """Of a ``message_delta``, or of a message: why it stopped, what it cost, where its tools ran."""
        self._request().usage.update({name: count for name, count in usage.items() if count is not None})
        reason = get(delta, "stop_reason", str)
        if reason is not None:
            self.message.reason = _REASONS.get(reason, "other")
        if container := get(delta, "container", Mapping):
            self.message.metadata["providerMetadata"] = {PROVIDER: {"container": dict(container)}}
        explanation = get(delta.get("stop_details"), "explanation", str)
        return self.message.text(explanation, "refusal") if reason == "refusal" and explanation else []

    def _usage(self) -> Object:
        total: Object = {}
        for request in self._requests:
            for name, count in {**usage_of(request.usage, _USAGE), **usage_of(request.usage, _CACHE)}.items():
                total[name] = total.get(name, 0) + count
        if "inputTokens" in total and "outputTokens" in total:
            total["totalTokens"] = total["inputTokens"] + total["outputTokens"]
        return total

    def _request(self) -> _Request:
        if not self._requests:
            self._requests.append(_Request())
        return self._requests[-1]

    # Its blocks

    def _begin(self, index: Any, given: Mapping[str, Any]) -> list[Event]:
        blocks, place = self._request().blocks, _place(index)
        old = blocks.get(place)
        if old is not None and old.given.get("id") is not None and old.given.get("id") == given.get("id"):
            return []
        found = self._stop(index, is_cut=True)
        block = blocks[place] = _Block(object(), dict(given))
        return found + self._first(block, get(given, "type", str) or "")

    def _first(self, block: _Block, kind: str) -> list[Event]:
        """The events of a block's start."""
        given, is_joined, self._joins = block.given, self._joins, False
        match kind:
            case "text":
                return self._begin_text(block, is_joined)
            case "thinking":
                return self.message.reasoning(get(given, "thinking", str) or "", block.key)
            case "redacted_thinking":
                return self.message.reasoning("", block.key, {PROVIDER: {"redactedData": given.get("data")}})
            case _ if name := name_of_call(given):
                about: Object = {} if kind == "tool_use" else {"provider_executed": True}
                metadata = {key: given[key] for key in ("caller", "server_name", "toolset_name") if given.get(key)}
                about["provider_metadata"] = {PROVIDER: {"type": kind, **metadata}} if metadata else None
                return self.message.begin_call(block.key, get(given, "id", str), name, **about)
            case _:
                return []

    def _begin_text(self, block: _Block, is_joined: bool) -> list[Event]:
        cited = get(block.given, "citations", list)
        if not (is_joined or (cited is not None and self._texts)):
            self._texts += 1
        block.key = self._texts
        self._joins = cited is not None
        found = self.message.text(get(block.given, "text", str) or "", block.key)
        return found + [event for citation in cited or [] for event in self._cite(citation)]

    def _cite(self, citation: Any) -> list[Event]:
        source = citation_source(self._sources, mapping(plain(citation)))
        return self.message.after_block(source) if source is not None else []

    def _grow(self, index: Any, delta: Mapping[str, Any]) -> list[Event]:
        block = self._request().blocks.get(_place(index))
        if block is None:
            block = self._request().blocks[_place(index)] = _Block(object(), {"type": _block_of(delta)})
            return self._first(block, block.given["type"]) + self._grow(index, delta)
        match get(delta, "type", str):
            case "text_delta":
                return self.message.text(get(delta, "text", str) or "", block.key)
            case "thinking_delta":
                return self.message.reasoning(get(delta, "thinking", str) or "", block.key)
            case "signature_delta":
                return self.message.annotate({PROVIDER: {"signature": delta.get("signature")}})
            case "input_json_delta" if name_of_call(block.given):
                block.has_grown = block.has_grown or bool(delta.get("partial_json"))
                return self.message.arguments(block.key, get(delta, "partial_json", str) or "")
            case "citations_delta":
                return self._cite(delta.get("citation"))
            case _:
                block.given = _with(block.given, delta)
                return []

    def _stop(self, index: Any, is_cut: bool = False) -> list[Event]:
        block = self._request().blocks.pop(_place(index), None)
        if block is None:
            return []
        given, kind = block.given, get(block.given, "type", str) or ""
        match kind:
            case "text":
                return []
            case "thinking":
                signature = get(given, "signature", str)
                return self.message.end_block({PROVIDER: {"signature": signature}} if signature else None)
            case "redacted_thinking":
                return self.message.end_block()
            case _ if name_of_call(given):
                whole = mapping(given.get("input"))
                return self.message.end_call(block.key, dict(whole) if whole and not block.has_grown else MISSING)
            case _:
                if kind == "fallback" and (model := get(given.get("to"), "model", str)):
                    self.message.metadata["model"] = model
                return result_events(self.message, given) or self.message.other(custom(PROVIDER, kind, given))


def _place(index: Any) -> Any:
    return index if isinstance(index, int) else None


def _block_of(delta: Mapping[str, Any]) -> str:
    """The kind of block that such a delta belongs to, where its start was not seen."""
    kind = get(delta, "type", str) or "unknown"
    known = {"signature_delta": "thinking", "citations_delta": "text"}
    return known.get(kind, kind.removesuffix("_delta"))


def _with(given: Object, delta: Mapping[str, Any]) -> Object:
    """A block of a kind that is not known, with what a delta adds: text grows, the rest is replaced."""
    grown = dict(given)
    for name, value in delta.items():
        if name == "type":
            continue
        old = grown.get(name)
        grown[name] = old + value if isinstance(old, str) and isinstance(value, str) else value
    return grown


def is_message(thing: Any) -> bool:
    """Whether something is a whole message of the API, or of the SDK."""
    if _kind(thing) != "message" or not isinstance(thing, Mapping):
        return _kind(thing) == "message"
    is_answer = "stop_reason" in thing or "model" in thing  # OpenAI's items of this type have neither
    return is_answer and isinstance(thing.get("content"), list)


def _is_item(item: Any) -> bool:
    if isinstance(item, Mapping):
        error = mapping(item.get("error"))
        is_error = _kind(item) == "error" and "type" in error and "message" in error and "sequence_number" not in item
        return _kind(item) in _RAW or is_error
    return _kind(item) in _RAW | _DERIVED


def _kind(thing: Any) -> str:
    """The ``type`` of a mapping, or of an object of the SDK; empty for anything else."""
    if isinstance(thing, Mapping):
        return get(thing, "type", str) or ""
    is_ours = type_name(thing).startswith(("anthropic.types.", "anthropic.lib.streaming."))
    kind = getattr(thing, "type", "") if is_ours else ""
    return kind if isinstance(kind, str) else ""


def _whole(thing: Any) -> Iterable[Event]:
    adapter = AnthropicAdapter()
    return [*adapter.take({"type": "message_start", "message": plain(thing)}), *adapter.close()]


FORMAT = Format(
    name="anthropic",
    title="an Anthropic message or its stream",
    is_item=_is_item,
    adapter=AnthropicAdapter,
    is_whole=is_message,
    whole=_whole,
)
