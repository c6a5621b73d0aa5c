"""From the open calls of a reply to their ends: asked for, run or refused, each run at most once.

Calls run in order of appearance, in the thread of the turn. Those of neighbours whose tools allow it
(`Tool.parallel`) run beside each other, in threads of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from toolcall_nb.approvals.gate import ApprovalGate
from toolcall_nb.chat.watch import ToolWatch
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import State, ToolCall
from toolcall_nb.tools import Job, Log, Outcome, Preliminary, Registry, Started, run_together

__all__ = ["CallRunner"]


class CallRunner:
    """Brings calls to their ends.

    ``asks_permission``: the model's side may ask whether a call may run there. Such a call is answered and left open;
    the model has its end when it is told the answer.
    """

    def __init__(self, tools: Registry, gate: ApprovalGate, watch: ToolWatch, asks_permission: bool = False) -> None:
        self._tools = tools
        self._gate = gate
        self._watch = watch
        self._asks_permission = asks_permission

    def run(self, calls: Iterable[ToolCall]) -> Iterator[Event]:
        """The events that bring each of these open calls to its final state."""
        together: list[ToolCall] = []
        for call in calls:
            if self._asks_permission and call.state is State.APPROVAL_REQUESTED and call.approval is not None:
                yield from self._gate.answer(call)
                continue
            refusal = self._refusal(call)
            if refusal is not None:
                yield refusal
                continue
            tool = self._tools[call.name]
            allowed = yield from self._gate.decide(call, tool)
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
