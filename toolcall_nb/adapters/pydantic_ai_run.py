"""One assistant message of pydantic-ai: the parts of all requests of a run, and what came of their calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolcall_nb import events as ev
from toolcall_nb.adapters.assembling import Assembler, usage_of
from toolcall_nb.adapters.parts import Sources, custom
from toolcall_nb.adapters.plain import get, json_value
from toolcall_nb.adapters.pydantic_ai_parts import (
    citation_sources,
    fields,
    file_of,
    metadata_of,
    outcome_event,
    provider_of,
)
from toolcall_nb.events import MISSING, Event, Object

__all__ = ["Run"]

_REASONS = {"content_filter": "content-filter", "tool_call": "tool-calls"}
_USAGE = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_read_tokens": "cachedInputTokens",
    "cache_write_tokens": "cacheWriteTokens",
    "output_reasoning_tokens": "reasoningTokens",
}
_OF_A_DELTA = {"text": "content", "speech": "transcript", "thinking": "content"}


class Run:
    """Collects the message. A part is known by its index within its request; `next_request` begins another."""

    def __init__(self) -> None:
        self.message = Assembler()
        self.has_begun = False
        self._sources = Sources()
        self._request = 0
        self._kinds: dict[Any, str] = {}
        self._ended: set[Any] = set()
        self._block: Any = None
        self._metadata: Object = {}  # of the block that is open
        self._calls: dict[str, Any] = {}  # their keys by their ids
        self._given: dict[Any, Object] = {}  # arguments that came as objects
        self._usage: dict[str, int] = {}

    def close(self) -> list[Event]:
        """The ends of what is open."""
        return [*self._end_block(), *self._end_calls(), *self.message.close()]

    def describe(self, response: Mapping[str, Any]) -> None:
        """Model, reason and usage; usage adds up over the requests."""
        reason = get(response, "finish_reason", str)
        self.message.reason = _REASONS.get(reason, reason) if reason else None
        if model := get(response, "model_name", str):
            self.message.metadata["model"] = model
        usage = _usage(response.get("usage"))
        self._tell_usage({name: self._usage.get(name, 0) + usage.get(name, 0) for name in {**self._usage, **usage}})

    def describe_usage(self, usage: Any) -> None:
        """The usage of the whole run, where it is known."""
        self._tell_usage(_usage(usage) or self._usage)

    def _tell_usage(self, usage: dict[str, int]) -> None:
        self._usage = usage
        if usage:
            self.message.metadata["usage"] = usage

    # Requests and their parts

    def next_request(self) -> list[Event]:
        """What was asked before is answered; another request begins."""
        self._request += 1
        ends = [*self._end_block(), *self._end_calls()]
        return [*ends, *self.message.other(ev.FinishStep()), *self.message.other(ev.StartStep())]

    def has_ended(self, index: int) -> bool:
        """Whether this part of the request is complete."""
        return (self._request, index) in self._ended

    def knows(self, index: int) -> bool:
        """Whether this part of the request has begun."""
        return (self._request, index) in self._kinds

    def begin_part(self, index: int, part: Mapping[str, Any]) -> list[Event]:
        """A part begins. One that begins again replaces itself."""
        key, kind = (self._request, index), get(part, "part_kind", str) or "part"
        is_again = self._kinds.get(key) == kind
        self._kinds[key], self.has_begun = kind, True
        match kind:
            case "text" | "speech":
                return self._grow_text(key, part, get(part, _OF_A_DELTA[kind], str) or "")
            case "thinking":
                return self._grow_thinking(key, part, get(part, "content", str) or "")
            case "tool-call" | "builtin-tool-call":
                return self._begin_call(key, part, is_again)
            case "builtin-tool-return":
                return [*self._end_block(), *self.end_of_call(part)]
        other = file_of(part.get("content")) or custom(provider_of(part), kind, json_value(part))
        return [*self._end_block(), *self.message.other(other)]

    def grow_part(self, index: int, delta: Mapping[str, Any]) -> list[Event]:
        """A part that has begun grows by a delta of pydantic-ai's."""
        key = (self._request, index)
        match delta.get("part_delta_kind"):
            case "text":
                return self._grow_text(key, delta, get(delta, "content_delta", str) or "")
            case "thinking":
                return self._grow_thinking(key, delta, get(delta, "content_delta", str) or "")
            case "tool_call":
                return self._grow_call(key, delta)
            case "speech" if delta.get("speaker") != "user":
                return self._grow_text(key, delta, get(delta, "transcript_delta", str) or "")
        return []

    def end_part(self, index: int, part: Mapping[str, Any]) -> list[Event]:
        """A part is complete, and this is the whole of it.

        pydantic-ai says so of a call when another part begins, though the arguments of calls that stream beside each
        other go on: one whose arguments are no whole object stays open.
        """
        key = (self._request, index)
        self._ended.add(key)
        match self._kinds.get(key):
            case "text" | "speech" | "thinking" if self._block == key:
                self._learn(part)
                return self._end_block()
            case "tool-call" | "builtin-tool-call":
                self.message.describe_call(key, get(part, "tool_name", str), provider_metadata=metadata_of(part))
                return self._end_call(key, part) if _is_whole(part.get("args")) else []
        return []

    # Text and thinking

    def _grow_text(self, key: Any, news: Mapping[str, Any], text: str) -> list[Event]:
        ends = self._end_block() if text and self._block != key else []
        if text:
            self._block = key
        if self._block == key:
            self._learn(news)
        return [*ends, *self.message.text(text, key), *self._cited(news)]

    def _grow_thinking(self, key: Any, news: Mapping[str, Any], text: str) -> list[Event]:
        ends = self._end_block() if self._block != key else []
        self._block = key
        self._learn(news)
        return [*ends, *self.message.reasoning(text, key)]

    def _cited(self, news: Mapping[str, Any]) -> list[Event]:
        found: list[Event] = []
        for source in citation_sources(news.get("citations") or news.get("citations_delta")):
            title = get(source, "title", str)
            event = self._sources.page(source.get("url"), title)
            if source.get("kind") == "document":
                document = [source.get("document_id"), title]
                event = self._sources.document(document, "application/octet-stream", title)
            if event is not None:
                found += self.message.after_block(event)
        return found

    def _learn(self, news: Mapping[str, Any]) -> None:
        """What the provider wants back with the block that is open: of its start, its deltas and its end."""
        signature = news.get("signature") or news.get("signature_delta")
        for provider, details in (metadata_of({**news, "signature": signature}) or {}).items():
            self._metadata[provider] = {**self._metadata.get(provider, {}), **details}

    def _end_block(self) -> list[Event]:
        known, self._metadata, self._block = self._metadata, {}, None
        kept = self.message.annotate(known) if known else []
        return [*kept, *self.message.end_block()]

    # Calls

    def _begin_call(self, key: Any, part: Mapping[str, Any], is_again: bool = False) -> list[Event]:
        call_id = get(part, "tool_call_id", str)
        about: Object = {"provider_metadata": metadata_of(part)}
        if part.get("part_kind") == "builtin-tool-call":
            about["provider_executed"] = True
        found = self._end_block()
        if is_again:
            self._given.pop(key, None)
            found += self.message.rewrite_call(key)
        found += self.message.begin_call(key, call_id, get(part, "tool_name", str) or "", **about)
        if call_id is not None:
            self._calls[call_id] = key
        return [*found, *self._more_arguments(key, part.get("args"))]

    def _grow_call(self, key: Any, delta: Mapping[str, Any]) -> list[Event]:
        more = get(delta, "tool_name_delta", str) or ""
        name = self.message.name_of(key) + more if more else None
        self.message.describe_call(key, name, provider_metadata=metadata_of(delta))
        return self._more_arguments(key, delta.get("args_delta"))

    def _more_arguments(self, key: Any, args: Any) -> list[Event]:
        if isinstance(args, Mapping):
            self._given[key] = {**self._given.get(key, {}), **json_value(args)}
        return self.message.arguments(key, args) if isinstance(args, str) else []

    def _end_call(self, key: Any, part: Mapping[str, Any]) -> list[Event]:
        given = json_value(part.get("args")) if isinstance(part.get("args"), Mapping) else self._given.get(key, MISSING)
        return self.message.end_call(key, given)

    def _end_calls(self) -> list[Event]:
        given = [event for key, args in self._given.items() for event in self.message.end_call(key, args)]
        return [*given, *self.message.end_calls()]

    def has_call(self, call_id: str) -> bool:
        """Whether this call, by pydantic-ai's id, is of this message."""
        return call_id in self._calls

    @property
    def call_ids(self) -> set[str]:
        """pydantic-ai's ids of the calls of this message."""
        return set(self._calls)

    def start_call(self, part: Mapping[str, Any]) -> list[Event]:
        """The tool of a call starts now."""
        found = self.complete_call(part)
        call_id = get(part, "tool_call_id", str) or "tool-call"
        own_id = self.message.id_of(self._calls.get(call_id, ("run", call_id))) or call_id
        return [*found, *self.message.other(ev.ToolExecution(own_id, "running"))]

    def complete_call(self, part: Mapping[str, Any]) -> list[Event]:
        """The arguments of a call are complete; it may be one that an earlier run began."""
        call_id = get(part, "tool_call_id", str) or "tool-call"
        begins = [] if self.has_call(call_id) else self._begin_call(("run", call_id), part)
        self.has_begun = True
        return [*begins, *self._end_call(self._calls.get(call_id, ("run", call_id)), part)]

    def end_of_call(self, part: Mapping[str, Any]) -> list[Event]:
        """What came of a call. One that never began, in a history that was cut, begins here, without its input."""
        call_id = get(part, "tool_call_id", str) or "tool-call"
        if not self.has_call(call_id):
            self.has_begun = True
            start = ev.ToolInputStart(call_id, get(part, "tool_name", str) or "")
            return [*self._end_block(), *self.message.other(start), outcome_event(call_id, part)]
        key = self._calls[call_id]
        own_id = self.message.id_of(key) or call_id
        ends = self._end_call(key, {})
        return [*ends, *self.message.outcome(own_id, outcome_event(own_id, part))]


def _is_whole(args: Any) -> bool:
    try:
        return isinstance(json.loads(args) if isinstance(args, str) else args, Mapping)
    except (ValueError, RecursionError):
        return False


def _usage(reported: Any) -> dict[str, int]:
    counts = {name: count for name, count in usage_of(fields(reported), _USAGE).items() if count}
    total = counts.get("inputTokens", 0) + counts.get("outputTokens", 0)
    return {**counts, "totalTokens": total} if total else {}
