"""The ends of runs and of replies: `run_outcome` derives the `RunOutcome` of a run from its messages.

    done         there is an answer, or calls that the caller is to run
    error        the model, the agent or the connection failed
    limit        a limit of steps, tokens, time or cost was reached before there was an answer
    cut-off      the answer was cut off: at the length limit, or for another reason that is not known
    filtered     a content filter ended the answer
    stopped      a person or the program stopped it
    interrupted  it ended in the middle of a call or of a reply
    waiting      a call waits for approval
    unanswered   the last message is that of the user

Everything that counts runs or shows how they ended uses these words. `COMPLETE_REASONS` are the finish reasons of
complete replies; `cut_off_error` is the error of a call that the end of its reply may have cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from toolcall_nb.core.call_states import State
from toolcall_nb.core.parts import ErrorPart, Part, ReasoningPart, TextPart, ToolCall

if TYPE_CHECKING:
    from toolcall_nb.core.transcript import Message

COMPLETE_REASONS = frozenset({"stop", "tool-calls"})
"""The finish reasons that say that the model wrote its reply to the end."""

_CAUSES = {
    None: "the reply ended without a finish reason",
    "length": "the reply reached its length limit",
    "content-filter": "a content filter ended the reply",
    "error": "the reply ended with an error",
}


def cut_off_error(reason: str | None) -> str:
    """Returns the error of a call that the end of a reply may have cut off. ``reason`` is the reply's finish reason."""
    cause = _CAUSES.get(reason, f"the reply ended with the finish reason {reason!r:.80}")
    return f"The call may be incomplete: {cause} before the call was closed."


class RunState(StrEnum):
    """The end of a run."""

    DONE = "done"
    ERROR = "error"
    LIMIT = "limit"
    CUT_OFF = "cut-off"
    FILTERED = "filtered"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    WAITING = "waiting"
    UNANSWERED = "unanswered"


class RunOutcome(NamedTuple):
    """The end of a run, and the error that ended it; None if none did. ``state`` is None for a run without messages."""

    state: RunState | None
    error: str | None = None


_BY_REASON = {
    "error": RunState.ERROR,
    "length": RunState.CUT_OFF,
    "content-filter": RunState.FILTERED,
    "limit": RunState.LIMIT,
}


def run_outcome(messages: Sequence[Message], *, is_unfinished: bool = False) -> RunOutcome:
    """Returns how the run with these messages ended: how its last turn did, since an earlier error may be overcome.

    A message that a program injected in the user's place waits for no answer. ``is_unfinished`` says that the last
    reply has no end, which a recording tells and its messages do not.
    """
    last = next((each for each in reversed(messages) if each.role != "system" and each.injected is None), None)
    if last is None:
        return RunOutcome(None)
    if last.role == "user":
        return RunOutcome(RunState.UNANSWERED)
    if last.aborted is not None:
        state = RunState.INTERRUPTED if last.aborted == "interrupted" else RunState.STOPPED
        return RunOutcome(state, " ".join(last.aborted.split()) or None)
    error = _last_error(last.parts)
    if last.finish_reason in _BY_REASON:
        return RunOutcome(_BY_REASON[last.finish_reason], error)
    if error is not None:
        return RunOutcome(RunState.ERROR, error)
    states = {call.state for call in last.calls}
    if State.APPROVAL_REQUESTED in states:
        return RunOutcome(RunState.WAITING)
    end = next((part for part in reversed(last.parts) if part.parent is None), None)
    is_interrupted = isinstance(end, ToolCall) and end.state is State.INTERRUPTED  # and no answer followed
    if is_unfinished or State.INPUT_STREAMING in states or is_interrupted:
        return RunOutcome(RunState.INTERRUPTED)
    return RunOutcome(RunState.CUT_OFF if last.finish_reason == "other" else RunState.DONE)


def _last_error(parts: Sequence[Part]) -> str | None:
    """Returns the error after the last text and call; None if the run went on after it."""
    for part in reversed(parts):
        if part.parent is not None:
            continue
        if isinstance(part, ErrorPart):
            return part.text
        if isinstance(part, TextPart | ReasoningPart | ToolCall):
            return None
    return None
