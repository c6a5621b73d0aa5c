"""Asks a person in a notebook whether a call may run: `ask_in_notebook`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING
from toolcall_nb.live_runs.run import PLAYING, Run
from toolcall_nb.notebook.environment import Place, place_of
from toolcall_nb.notebook.run_displays import approver_for, make_display

if TYPE_CHECKING:
    from toolcall_nb.approvals import Decision
    from toolcall_nb.chat import Chat
    from toolcall_nb.core.transcript import ToolCall


def ask_in_notebook(call: ToolCall, chat: Chat, run: Run | None, shell: Any) -> Decision:
    """Asks in the card of the call: in ``run``, or in the run that plays the chat's events, as `show` does.

    A call that has no card is asked about by ``input``; in a widget's callback, it gets a card for the question.
    """
    if run is not None and run.is_running:
        return run.display.ask(call, lambda: chat.is_stopping)
    played = PLAYING.get()
    if played is not None and played.is_running and _has_card(played, call):
        return played.display.ask(call, lambda: chat.is_stopping)
    place = place_of(shell)
    return _ask_in_own_card(call, chat) if place is Place.CALLBACK else approver_for(place)(call)


def _has_card(run: Run, call: ToolCall) -> bool:
    shown = run.display.transcript.calls.get(call.id)
    return shown is not None and (shown.name, shown.approval) == (call.name, call.approval)


def _ask_in_own_card(call: ToolCall, chat: Chat) -> Decision:
    """Shows a run that has only this call and the answer."""
    display = make_display(Place.CALLBACK, info=chat.shown_model_name, on_stop=chat.stop, timings={})
    approval = call.approval.id if call.approval is not None else call.id
    display.show(ev.ToolInputAvailable(call.id, call.name, {} if call.input is MISSING else call.input))
    display.show(ev.ToolApprovalRequest(approval, call.id))
    try:
        decision = display.ask(call, lambda: chat.is_stopping)
        display.show(ev.ToolApprovalResponse(approval, decision.approved, decision.reason))
        return decision
    finally:
        display.close(chat.shown_model_name)
