"""Reads the messages of one conversation in a session log of Claude Code: `SessionMessages`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolcall_nb.adapters.anthropic import AnthropicAdapter, anthropic_messages, request_counts
from toolcall_nb.adapters.anthropic.stream import result_events
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import LEFT_OUT, Event, Object
from toolcall_nb.core.sdk_objects import as_json_value, as_mapping, get, joined_text, nonempty
from toolcall_nb.runs.run_facts import RunFacts, StepFacts, mark_messages, usd_cost

_REFUSED = "The user doesn't want to "
"""The beginning of the result of a call that the user did not allow."""

_INTERRUPTED = "[Request interrupted by user"
_SYNTHETIC = "<synthetic>"
"""The model of messages that Claude Code writes itself."""

_SKILL = "Base directory for this skill: "
_WRITTEN = re.compile(r"\s*<(system-reminder|local-command-[a-z]+|task-notification|bash-notification)>")
"""The beginnings of texts that Claude Code writes in the user's name."""


class SessionMessages:
    """Reads messages one by one: `take` each of them, then `close`.

    ``started`` has the calls by the id of the agent that they started, ``prompts`` the prompts by the call that may
    have started an agent with them, ``agents`` the kinds of these agents.
    """

    def __init__(self) -> None:
        self.facts = RunFacts("claude_code")
        self.started: dict[str, str] = {}
        self.prompts: dict[str, str] = {}
        self.agents: dict[str, str] = {}
        self.first_prompt: str | None = None
        self.first_id: str | None = None
        self.is_empty = True
        self._reader = anthropic_messages(self._begin_turn)
        self._events = self._reader.events
        self._turn: AnthropicAdapter | None = None
        self._turns: dict[str, AnthropicAdapter] = {}  # by call
        self._open: dict[str, AnthropicAdapter] = {}  # the turns of calls without a result
        self._answers: dict[str, StepFacts] = {}  # the answers of this turn, by message id
        self._blocks = 0
        self._is_repeated = False

    def take(self, role: str, message: Mapping[str, Any], line: Mapping[str, Any], time: float | None) -> None:
        """Reads a message and what its line says of it."""
        self.is_empty = False
        self.first_id = self.first_id or nonempty(line, "uuid")
        self.facts.see(time)
        blocks = _blocks(message.get("content"))
        if not blocks:
            self.facts.problem(f"The message {line.get('uuid')!s:.80} has no content.", LEFT_OUT)
        if role == "assistant":
            self._answer(message, blocks, line, time)
            return
        content = [part for block in blocks if (part := self._result(block, line, time)) is not None]
        texts = [text for block in content if (text := get(block, "text", str)) is not None]
        if self.first_prompt is None and texts:
            self.first_prompt = "\n".join(texts)
        if self._turn is not None and any(text.startswith(_INTERRUPTED) for text in texts):
            self._open.clear()
            turn = self._turn.message
            reason = "\n".join(texts).strip("[]")
            self.facts.answer(turn, [*turn.complete_calls(), ev.Abort(reason=reason)])
            return
        first = len(self._events)
        self._reader.take({"role": role, "content": content}, nonempty(line, "uuid"))
        injected = _injected(line, "\n".join(texts)) if role == "user" else None
        mark_messages(self._events, first, injected=injected, repeated=self._is_repeated or None)

    def repeat(self, is_repeated: bool) -> None:
        """Says whether the lines that follow are those of an earlier session."""
        if is_repeated is not self._is_repeated:
            self._reader.close()
            self._is_repeated = is_repeated

    def close(self) -> list[Event]:
        """Ends the conversation and returns its events."""
        self._reader.close()
        return self._events

    # Answers

    def _begin_turn(self) -> AnthropicAdapter:
        self._turn = AnthropicAdapter()
        self._answers = {}
        self.facts.begin_turn(self._turn.message)
        return self._turn

    def _answer(
        self, message: Mapping[str, Any], blocks: list[Object], line: Mapping[str, Any], time: float | None
    ) -> None:
        if line.get("isApiErrorMessage") is True:  # the program wrote it in the model's place
            first = len(self._events)
            self._reader.take({"role": "assistant", "content": []})
            self._events.append(ev.Error(joined_text(blocks), nonempty(line, "error")))
            mark_messages(self._events, first, repeated=self._is_repeated or None)
            return
        key = nonempty(message, "id")
        request = self._answers.get(key or "")
        if request is None:
            fields = {name: message.get(name) for name in ("id", "stop_reason", "stop_details", "container")}
            first = len(self._events)
            self._reader.take({"role": "assistant", "content": blocks, **fields})
            mark_messages(self._events, first, repeated=self._is_repeated or None)
            request = self.facts.begin_step(self._events, first)
            request.response_id = key
            self._answers.update({key: request} if key else {})
        else:
            self._go_on(message, blocks)
        request.usage = request_counts(as_mapping(message.get("usage"))) or request.usage
        request.cost = usd_cost(line.get("costUSD")) or request.cost
        model = nonempty(message, "model")
        request.model = request.model if model in (None, _SYNTHETIC) else model
        for block in blocks:
            call_id = nonempty(block, "id")
            if block.get("type") != "tool_use" or call_id is None or self._turn is None:
                continue
            self._turns[call_id] = self._open[call_id] = self._turn
            self.facts.begin_call(call_id, time)
            if prompt := nonempty(block.get("input"), "prompt"):
                self.prompts[call_id] = prompt
            if agent := nonempty(block.get("input"), "subagent_type"):
                self.agents[call_id] = agent

    def _go_on(self, message: Mapping[str, Any], blocks: Sequence[Object]) -> None:
        """Adds the blocks of a further line of the same answer."""
        assert self._turn is not None
        for block in blocks:
            self._blocks += 1
            index = 1_000 + self._blocks
            self._events += self._turn.take({"type": "content_block_start", "index": index, "content_block": block})
            self._events += self._turn.take({"type": "content_block_stop", "index": index})
        if reason := nonempty(message, "stop_reason"):
            self._events += self._turn.take({"type": "message_delta", "delta": {"stop_reason": reason}})

    # Results

    def _result(self, block: Object, line: Mapping[str, Any], time: float | None) -> Object | None:
        """Reads a tool result. Returns a block that is none, and a result whose call is not in the conversation."""
        call_id = nonempty(block, "tool_use_id")
        if block.get("type") != "tool_result" or call_id is None:
            return block
        turn, structured = self._turns.get(call_id), line.get("toolUseResult")
        if turn is None:
            self.facts.problem(f"There is a result of the call {call_id:.80}, but no such call.", "It was kept apart.")
            return block if structured is None else {**block, "toolUseResult": structured}
        self._open.pop(call_id, None)
        events = _denial(turn, call_id, block) or result_events(turn.message, block)
        if not events:
            self.facts.problem(f"There is a second result of the call {call_id:.80}.", LEFT_OUT)
        self.facts.answer(turn.message, events)
        facts = self.facts.call(call_id)
        facts.ended = time
        for name in ("durationMs", "totalDurationMs"):
            if (duration := get(structured, name, (int, float))) is not None and 0 <= duration < 1e12:
                facts.seconds = duration / 1_000
        if agent := nonempty(structured, "agentId"):
            self.started[agent] = call_id
        if kind := nonempty(structured, "agentType"):
            self.agents[call_id] = kind
        text = joined_text(block.get("content"))
        if structured not in (None, text, f"Error: {text}"):
            facts.details = {"toolUseResult": as_json_value(structured)}
        return None


def _injected(line: Mapping[str, Any], text: str) -> str | None:
    """Returns what wrote a message of the user in the user's place; None for one that the user wrote."""
    if line.get("isCompactSummary") is True:
        return "compaction"
    if match := _WRITTEN.match(text):
        return match[1]
    if line.get("isMeta") is not True:
        return None
    return "skill" if text.startswith(_SKILL) else ""


def _denial(turn: AnthropicAdapter, call_id: str, block: Object) -> list[Event]:
    """Returns the events of a call that the user did not allow; none for other results."""
    reason = joined_text(block.get("content"))
    if block.get("is_error") is not True or not reason.startswith(_REFUSED):
        return []
    end = turn.message.outcome(call_id, ev.ToolOutputDenied(call_id))
    approval: list[Event] = [ev.ToolApprovalRequest(call_id, call_id), ev.ToolApprovalResponse(call_id, False, reason)]
    return [*approval, *end] if end else []


def _blocks(content: Any) -> list[Object]:
    """Returns the content as blocks, whatever it is."""
    items = content if isinstance(content, list) else [] if content in (None, "") else [content]
    return [_block(item) for item in items]


def _block(block: Any) -> Object:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    return block if isinstance(block, dict) else {"type": "unknown", "content": block}
