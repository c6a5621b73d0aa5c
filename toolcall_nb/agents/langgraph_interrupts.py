"""Asks a person what a graph of LangGraph waits for, and makes the graph's resume value of the answers: `Questions`.

Source: langgraph 1.2 (types.py) and langchain 1.4 (agents/middleware/human_in_the_loop.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Json
from toolcall_nb.core.sdk_objects import as_json_value, as_mapping, get
from toolcall_nb.core.transcript import ToolCall
from toolcall_nb.errors import ModelError

_TOOL = "interrupt"
"""The name of the card for an interrupt that is not about a call."""


class _Question(Struct):
    """A question about one call. ``is_own``: the call stands for the interrupt and is not the model's."""

    call_id: str
    name: str
    is_own: bool
    allowed: Collection[str] = ()


class _Interrupt(Struct):
    """An interrupt and its questions. Its kind says which form of answer it takes."""

    kind: Literal["batch", "call", "value"]
    value: Json
    questions: list[_Question]


class Questions:
    """The interrupts that ended a run.

    An interrupt of LangChain's `HumanInTheLoopMiddleware` asks about calls of the model. Any other interrupt is shown
    as a call of its own, with the arguments ``interrupt``, its value, and ``resume``, the value that the graph goes on
    with: true if it is approved as it is, another value if a person edits it; false if it is denied. If only
    ``interrupt`` was edited, the graph goes on with that.
    """

    def __init__(self) -> None:
        self._interrupts: dict[str, _Interrupt] = {}

    def __bool__(self) -> bool:
        return bool(self._interrupts)

    def ask(self, interrupt: Any, calls: Sequence[str | None], caller: str | None) -> Iterator[Event]:
        """Yields the events that ask about an interrupt.

        ``calls`` are the calls that it asks about, None for one that is not known. ``caller`` is the call whose tool
        waits, if one does.
        """
        value = as_json_value(interrupt.value)
        actions = get(value, "action_requests", list) or ([value] if get(value, "type", str) == "tool_approval" else [])
        kind: Literal["batch", "call", "value"] = "value"
        if actions and len(calls) == len(actions):
            kind = "batch" if "action_requests" in value else "call"
        else:
            actions, calls = [{"name": _TOOL, "args": {"interrupt": value, "resume": True}}], [None]
        asked = self._interrupts[interrupt.id] = _Interrupt(kind, value, [])
        for number, (action, call_id) in enumerate(zip(map(as_mapping, actions), calls, strict=True), 1):
            own_id = call_id or f"{_TOOL}-{interrupt.id}-{number}"
            name = get(action, "name", str) or _TOOL
            asked.questions.append(_Question(own_id, name, call_id is None, _allowed(interrupt, value, name)))
            if call_id is None:
                about = {"parent": caller} if caller is not None else None
                yield ev.ToolInputStart(own_id, name, tool_metadata=about)
                yield ev.ToolInputAvailable(own_id, name, action.get("args"), tool_metadata=about)
            yield ev.ToolApprovalRequest(own_id, own_id)

    def resume(self, answers: Mapping[str, ToolCall]) -> Mapping[str, Any]:
        """Returns the value for ``Command(resume=…)``: the answer to each interrupt, by its id.

        Raises `ModelError` for an answer that the graph does not take.
        """
        return {interrupt_id: _resume_value(asked, answers) for interrupt_id, asked in self._interrupts.items()}

    def denied(self, answers: Mapping[str, ToolCall]) -> set[str]:
        """Returns the ids of the calls that were not allowed."""
        return {question.call_id for question in self._all() if not _is_approved(answers.get(question.call_id))}

    def ends(self, answers: Mapping[str, ToolCall]) -> Iterator[Event]:
        """Yields the ends of the calls that stand for interrupts."""
        for asked in self._interrupts.values():
            for question in asked.questions:
                if question.is_own and not _is_approved(answers.get(question.call_id)):
                    yield ev.ToolOutputDenied(question.call_id)
                elif question.is_own:
                    yield ev.ToolOutputAvailable(question.call_id, _resume_value(asked, answers))

    def _all(self) -> Iterator[_Question]:
        for asked in self._interrupts.values():
            yield from asked.questions


def _resume_value(asked: _Interrupt, answers: Mapping[str, ToolCall]) -> Any:
    decisions = [(question, answers.get(question.call_id)) for question in asked.questions]
    match asked.kind:
        case "batch":
            return {"decisions": [_decision(question, call) for question, call in decisions]}
        case "call":
            return _decision(*decisions[0])
        case "value":
            call = decisions[0][1]
            if call is None or not _is_approved(call):
                return False
            given = as_mapping(call.input)
            is_other = given.get("resume", True) is True and given.get("interrupt") != asked.value
            return given.get("interrupt") if is_other else given.get("resume", True)


def _decision(question: _Question, call: ToolCall | None) -> Mapping[str, Any]:
    """Returns a person's answer in the form of LangChain's middleware."""
    decision: dict[str, Any] = {"type": "approve"}
    if call is None or not _is_approved(call):
        reason = call.approval.reason if call is not None and call.approval is not None else None
        decision = {"type": "reject", **({"message": reason} if reason else {})}
    elif call.original_input is not MISSING:
        decision = {"type": "edit", "edited_action": {"name": question.name, "args": call.input}}
    if question.allowed and decision["type"] not in question.allowed:
        raise ModelError(
            f"The agent's settings (interrupt_on) allow for calls of {question.name!r} only: "
            f"{', '.join(sorted(question.allowed))}. The answer was {decision['type']!r}, so the run was not continued."
        )
    return decision


def _allowed(interrupt: Any, value: Any, name: str) -> Collection[str]:
    """Returns the types of decisions that an interrupt takes about calls of a tool; nothing if it does not say."""
    for config in map(as_mapping, get(value, "review_configs", list) or ()):
        if config.get("action_name") == name:
            return frozenset(map(str, get(config, "allowed_decisions", list) or ()))
    schema = as_mapping(getattr(interrupt, "response_schema", None))
    found = (
        as_mapping(as_mapping(form).get("properties")) for form in (schema, *as_mapping(schema.get("$defs")).values())
    )
    return frozenset(str(form["type"]["const"]) for form in found if get(form.get("type"), "const", str))


def _is_approved(call: ToolCall | None) -> bool:
    return call is not None and call.approval is not None and bool(call.approval.approved)
