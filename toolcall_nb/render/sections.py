"""The sections of a card: what went in, what was printed, what came out and why it failed, each bounded.

What the person sees is not cut, only folded: beside what is drawn at once there is a fold with the rest, up to a
bound beyond which it says how much there is and where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from toolcall_nb.core.call_display import DISPLAYED, displayed_bundles
from toolcall_nb.core.events import MISSING, Json
from toolcall_nb.core.result_text import format_output
from toolcall_nb.core.transcript import State, ToolCall
from toolcall_nb.render.content import Written, partial_input
from toolcall_nb.render.escaping import line_ends, without_ansi
from toolcall_nb.render.html_output.log import LogLines
from toolcall_nb.render.html_output.result_display import Shown, says_more, shown
from toolcall_nb.render.review import review
from toolcall_nb.render.values import Table, draw_text, table_of
from toolcall_nb.render.yaml_like import CHARACTERS, ROWS, Drawing, Entry, counted, draw_value, more

__all__ = ["FOLD", "RICH", "Section", "log_sections", "progress", "reason", "sections"]

FOLD = "fold-"
"""How the key of a section that is folded begins; what follows is its name."""
RICH = frozenset("vtw")
"""The keys of sections with pictures, tables and the like."""
_FOLDED = 200_000
"""How many characters of text are in a fold."""
_JSON = 100_000
"""And of JSON, which takes more in HTML."""
_ALLOWED = re.compile(r"(?:Approved|(?:Always )?[Aa]llowed)\b")
_LEFT_OUT = re.compile(r"\n… ([\d,]+) characters left out …\n")


class Section(NamedTuple):
    """A part of a card: entries of one or more lines each, a table, or HTML of which the entries are the words.

    Keys: ``i`` input, ``a`` approval (a label alone), ``l`` log, ``w`` what was displayed, ``o`` output, ``t`` output
    as a table, ``v`` output as its own view, ``e`` error, and `FOLD` with a name. ``first`` is the number of the first
    entry; ``has_ends``: the newlines between the entries are in them.
    """

    key: str
    label: str
    note: str = ""
    entries: Sequence[Entry] = ()
    table: Table | None = None
    html: str = ""
    first: int = 0
    has_ends: bool = False


def sections(
    call: ToolCall, written: Written, drawing: Drawing | None = None, log: LogLines | None = None
) -> list[Section]:
    """All of the card but its error, as far as it is there.

    ``written`` is the call's ``input_text`` and ``log`` its log; who shows the input again and again as it grows
    keeps a ``drawing`` for it.
    """
    printed = log_sections(LogLines(call.log) if log is None else log, call.id)
    return [
        *_input(call, written, drawing or Drawing()),
        *_approval(call),
        *printed,
        *_displayed(call),
        *(() if call.output is MISSING else _output(call)),
        *_told(call),
        *_traceback(call),
    ]


def reason(call: ToolCall) -> list[Section]:
    """Why the call failed or was denied; shown also when the card is closed. Empty where there is nothing to say."""
    if call.error is not None or call.state is State.OUTPUT_ERROR:
        text = call.error if call.error and call.error.strip() else "The tool gave no error text."
        return list(_text("e", "Error", "", text, f"{FOLD}error", _where(call, "error")))
    if call.approval is not None and call.approval.approved is False and call.approval.reason:
        where = _where(call, "approval.reason")
        return list(_text("e", "Denied", "", call.approval.reason, f"{FOLD}error", where))
    return []


def _where(call: ToolCall, field: str) -> str:
    return f"chat.calls[{call.id[:80]!r}].{field}"


# Input ----------------------------------------------------------------------------------------------------------


def _input(call: ToolCall, written: Written, drawing: Drawing) -> Iterator[Section]:
    if call.input is MISSING:
        if written.length or call.state is State.INPUT_STREAMING:
            yield Section("i", "Input", progress(call, written), _partial(written, drawing))
        return
    if call.state is State.APPROVAL_REQUESTED:  # a person is to see all of it
        seen = review(call.input)
        note = f"{seen.hidden}: {_where(call, 'input')}" if seen.hidden else "" if seen.entries else "none"
        yield Section("i", "Input", note, seen.entries, has_ends=True)
        return
    is_edited = call.original_input is not MISSING
    notes = ["none"] if call.input == {} else []
    entries = [] if call.input == {} else draw_value(call.input)
    yield Section("i", "Input", ", ".join([*notes, *(["edited by you"] if is_edited else [])]), entries)
    if _is_cut(entries):
        yield from _whole("input", call.input, _where(call, "input"))
    if is_edited:
        yield Section(f"{FOLD}model", "As the model wrote it", "", draw_value(call.original_input))


def _partial(written: Written, drawing: Drawing) -> list[Entry]:
    value = partial_input(written)
    if value is MISSING:
        return []
    return [draw_text(value)] if value is written.head else drawing.draw(value)


def progress(call: ToolCall, written: Written) -> str:
    """How much of the input was written, beside its label."""
    if not written.length:
        return ""
    count = counted(written.length, "characters")
    count += " so far" if call.state is State.INPUT_STREAMING else ", not complete"
    return count if written.length == len(written.head) else f"{count}, the first {len(written.head):,} shown"


def _approval(call: ToolCall) -> Iterator[Section]:
    if call.approval is not None and call.approval.approved and call.approval.reason:
        text = " ".join(call.approval.reason[:1_000].split())
        yield Section("a", text if _ALLOWED.match(text) else f"Approved: {text}")


# Log ------------------------------------------------------------------------------------------------------------


def log_sections(log: LogLines, call_id: str) -> list[Section]:
    """What the tool printed: the newest lines, and a fold of those before them."""
    folded, newest = log.parted()
    if not newest:
        return []
    found = [Section("l", "Printed", "", [group.entry for group in newest], first=newest[0].number, has_ends=True)]
    if folded:
        lines = sum(group.lines for group in folded)
        note = f"{counted(log.lost, 'lines')} before these: chat.calls[{call_id[:80]!r}].log" if log.lost else ""
        entries = [group.entry for group in folded]
        found.append(
            Section(f"{FOLD}log", f"{lines:,} earlier lines", note, entries, first=folded[0].number, has_ends=True)
        )
    return found


# Displayed ------------------------------------------------------------------------------------------------------


def _displayed(call: ToolCall) -> Iterator[Section]:
    """What the tool displayed while it ran, one below the other."""
    forms = [shown(bundle, MISSING) or Shown("", "", "cannot be shown") for bundle in displayed_bundles(call.display)]
    if forms:
        words = [draw_text(form.words or form.plain or f"({form.kind or form.note})") for form in forms]
        html = "".join(form.html for form in forms)
        yield Section("w", "Displayed", _and(*dict.fromkeys(form.note for form in forms)), words, html=html)


# Output ---------------------------------------------------------------------------------------------------------


def _output(call: ToolCall) -> Iterator[Section]:
    if call.output is None and DISPLAYED in (call.display or {}) and len(call.display or {}) == 1:
        return
    note = "" if call.state is State.OUTPUT_AVAILABLE else "so far"
    form = shown(call.display, call.output) if call.display else None
    if form is not None and form.html:
        yield from _display(call, form, note)
    elif isinstance(call.output, str):
        note = _and(note or ("" if call.output else "empty text"), form.note if form else "")
        yield from _text("o", "Output", note, call.output, f"{FOLD}rest", _where(call, "output"))
    else:
        yield from _value(call, _and(note, form.note if form else ""))


def _and(*notes: str) -> str:
    return ", ".join(note for note in notes if note)


def _display(call: ToolCall, form: Shown, note: str) -> Iterator[Section]:
    """The output's own display; the words beside it are folded, where they tell more."""
    tells = says_more(call.output, form)
    words = _words(call.output) if tells else [draw_text(form.words or str(call.output or f"({form.kind})"))]
    yield Section("v", "Output", _and(note, form.note), words, html=form.html)
    if tells and isinstance(call.output, str):
        yield Section(
            f"{FOLD}text", "As text", _beyond(len(call.output), _where(call, "output")), [_plain(call.output)]
        )
    elif tells:
        yield Section(f"{FOLD}text", "As data", "", words)


def _words(output: Json) -> list[Entry]:
    return [draw_text(output)] if isinstance(output, str) else draw_value(output)


def _value(call: ToolCall, note: str) -> Iterator[Section]:
    table = table_of(call.output)
    entries = draw_value(call.output) if table is None else []
    yield Section("o" if table is None else "t", "Output", note, entries, table)
    if not table.is_whole if table is not None else _is_cut(entries):
        yield from _whole("json", call.output, _where(call, "output"))


def _is_cut(entries: Sequence[Entry]) -> bool:
    """Whether a remark of ours stands for something that is not drawn."""
    return any(kind == "c" for entry in entries for kind, _ in entry.tokens)


def _whole(name: str, value: Json, where: str) -> Iterator[Section]:
    """All of a value, as JSON, where something of it is not drawn."""
    text = _json(value)
    if text:
        note = f"the first {_JSON:,} characters; all: {where}" if len(text) > _JSON else ""
        yield Section(f"{FOLD}{name}", "All of it, as JSON", note, [Entry([("", text[:_JSON])])])


def _json(value: Json) -> str:
    """The value, indented, or about as much of it as is shown; empty where it cannot be written."""
    pieces: list[str] = []
    length = 0
    try:
        for piece in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(value):
            pieces.append(piece)
            length += len(piece)
            if length > _JSON:
                break
    except (RecursionError, TypeError, ValueError):  # too deep for Python, no JSON at all, a number of too many digits
        return ""
    return "".join(pieces)


# Text -----------------------------------------------------------------------------------------------------------


def _text(key: str, label: str, note: str, text: str, fold: str, where: str) -> Iterator[Section]:
    """The beginning of a text, and a fold with the rest."""
    head = _head(text)
    yield Section(key, label, note, [_plain(head)] if head else [])
    text = text.rstrip("\n")
    if len(head) >= len(text):
        return
    rest = text[len(head) :].removeprefix("\n")
    lines = text.count("\n", len(head))
    count = more(lines, "lines") if lines else more(len(rest), "characters")
    yield Section(fold, count.removeprefix("… "), _beyond(len(rest), where), [_plain(rest)])


def _head(text: str) -> str:
    """What is shown of a text at once: whole lines, if they are not too long."""
    if len(text) <= CHARACTERS and text.count("\n") < ROWS:
        return text
    lines = text[:CHARACTERS].split("\n", ROWS)
    if len(lines) > ROWS or (len(text) > CHARACTERS and len(lines) > 1):
        lines.pop()
    return "\n".join(lines) if any(lines) else text[:CHARACTERS]


def _plain(text: str) -> Entry:
    return Entry([("", line_ends(without_ansi(text[:_FOLDED])))])


def _beyond(length: int, where: str) -> str:
    """What is said of a fold whose text goes on."""
    return f"{more(length - _FOLDED, 'characters')}: {where}" if length > _FOLDED else ""


def _told(call: ToolCall) -> Iterator[Section]:
    if call.seen is None or call.output is MISSING:
        return
    length = len(format_output(call.output))
    remark = next((found for found in _LEFT_OUT.finditer(call.seen) if _tells(found, call.seen, length)), None)
    left_out = f", {remark[1]} left out" if remark else ""
    size = f"{counted(len(call.seen), 'characters')}{left_out}"
    note = "; ".join(words for words in (size, _beyond(len(call.seen), _where(call, "seen"))) if words)
    yield Section(f"{FOLD}told", "Told to the model", note, [_plain(call.seen)])


def _tells(remark: re.Match[str], seen: str, length: int) -> bool:
    """Whether it is the remark of `toolcall_nb.core.result_text`: the same words may stand in the output."""
    return length - (len(seen) - len(remark[0])) == int(remark[1].replace(",", ""))


def _traceback(call: ToolCall) -> Iterator[Section]:
    if call.traceback and call.traceback.strip():
        text = call.traceback.strip("\n")
        hidden = max(0, len(text) - _FOLDED)  # the end tells most
        note = f"{hidden:,} characters before these: {_where(call, 'traceback')}" if hidden else ""
        yield Section(f"{FOLD}traceback", "Traceback", note, [_plain(text[hidden:])])
