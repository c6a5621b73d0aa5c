"""Formats a tool result as the text that is sent back to the model, `format_result`, in limited length."""

from __future__ import annotations

import json

from toolcall_nb.core.events import MISSING, Json
from toolcall_nb.core.json_text import to_strict_json
from toolcall_nb.core.transcript import State, ToolCall

__all__ = ["RESULT_LIMIT", "format_output", "format_result", "truncate_output", "truncate_text"]

RESULT_LIMIT = 20_000
"""The number of characters of a result that a model is sent, unless its tool sets another limit."""

_FAILED = "The tool failed."
_DENIED = "The call was denied"
_INTERRUPTED = "The call was interrupted before it had a result."
_OPEN = "The call has no result yet."


def format_result(call: ToolCall) -> str:
    """Formats the result of a call for the next request: its output by `format_output`, or why there is none.

    Where the model was sent only a part of the output, that part is ``call.model_text``. An error is cut to
    `RESULT_LIMIT` characters, and so is the preliminary output of a call that failed or was interrupted.
    """
    match call.state:
        case State.OUTPUT_AVAILABLE:
            return format_output(call.output) if call.model_text is None else call.model_text
        case State.OUTPUT_ERROR:
            return truncate_text(call.error or _FAILED, RESULT_LIMIT) + _until_then(call)
        case State.OUTPUT_DENIED:
            reason = call.approval.reason if call.approval is not None else None
            return f"{_DENIED}: {truncate_text(reason, RESULT_LIMIT)}" if reason else f"{_DENIED}."
        case State.INTERRUPTED:
            return _INTERRUPTED + _until_then(call)
        case _:
            return _OPEN


def _until_then(call: ToolCall) -> str:
    """Returns the preliminary output of a call that has no other."""
    if call.output is MISSING or call.output is None:
        return ""
    gap = " " if call.state is State.INTERRUPTED else "\n\n"
    return f"{gap}Until then it gave:\n{truncate_text(format_output(call.output), RESULT_LIMIT)}"


def format_output(output: Json) -> str:
    """Formats an output: a string as it is, a missing output as an empty text, anything else as JSON without blanks."""
    if isinstance(output, str):
        return output
    return "" if output is MISSING else json.dumps(to_strict_json(output), ensure_ascii=False, separators=(",", ":"))


def truncate_output(output: Json, limit: int = RESULT_LIMIT) -> str | None:
    """Returns the text of an output cut to ``limit`` characters; None if it is not longer."""
    text = format_output(output)
    return truncate_text(text, limit) if len(text) > limit else None


def truncate_text(text: str, limit: int) -> str:
    """Returns the text, or ``limit`` characters of its beginning and end with a note of how many were left out."""
    left_out = len(text) - limit
    if left_out <= 0:
        return text
    tail = limit // 2
    head = limit - tail
    return f"{text[:head]}\n… {left_out:,} characters left out …\n{text[head + left_out :]}"
