"""What becomes of one tool call: asked for, run, refused or found wrong, told as events."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Literal

from msgspec import Struct

from toolcall_nb import events as ev
from toolcall_nb.events import MISSING, Event, Json, Missing
from toolcall_nb.tools.collection import Registry
from toolcall_nb.tools.definition import Tool
from toolcall_nb.tools.running import Outcome
from toolcall_nb.transcript import State, ToolCall

__all__ = ["Ask", "Decision", "answer_call"]


class Decision(Struct, frozen=True):
    """The answer to the question whether a call may run.

    ``input`` is what it may run with, where that is not what the model asked for. ``scope`` says how far the
    permission goes: this call, this chat, or every chat of the session.
    """

    approved: bool
    reason: str | None = None
    input: Json | Missing = MISSING
    scope: Literal["once", "chat", "always"] = "once"


Ask = Callable[[ToolCall], Decision]


def answer_call(
    call: ToolCall,
    tools: Registry,
    run: Callable[[Tool, ToolCall], Outcome],
    ask: Ask | None = None,
    *,
    is_automatic: bool = False,
) -> Iterator[Event]:
    """The events that bring an open call to its final state.

    ``run`` is called at most once, only with a tool that there is and, where ``ask`` is given, that it approved.
    ``is_automatic`` tells that no person is behind ``ask``.
    """
    if call.state is State.INPUT_STREAMING:
        text = "The reply ended before the arguments were complete."
        yield ev.ToolInputError(call.id, call.name, call.input_text, text)
    elif call.state is not State.INPUT_AVAILABLE or call.provider_executed:
        yield ev.ToolOutputError(call.id, "The model's side did not give a result.")
    elif call.name not in tools:
        yield ev.ToolOutputError(call.id, tools.unknown(call.name))
    elif ask is not None and not (yield from _approved(call, ask, is_automatic)):
        yield ev.ToolOutputDenied(call.id)
    else:
        yield _told(call, run(tools[call.name], call))


def _approved(call: ToolCall, ask: Ask, is_automatic: bool) -> Generator[Event, None, bool]:
    approval = f"approval-{call.id}"
    yield ev.ToolApprovalRequest(approval, call.id, is_automatic=is_automatic or None)
    decision = ask(call)
    yield ev.ToolApprovalResponse(approval, decision.approved, decision.reason)
    return decision.approved


def _told(call: ToolCall, outcome: Outcome) -> Event:
    if outcome.error is None:
        return ev.ToolOutputAvailable(call.id, outcome.output)
    if outcome.wrong_input:
        return ev.ToolInputError(call.id, call.name, call.input, outcome.error)
    return ev.ToolOutputError(call.id, outcome.error)
