"""One assistant message of pydantic-ai: the parts of all requests of a run, and what came of their calls."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.assembling import Assembler, usage_of
from toolcall_nb.adapters.parts import Sources, custom
from toolcall_nb.adapters.plain import get, json_value
from toolcall_nb.adapters.pydantic_ai.parts import Told, citation_sources, fields, file_of, outcome_event, provider_of
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Object

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
        self._told: defaultdict[Any, Told] = defaultdict(Told)
        self._open: dict[Any, Any] = {}  # the blocks that are open, and the parts that they show
        self._raw: dict[Any, int] = {}  # how much of each text of raw reasoning is shown
        self._calls: dict[str, Any] = {}  # their keys by their ids
        self._given: dict[Any, Object] = {}  # arguments that came as objects
        self._native: Any = None  # the call of the provider's that is complete, but may be told anew
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
        ends = self._end_native_call(key)
        return [*ends, *self._begin_part(key, kind, part)]

    def _begin_part(self, key: Any, kind: str, part: Mapping[str, Any]) -> list[Event]:
        is_again = self._kinds.get(key) == kind
        self._kinds[key], self.has_begun = kind, True
        self._told[key] = Told()
        self._told[key].add(part)
        match kind:
            case "text" | "speech":
                return self._grow_text(key, part, get(part, _OF_A_DELTA[kind], str) or "")
            case "thinking":
                return self._grow_thinking(key, get(part, "content", str) or "")
            case "tool-call" | "builtin-tool-call":
                return self._begin_call(key, part, is_again)
            case "builtin-tool-return":
                return [*self._end_block(), *self.end_of_call(part, key)]
        other = file_of(part.get("content"), self._told[key].metadata())
        return [*self._end_block(), *self.message.other(other or custom(provider_of(part), kind, json_value(part)))]

    def grow_part(self, index: int, delta: Mapping[str, Any]) -> list[Event]:
        """A part that has begun grows by a delta of pydantic-ai's."""
        key = (self._request, index)
        self._told[key].add(delta)
        match delta.get("part_delta_kind"):
            case "text":
                return self._grow_text(key, delta, get(delta, "content_delta", str) or "")
            case "thinking":
                return self._grow_thinking(key, get(delta, "content_delta", str) or "")
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
        self._told[key].add(part)
        match self._kinds.get(key):
            case "thinking" if self._told[key].raw:
                return self._grow_thinking(key, "")
            case "text" | "speech" if key in self._open:
                return self._end_block()
            case "tool-call" | "builtin-tool-call" as kind:
                metadata = self._told[key].metadata()
                self.message.describe_call(key, provider_metadata=metadata)
                if kind == "builtin-tool-call":
                    self._native = key
                    return []
                return self._end_call(key, part) if _is_whole(part.get("args")) else []
        return []

    def is_again(self, index: int, part: Mapping[str, Any]) -> bool:
        """Whether the part is a call that this request has at this place: some are told anew when they are whole."""
        call_id = get(part, "tool_call_id", str)
        return call_id is not None and self._calls.get(call_id) == (self._request, index)

    def _end_native_call(self, key: Any) -> list[Event]:
        """The end of a call that the provider runs, which may be told anew until a part other than ``key`` begins."""
        native = self._native
        if native is None or native == key:
            return []
        self._native = None
        return self._end_call(native, {}) if native in self._given or _is_whole(self.message.written(native)) else []

    # Text and thinking

    def _grow_text(self, key: Any, news: Mapping[str, Any], text: str) -> list[Event]:
        is_signed = key not in self._ended and self._told[key].metadata() is not None  # Google signs empty text
        if key in self._open or not (text or is_signed):
            return [*self.message.text(text, key), *self._cited(news)]
        ends = self._end_block()
        self._open[key] = key
        return [*ends, *self.message.text(text, key, opens=True), *self._cited(news)]

    def _grow_thinking(self, key: Any, text: str) -> list[Event]:
        """Reasoning grows: its text, and the raw reasoning beside that, each text of which is a block of its own."""
        found: list[Event] = []
        for place, raw in enumerate(self._told[key].raw):
            block = (key, place)
            shown, self._raw[block] = self._raw.get(block, 0), len(raw)
            found += self._think(block, key, raw[shown:]) if shown < len(raw) else []
        return found + (self._think(key, key, text) if text or not self._told[key].raw else [])

    def _think(self, block: Any, key: Any, text: str) -> list[Event]:
        ends = self._end_block() if self.message.is_text else []
        self._open[block] = key
        return [*ends, *self.message.thought(text, block)]

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

    def _end_block(self) -> list[Event]:
        """The ends of the blocks that are open, with what the provider wants back with the parts that they show."""
        shown, self._open = self._open, {}
        for block, key in shown.items():
            more = {"raw_content": True} if block != key else {}
            self.message.annotate_block(block, self._told[key].metadata(**more) or {})
        return self.message.end_block()

    # Calls

    def _begin_call(self, key: Any, part: Mapping[str, Any], is_again: bool = False) -> list[Event]:
        call_id = get(part, "tool_call_id", str)
        about: Object = {"provider_metadata": self._told[key].metadata()}
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
        self.message.grow_name(key, get(delta, "tool_name_delta", str) or "")
        self.message.describe_call(key, provider_metadata=self._told[key].metadata())
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
        begins: list[Event] = []
        if not self.has_call(call_id):
            self._told["run", call_id].add(part)
            begins = self._begin_call(("run", call_id), part)
        self.has_begun = True
        return [*begins, *self._end_call(self._calls.get(call_id, ("run", call_id)), part)]

    def end_of_call(self, part: Mapping[str, Any], place: Any = None) -> list[Event]:
        """What came of a call. One that never began, in a history that was cut, begins here, without its input.

        ``place`` is the part's own key, where it is a part of the response: the result of a call that the provider ran.
        """
        call_id = get(part, "tool_call_id", str) or "tool-call"
        if not self.has_call(call_id):
            self.has_begun = True
            start = ev.ToolInputStart(call_id, get(part, "tool_name", str) or "")
            return [*self._end_block(), *self.message.other(start), outcome_event(call_id, part)]
        key = self._calls[call_id]
        own_id = self.message.id_of(key) or call_id
        ends = self._end_call(key, {})
        about = self._result_metadata(key, place)
        return [*ends, *self.message.outcome(own_id, outcome_event(own_id, part, about))]

    def _result_metadata(self, call: Any, result: Any) -> Object | None:
        """The metadata of a call whose result is a part of the response; None where there is nothing to add.

        ``result`` is what the provider wants back with the result, ``result_after`` how many parts stand between both.
        """
        if result is None:
            return None
        details: Object = next(iter((self._told[result].metadata() or {}).values()), {})
        between = result[1] - call[1] - 1 if result[0] == call[0] else 0
        more: Object = {"result": details} if details else {}
        more |= {"result_after": between} if between > 0 else {}
        return self._told[call].metadata(**more) if more else None


def _is_whole(args: Any) -> bool:
    try:
        return isinstance(json.loads(args) if isinstance(args, str) else args, Mapping)
    except (ValueError, RecursionError):
        return False


def _usage(reported: Any) -> dict[str, int]:
    counts = {name: count for name, count in usage_of(fields(reported), _USAGE).items() if count}
    total = counts.get("inputTokens", 0) + counts.get("outputTokens", 0)
    return {**counts, "totalTokens": total} if total else {}
