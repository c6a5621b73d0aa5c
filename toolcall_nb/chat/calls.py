"""From the open calls of a reply to their ends: asked for, run or refused, each run at most once.

Calls run in order of appearance, in the thread of the turn. Those of neighbours whose tools allow it
(`Tool.parallel`) run beside each other, in threads of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Literal, TypeAlias

from msgspec.structs import replace

from toolcall_nb.approvals.edited_arguments import asking_about, check_edited
from toolcall_nb.chat.watch import ToolWatch
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event
from toolcall_nb.core.transcript import Approval, State, ToolCall
from toolcall_nb.tools import Decision, Grants, Job, Log, Outcome, Preliminary, Registry, Started, Tool, run_together

__all__ = ["Approve", "CallRunner", "Permission"]

Approve: TypeAlias = Literal["auto", "ask", "never"]

NEVER = "Tool calls are switched off for this chat."
NOBODY = "Nobody is there to be asked. Give the chat an approver."


class Permission:
    """Who is asked before a call runs: nobody (``auto``), ``ask``, or nobody since none may run (``never``)."""

    def __init__(self, mode: Approve, ask: Callable[[ToolCall], Decision] | None, grants: Grants) -> None:
        self.mode = mode
        self._ask = ask
        self._grants = grants

    def decide(self, call: ToolCall, tool: Tool) -> Generator[Event, None, ToolCall | None]:
        """The events of the question, if there is one; returns the call as it may run, or None.

        What was asked for is what runs: it is written down before the question, and read again after it.
        """
        if self.mode == "auto":
            return call
        written = json.dumps(call.input)
        automatic = self._automatic(tool)
        approval = f"approval-{call.id}"
        yield ev.ToolApprovalRequest(approval, call.id, is_automatic=automatic is not None or None)
        with asking_about(tool):
            decision = automatic or self._answer(replace(call, approval=Approval(id=approval)))
        if decision.approved and decision.input is not MISSING:
            written = json.dumps(decision.input)
            yield ev.ToolInputAvailable(call.id, call.name, json.loads(written))
        if decision.approved:
            self._grants.add(tool, decision.scope)
        reason = decision.reason or (self._grants.reason(tool) if decision.approved else None)
        yield ev.ToolApprovalResponse(approval, decision.approved, reason)
        return replace(call, input=json.loads(written)) if decision.approved else None

    def answer(self, call: ToolCall) -> Iterator[Event]:
        """The events of an answer to a question that the model's side has asked; what runs there, is for it to do."""
        assert call.approval is not None
        if self.mode == "never":
            decision = Decision(False, NEVER)
        else:
            decision = self._answer(call) if self._ask is not None else Decision(False, NOBODY)
        if decision.approved and decision.input is not MISSING:
            yield ev.ToolInputAvailable(call.id, call.name, decision.input)
        yield ev.ToolApprovalResponse(call.approval.id, decision.approved, decision.reason)

    def _automatic(self, tool: Tool) -> Decision | None:
        if self.mode == "never":
            return Decision(False, NEVER)
        granted = self._grants.reason(tool)
        return None if granted is None else Decision(True, granted)

    def _answer(self, call: ToolCall) -> Decision:
        """What is said to the question. An answer that did not come is no permission, nor is one that cannot be run."""
        assert self._ask is not None
        try:
            decision = self._ask(call)
        except Exception as error:
            return Decision(False, f"No answer could be had: {type(error).__name__}: {error}")
        if decision.input is MISSING:
            return decision
        try:
            return replace(decision, input=check_edited(decision.input))
        except ValueError as error:
            return Decision(False, f"The edited arguments cannot be used. {error}")


class CallRunner:
    """Brings calls to their ends.

    ``asks_permission``: the model's side may ask whether a call may run there. Such a call is answered and left open;
    the model has its end when it is told the answer.
    """

    def __init__(
        self, tools: Registry, permission: Permission, watch: ToolWatch, asks_permission: bool = False
    ) -> None:
        self._tools = tools
        self._permission = permission
        self._watch = watch
        self._asks_permission = asks_permission

    def run(self, calls: Iterable[ToolCall]) -> Iterator[Event]:
        """The events that bring each of these open calls to its final state."""
        together: list[ToolCall] = []
        for call in calls:
            if self._asks_permission and call.state is State.APPROVAL_REQUESTED and call.approval is not None:
                yield from self._permission.answer(call)
                continue
            refusal = self._refusal(call)
            if refusal is not None:
                yield refusal
                continue
            tool = self._tools[call.name]
            allowed = yield from self._permission.decide(call, tool)
            if allowed is None:
                yield ev.ToolOutputDenied(call.id)
            elif tool.parallel:
                together.append(allowed)
            else:
                yield from self._run_together(together)
                together = []
                yield from self._run_here(allowed)
        yield from self._run_together(together)

    def _refusal(self, call: ToolCall) -> Event | None:
        """Why the call cannot run, if it cannot."""
        if call.state is State.INPUT_STREAMING:
            text = "The reply ended before the arguments were complete."
            return ev.ToolInputError(call.id, call.name, call.input_text, text)
        if call.state is not State.INPUT_AVAILABLE or call.provider_executed:
            return ev.ToolOutputError(call.id, "The model's side did not give a result.")
        return None if call.name in self._tools else ev.ToolOutputError(call.id, self._tools.unknown(call.name))

    def _run_here(self, call: ToolCall) -> Iterator[Event]:
        yield from self._watch.begins(call)
        outcome = self._tools[call.name].run(
            _arguments(call), lambda progress: self._watch.tells(_progress_event(call, progress)), _whole(call)
        )
        self._watch.ended(call, outcome)
        yield from self._watch.missed()
        yield from _outcome_events(call, outcome)

    def _run_together(self, calls: Sequence[ToolCall]) -> Iterator[Event]:
        jobs = {Job(self._tools[call.name], _arguments(call), _whole(call)): call for call in calls}
        with closing(run_together(tuple(jobs))) as news:
            for job, what in news:
                call = jobs[job]
                match what:
                    case Started():
                        yield from self._watch.begins(call)
                    case Outcome():
                        self._watch.ended(call, what)
                        yield from _outcome_events(call, what)
                    case _:
                        yield _progress_event(call, what)


def _arguments(call: ToolCall) -> ev.Json:
    return {} if call.input is None else call.input


def _whole(call: ToolCall) -> str:
    """Where the kernel has the very value that the tool returned."""
    return f"chat.outcomes[{call.id[:80]!r}].value"


def _progress_event(call: ToolCall, progress: Log | Preliminary) -> Event:
    if isinstance(progress, Log):
        return ev.ToolLog(call.id, progress.text)
    return ev.ToolOutputAvailable(call.id, progress.output, preliminary=True, display=progress.display)


def _outcome_events(call: ToolCall, outcome: Outcome) -> Iterator[Event]:
    """The end of the call; before a failure, what the tool has given nevertheless."""
    if outcome.error is None:
        yield ev.ToolOutputAvailable(call.id, outcome.output, display=outcome.display, seen=outcome.seen)
    elif outcome.wrong_input:
        yield ev.ToolInputError(call.id, call.name, call.input, outcome.error)
    else:
        if outcome.output is not None:
            yield ev.ToolOutputAvailable(call.id, outcome.output, preliminary=True, display=outcome.display)
        yield ev.ToolOutputError(call.id, outcome.error, traceback=outcome.traceback)
