"""Provider envelopes (seed 001): what a service says of its model's reply, each thing in an envelope of its own.

    {"type": "provider-event", "data": {"type": "text-delta", "textDelta": "…"}}
    {"type": "latitude-event", "data": {"type": "provider-completed", "response": {"text": "…", "toolCalls": []}, …}}

Calls that the model writes in its text are none of this module's business: its text goes on as text, and the chat's
dialect finds them. Types that are not named here are ignored, and so is what comes after the end of a chain.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolcall_nb import events as ev
from toolcall_nb.errors import WireError
from toolcall_nb.events import MISSING, Event, Json, Missing, Object

__all__ = ["Envelopes"]

_REASONS = frozenset({"stop", "length", "content-filter", "tool-calls", "error", "other"})
_MOST = 2**53
_USAGE = {
    **{"promptTokens": "inputTokens", "completionTokens": "outputTokens", "totalTokens": "totalTokens"},
    **{"inputTokens": "inputTokens", "outputTokens": "outputTokens"},
}


class Envelopes:
    """Envelopes in, events out: `take` each, then `close`.

    A text block is what came between two ``provider-completed``, which also brings what was not streamed of it. A
    call is told once, whichever envelopes name it. ``finish`` comes from `close`, with the last reason and the sum of
    the ``usage``: ``inputTokens``, ``outputTokens``, ``totalTokens``.
    """

    def __init__(self) -> None:
        self._blocks = 0
        self._streamed: list[str] | None = None  # the deltas of the block that is open
        self._open: dict[str, bool] = {}  # calls by id: whether they have no result yet
        self._usage: dict[str, int] = {}
        self._reason: str | None = None
        self._is_over = False

    def take(self, envelope: Mapping[str, Any]) -> list[Event]:
        """The events of one envelope. Raises `WireError` for what is none, or has no text where it says so."""
        data = envelope.get("data", envelope) if isinstance(envelope, Mapping) else None
        kind = data.get("type") if isinstance(data, Mapping) else None
        if not isinstance(data, Mapping) or not isinstance(kind, str):
            raise WireError(f"An envelope holds data with a type, but this is {envelope!r:.200}. Check who sends it.")
        return [] if self._is_over else [*self._events(kind, data)]

    def close(self) -> list[Event]:
        """The stream is over: the end of what is open, and ``finish``."""
        metadata: Object | None = {"usage": self._usage} if self._usage else None
        return [*self._end_text(), ev.Finish(finish_reason=self._reason, message_metadata=metadata)]

    def _events(self, kind: str, data: Mapping[str, Any]) -> Iterator[Event]:
        match kind:
            case "text-delta":
                delta = data.get("textDelta")
                if not isinstance(delta, str):
                    raise WireError(f"A text-delta holds a textDelta, but this is {data!r:.200}. Check who sends it.")
                yield from self._text(delta)
            case "provider-completed":
                yield from self._completed(data)
            case "tools-started":
                yield from self._calls(data.get("tools"))
            case "tool-completed":
                yield from self._results(data)
            case "chain-error":
                self._reason, self._is_over = "error", True
                yield from self._end_text()
                yield ev.Error(_error(data.get("error")))
            case "chain-completed":
                self._is_over = True

    # Text

    def _text(self, delta: str) -> Iterator[Event]:
        if self._streamed is None:
            self._blocks += 1
            self._streamed = []
            yield ev.TextStart(f"text-{self._blocks}")
        self._streamed.append(delta)
        yield ev.TextDelta(f"text-{self._blocks}", delta)

    def _end_text(self) -> Iterator[Event]:
        if self._streamed is not None:
            self._streamed = None
            yield ev.TextEnd(f"text-{self._blocks}")

    def _completed(self, data: Mapping[str, Any]) -> Iterator[Event]:
        response = _mapping(data.get("response"))
        text, streamed = response.get("text"), "".join(self._streamed or ())
        if isinstance(text, str) and text.startswith(streamed):
            if len(text) > len(streamed):
                yield from self._text(text[len(streamed) :])
        elif isinstance(text, str):
            message = "the text of provider-completed is not the text that was streamed"
            yield ev.Diagnostic(message, "What was streamed was kept.")
        yield from self._end_text()
        yield from self._calls(response.get("toolCalls"))
        self._count(_mapping(data.get("tokenUsage")))
        reason = data.get("finishReason")
        self._reason = reason if reason in _REASONS else "other" if isinstance(reason, str) else self._reason

    def _count(self, reported: Mapping[str, Any]) -> None:
        counts = {_USAGE[key]: value for key, value in reported.items() if key in _USAGE and _is_count(value)}
        for key, value in counts.items():
            self._usage[key] = self._usage.get(key, 0) + int(value)

    # Calls

    def _calls(self, calls: Any) -> Iterator[Event]:
        """The calls that were not told before. One without a name is ignored."""
        for call in calls if isinstance(calls, list) else ():
            given = _mapping(call)
            name, call_id = _first(given, "name", "toolName"), _first(given, "id", "toolCallId")
            if not isinstance(call_id, str) or not call_id:
                call_id = f"call-{len(self._open) + 1}"
            if isinstance(name, str) and name and call_id not in self._open:
                self._open[call_id] = True
                yield from self._end_text()
                yield _call(call_id, name, _first(given, "arguments", "args"))

    def _results(self, data: Mapping[str, Any]) -> Iterator[Event]:
        """The results in the envelope: its own, or those of the last of the messages that it brings."""
        messages = data.get("messages")
        last = _mapping(messages[-1]) if isinstance(messages, list) and messages else {}
        content = last.get("content") if last.get("role") == "tool" else None
        found: Iterable[Any] = content if isinstance(content, list) else ()
        for result in (data, *map(_mapping, found)):
            call_id, output = result.get("toolCallId"), result.get("result", MISSING)
            if output is not MISSING and isinstance(call_id, str) and self._open.get(call_id):
                self._open[call_id] = False
                yield _ended(call_id, output, result.get("isError") is True)


def _call(call_id: str, name: str, given: Json | Missing) -> Event:
    if given is None or given is MISSING:
        return ev.ToolInputAvailable(call_id, name, {})
    if not isinstance(given, str):
        return ev.ToolInputAvailable(call_id, name, given)
    try:
        return ev.ToolInputAvailable(call_id, name, json.loads(given or "{}"))
    except (ValueError, RecursionError):
        return ev.ToolInputError(call_id, name, given, "The arguments of a tool call are no valid JSON.")


def _ended(call_id: str, output: Json, is_error: bool) -> Event:
    if not is_error:
        return ev.ToolOutputAvailable(call_id, output)
    return ev.ToolOutputError(call_id, output if isinstance(output, str) else json.dumps(output, ensure_ascii=False))


def _error(error: Any) -> str:
    message = _mapping(error).get("message", error)
    return message if isinstance(message, str) and message else "The service reported an error and said no more."


def _first(mapping: Mapping[str, Any], *keys: str) -> Any:
    return next((mapping[key] for key in keys if key in mapping), MISSING)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST
