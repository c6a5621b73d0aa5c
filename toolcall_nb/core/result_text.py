"""Formats a tool result as the text that is sent back to the model, `format_result`, in limited length.

Where a text or a list was cut, a note says how much is left out; `count_characters` and `count_items` count with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from toolcall_nb.core.contents import contents_text, json_piece, piece_text, value_beside
from toolcall_nb.core.events import MISSING, Json, Missing, Object
from toolcall_nb.core.transcript import State, ToolCall

RESULT_LIMIT = 20_000
"""The number of characters of a result that a model is sent, unless its tool sets another limit."""

_TRUNCATION = re.compile(r"\n… (\d{1,3}(?:,\d{3}){0,6}) characters left out(?:, all in ([^\n]{1,200}))? …\n")
_LONGEST_NOTE = 300
_MORE_ITEMS = re.compile(r"… (\d{1,3}(?:,\d{3}){0,6}) more(?:, all in .{1,200})?")

_FAILED = "The tool failed."
_DENIED = "The call was denied"
_INTERRUPTED = "The call was interrupted before it had a result."
_OPEN = "The call has no result yet."


def format_result(call: ToolCall) -> str:
    """Formats the result of a call for the next request: its output by `format_result_content`, or why there is none.

    Where the model was sent only a part of the output, that part is ``call.model_text``. An error is cut to
    `RESULT_LIMIT` characters, and so is the preliminary output of a call that failed or was interrupted.
    """
    match call.state:
        case State.OUTPUT_AVAILABLE:
            is_cut = call.model_text is not None
            return call.model_text or "" if is_cut else format_result_content(call.output, call.contents)
        case State.OUTPUT_ERROR:
            error = format_result_content(call.error or "", call.contents)
            return truncate_text(error or _FAILED, RESULT_LIMIT) + _until_then(call)
        case State.OUTPUT_DENIED:
            reason = call.approval.reason if call.approval is not None else None
            return f"{_DENIED}: {truncate_text(reason, RESULT_LIMIT)}" if reason else f"{_DENIED}."
        case State.INTERRUPTED:
            return _INTERRUPTED + _until_then(call)
        case _:
            return _OPEN


def read_denial(text: str) -> str | None:
    """Returns the reason in the text of a denied call, in the words of `format_result` or pydantic-ai; None without."""
    is_bare = not text.strip() or text in (f"{_DENIED}.", "The tool call was denied.")
    return None if is_bare else text.removeprefix(f"{_DENIED}: ")


def _until_then(call: ToolCall) -> str:
    """Returns the preliminary output of a call that has no other."""
    if call.output is MISSING or call.output is None:
        return ""
    gap = " " if call.state is State.INTERRUPTED else "\n\n"
    return f"{gap}Until then it gave:\n{truncate_text(format_output(call.output), RESULT_LIMIT)}"


def format_result_content(value: Json | Missing, contents: Sequence[Object] | None) -> str:
    """Formats an output or an error with its contents: the value where it says more than they do, then each piece."""
    if not contents:
        return format_output(value)
    beside = value_beside(value, contents)
    return contents_text(contents if beside is MISSING else [json_piece(beside), *contents])


def format_output(output: Json | Missing) -> str:
    """Formats an output: a string as it is, a missing output as an empty text, anything else as JSON without blanks."""
    return "" if output is MISSING else piece_text(json_piece(output))


def truncate_text(text: str, limit: int, expression: str = "") -> str:
    """Returns the text, or ``limit`` characters of its beginning and end with a note of how many were left out.

    ``expression`` is how the kernel has all of it. `read_truncation` reads the note.
    """
    left_out = len(text) - limit
    if left_out <= 0:
        return text
    tail = limit // 2
    head = limit - tail
    location = f", all in {expression}" if expression else ""
    return f"{text[:head]}\n… {left_out:,} characters left out{location} …\n{text[head + left_out :]}"


class Truncation(NamedTuple):
    """A note of `truncate_text`: its position and length, how many characters it stands for, and where all are."""

    position: int
    length: int
    left_out: int
    expression: str


def read_truncation(text: str) -> Truncation | None:
    """Returns the note near the middle of a text that `truncate_text` has cut; None if there is none.

    The same words may stand anywhere else in a text. It is not exactly the middle once secrets were masked.
    """
    middle, reach = len(text) // 2, max(_LONGEST_NOTE, len(text) // 20)
    notes = _TRUNCATION.finditer(text, max(0, middle - reach), middle + reach)
    note = min(notes, key=lambda match: abs(match.start() + match.end() - len(text)), default=None)
    if note is None:
        return None
    return Truncation(note.start(), len(note[0]), int(note[1].replace(",", "")), note[2] or "")


def count_characters(text: str, start: int) -> int:
    """Returns how many characters there are from ``start`` on, with those that `truncate_text` left out there."""
    note = read_truncation(text)
    count = len(text) - start
    return count if note is None or note.position < start else count - note.length + note.left_out


def count_items(value: list[Json] | Object, start: int) -> int:
    """Returns how many items or keys there are from number ``start`` on, with those that were not saved.

    Where some were not, the last item says so: ``… 3 more, all in …``, of an object under the key ``…``.
    """
    last = value[-1] if isinstance(value, list) and value else value.get("…") if isinstance(value, dict) else None
    note = _MORE_ITEMS.fullmatch(last) if isinstance(last, str) else None
    return len(value) - start + (0 if note is None else int(note[1].replace(",", "")) - 1)
