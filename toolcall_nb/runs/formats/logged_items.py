"""Reads items of OpenAI's Responses API with the times at which they were logged: `LoggedItems`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from toolcall_nb.adapters.common_events import usage_of
from toolcall_nb.adapters.openai import OpenAIMessages, OpenAITurn
from toolcall_nb.adapters.openai.content import text_in
from toolcall_nb.adapters.openai.items import is_call_item, is_output_item
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.sdk_objects import as_json_text, as_mapping, nonempty
from toolcall_nb.runs.formats.codex_results import CallOutcome, call_item, end_of_event, end_of_output
from toolcall_nb.runs.run_facts import RequestFacts, RunFacts

_USAGE: Mapping[str, Sequence[str]] = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "totalTokens": "total_tokens",
    "cachedInputTokens": "cached_input_tokens",
    "reasoningTokens": "reasoning_output_tokens",
}
_UNREAD = ("internal_chat_message_metadata_passthrough", "metadata")
_WRITTEN_BY_CODEX = re.compile(
    r"\s*<(environment_context|user_instructions|permissions instructions|[a-z_]*notification)\b"
)
"""The beginning of messages that Codex writes in the user's name."""


def texts_of(item: Mapping[str, Any]) -> list[str]:
    """Returns the texts of a message or of a summary of reasoning, and all of them joined."""
    content = item.get("content") or item.get("summary")
    parts = content if isinstance(content, list) else [content]
    texts = [text for part in parts if (text := text_in(part)) is not None]
    return [*texts, "\n".join(texts)]


class LoggedItems:
    """Reads items one by one: `take` each of them, then `close`. ``model`` is that of the requests to come.

    ``name`` is that of the format. ``ends`` are the ends of calls by call id, which a log of Codex may have before or
    after the output.
    """

    def __init__(self, name: str, ends: Mapping[str, CallOutcome] = {}) -> None:
        self.facts = RunFacts(name)
        self.model: str | None = None
        self._ends = ends
        self._reader = OpenAIMessages(self._begin_turn)
        self._events = self._reader.events
        self._turns: dict[str, OpenAITurn] = {}  # by call
        self._open: dict[str, OpenAITurn] = {}  # the turns of calls without an output
        self._turn: OpenAITurn | None = None
        self._calls: list[str] = []  # since the last report of usage
        self._unnamed = 0

    def close(self) -> list[Event]:
        """Ends the session and returns its events."""
        self._reader.close()
        return self._events

    def prepend(self, events: Sequence[Event]) -> None:
        """Puts events before those that were read."""
        self._events[:0] = events

    def _begin_turn(self) -> OpenAITurn:
        self._turn = OpenAITurn()
        self.facts.begin_turn(self._turn.message)
        return self._turn

    # Items

    def take(self, fields: Mapping[str, Any], time: float | None) -> None:
        """Reads an item of OpenAI's Responses API, at the time when it was logged."""
        item = {name: value for name, value in fields.items() if name not in _UNREAD}
        kind = nonempty(item, "type") or "message"
        self.facts.see(time)
        if is_output_item(kind):
            self._output(item, time)
        elif is_call_item(kind):
            self._call({**item, "type": kind}, time)
        elif kind == "message":
            is_by_codex = any(_WRITTEN_BY_CODEX.match(text) for text in texts_of(item)[:1])
            self._reader.take({**item, "type": kind}, {"isMeta": True} if is_by_codex else None)
        else:
            self._reader.take(item)

    def message(self, role: str, content: str | list[Object], metadata: Object | None = None) -> None:
        """Adds a message, whose content is a text or parts."""
        self._reader.take({"type": "message", "role": role, "content": content}, metadata)

    def call(self, call_id: str, name: str, arguments: str, time: float | None) -> None:
        """Adds a call of a function."""
        self.take({"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}, time)

    def reasoning(self, text: str) -> None:
        """Adds a summary of reasoning."""
        self._reader.take({"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]})

    def error(self, text: str, details: Any) -> None:
        """Adds an error that ended a turn."""
        self._events.append(ev.Error(text, as_json_text(details)))

    def ended_call(self, event: Mapping[str, Any], time: float | None) -> None:
        """Adds a call that only its end event reports."""
        call_id, end = str(event.get("call_id")), end_of_event(event)
        self._call(call_item(event), time)
        self.result(call_id, end)
        if end.seconds is not None and time is not None:
            self.facts.call(call_id).began = self.facts.see(time - end.seconds)

    def result(self, call_id: str, end: CallOutcome) -> None:
        """Ends a call with the output of ``end``."""
        self._result({"type": "function_call_output", "call_id": call_id, "output": end.output}, end, None)

    def _call(self, item: Object, time: float | None) -> None:
        call_id = nonempty(item, "call_id") or nonempty(item, "id")
        if call_id is None:
            self._unnamed += 1
            call_id = item["id"] = f"{item['type']}-{self._unnamed}"
        arguments = item.get("arguments", "")
        if isinstance(arguments, Mapping | list) or arguments is None:
            item["arguments"] = "" if arguments is None else as_json_text(arguments)
        self._reader.take(item)
        if self._turn is not None:
            self._turns[call_id] = self._open[call_id] = self._turn
        self._calls.append(call_id)
        facts = self.facts.call(call_id)
        facts.began = time if facts.began is None else facts.began

    def _output(self, item: Object, time: float | None) -> None:
        call_id = nonempty(item, "call_id")
        if call_id is None and item.get("type") == "tool_search_output":
            self._reader.take(item)
            return
        by_output = end_of_output(item.get("output")) if self.facts.name == "codex" else CallOutcome()
        by_event = self._ends.get(call_id or "") or by_output
        end = CallOutcome(
            by_output.seconds if by_event.seconds is None else by_event.seconds,
            by_event.has_failed or by_output.has_failed,
            details={**by_output.details, **by_event.details},
        )
        self._result(item, end, time)

    def _result(self, item: Object, end: CallOutcome, time: float | None) -> None:
        call_id = nonempty(item, "call_id") or ""
        turn = self._turns.get(call_id)
        self._open.pop(call_id, None)
        if turn is None:
            self.facts.problem(f"There is an output of the call {call_id:.80}, but no such call.", "It was kept apart.")
            self._reader.take({"type": "unmatched_result", "result": item})
            return
        output = item.get("output")
        if end.has_failed:
            output = output if isinstance(output, str | list) else as_json_text(output)
            item = {**item, "output": output, "status": "failed"}
        events = turn.give(item)
        if not events:
            self.facts.problem(f"There is a second output of the call {call_id:.80}.", ev.LEFT_OUT)
        self.facts.answer(turn.message, events)
        facts = self.facts.call(call_id)
        facts.ended, facts.seconds = time, end.seconds
        if end.details:
            facts.details = end.details

    # Ends

    def deny(self, call_id: str) -> None:
        """Ends a call that the user did not allow."""
        if (turn := self._open.pop(call_id, None)) is not None:
            self.facts.answer(turn.message, turn.message.outcome(call_id, ev.ToolOutputDenied(call_id)))

    def interrupt(self) -> None:
        """Ends the open calls of a turn that was stopped."""
        for call_id, turn in self._open.items():
            self.facts.answer(turn.message, turn.message.outcome(call_id, ev.ToolInterrupted(call_id)))
        self._open.clear()

    def use(
        self, usage: Any, names: Mapping[str, Sequence[str]] = _USAGE, cost: dict[str, Decimal] | None = None
    ) -> None:
        """Reads the usage of a request, or of a turn. ``names`` are those of `usage_of`."""
        counts = usage_of(as_mapping(usage), names)
        if not counts:
            return
        if self._turn is None:  # a log of nothing but usage
            turn = self._begin_turn()
            self._events += [*turn.message.start(), *turn.close()]
        self.facts.request(RequestFacts(counts, cost, self.model, self._calls))
        self._calls = []
