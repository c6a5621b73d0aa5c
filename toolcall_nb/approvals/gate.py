"""Decides whether a tool call may run: `ApprovalGate`. The chat asks it before each call."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from typing import Any

from msgspec.structs import replace

from toolcall_nb.approvals.decisions import ApprovalMode, Approver, Decision, RememberedApprovals
from toolcall_nb.approvals.edited_arguments import asking_about, check_edited
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event
from toolcall_nb.core.text import well_formed_json
from toolcall_nb.core.transcript import Approval, ToolCall
from toolcall_nb.tools.definition import Tool

_SWITCHED_OFF = "Tool calls are switched off for this chat."
_NOBODY_TO_ASK = "Nobody is there to be asked. Give the chat an approver."


class _AskedCall(ToolCall, frozen=True):
    """A call as an approver gets it. Its input is a new copy each time that it is read.

    So whatever an approver writes into it, everybody who is asked sees the input that is recorded and runs.
    """

    def __post_init__(self) -> None: ...  # the values are those of a call, which has corrected them

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        return well_formed_json(value) if name == "input" else value


class ApprovalGate:
    """Applies a chat's approval mode: asks where it must, remembers the answers, and yields the events of both."""

    def __init__(self, mode: ApprovalMode, ask: Approver | None, remembered: RememberedApprovals) -> None:
        self._mode = mode
        self._ask = ask
        self._remembered = remembered

    def asks(self, tool: Tool) -> bool:
        """Whether somebody would be asked about a call of this tool."""
        return self._mode == "ask" and self._remembered.reason(tool) is None

    def decide(self, call: ToolCall, tool: Tool) -> Generator[Event, None, ToolCall | None]:
        """Yields the events of the question, if there is one; returns the call as it may run, None if it may not.

        The input is serialised before the question and read from that text afterwards: what was asked about is what
        runs.
        """
        if self._mode == "auto":
            return call
        input_json = json.dumps(call.input)
        automatic = self._automatic_decision(tool)
        approval = f"approval-{call.id}"
        yield ev.ToolApprovalRequest(approval, call.id, is_automatic=automatic is not None or None)
        with asking_about(tool):
            decision = automatic or self._asked_decision(replace(call, approval=Approval(id=approval)))
        if decision.approved and decision.input is not MISSING:
            input_json = json.dumps(decision.input)
            yield ev.ToolInputAvailable(call.id, call.name, json.loads(input_json))
        if decision.approved:
            self._remembered.add(tool, decision.scope)
        reason = decision.reason or (self._remembered.reason(tool) if decision.approved else None)
        yield ev.ToolApprovalResponse(approval, decision.approved, reason)
        return replace(call, input=json.loads(input_json)) if decision.approved else None

    def answer(self, call: ToolCall) -> Iterator[Event]:
        """Yields the events that answer a question of the model's side, where the call then runs or does not."""
        assert call.approval is not None
        decision = Decision(False, _SWITCHED_OFF) if self._mode == "never" else self._asked_decision(call)
        if decision.approved and decision.input is not MISSING:
            yield ev.ToolInputAvailable(call.id, call.name, decision.input)
        yield ev.ToolApprovalResponse(call.approval.id, decision.approved, decision.reason)

    def _automatic_decision(self, tool: Tool) -> Decision | None:
        if self._mode == "never":
            return Decision(False, _SWITCHED_OFF)
        reason = self._remembered.reason(tool)
        return None if reason is None else Decision(True, reason)

    def _asked_decision(self, call: ToolCall) -> Decision:
        """Asks the approver. An approver that fails, or that gives arguments which cannot be used, denies the call."""
        if self._ask is None:
            return Decision(False, _NOBODY_TO_ASK)
        try:
            decision = self._ask(_AskedCall(**{name: getattr(call, name) for name in ToolCall.__struct_fields__}))
        except Exception as error:
            return Decision(False, f"No answer could be had: {type(error).__name__}: {error}")
        if decision.input is MISSING:
            return decision
        try:
            return replace(decision, input=check_edited(decision.input))
        except ValueError as error:
            return Decision(False, f"The edited arguments cannot be used. {error}")
