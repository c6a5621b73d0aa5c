"""A batch as a table: `batch_bundle` is what a notebook keeps of it, `batch_nodes` also draws it while it goes on.

A row is a run. It opens into the transcript. Everything shown is without secrets, and escaped. `describe_rows` counts
the runs in words, and `row_line` is one of them as a line of text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape as escape_attribute

from toolcall_nb.batches.progress import RowState, RunRow
from toolcall_nb.core.call_nesting import CallNesting
from toolcall_nb.core.escaping import element, escape, visible
from toolcall_nb.core.run_outcome import RunState
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.redaction.registered_secrets import saved_text, saved_value
from toolcall_nb.render.html_output.card import Look
from toolcall_nb.render.html_output.message_nodes import message_node
from toolcall_nb.render.html_output.nodes import Node, serialise
from toolcall_nb.render.html_output.page import fragment
from toolcall_nb.render.html_output.saved_html import saved_html
from toolcall_nb.render.record_tables import make_bundle
from toolcall_nb.render.saved_output import picture_hosts
from toolcall_nb.render.value_lines import format_hidden
from toolcall_nb.render.wording import format_seconds
from toolcall_nb.runs.formats.base import RecordedRun

SHOWN_ROWS = 200
"""The most rows of a table."""
_TRANSCRIPTS = 50
"""The most transcripts in the output that a notebook keeps."""
_CHARACTERS = 2_000_000
"""Characters of HTML after which rows of that output have no transcript."""
_NOTE = 200
_NUMBER_SPACE = 100_000
"""The numbers of messages that one transcript can have in the keys of folds."""

_TONES = {
    RowState.WAITING: "queued",
    RowState.RUNNING: "running",
    RowState.DONE: "output-available",
    RowState.ERROR: "output-error",
    RowState.STOPPED: "called",
}
_HEAD = ("prompt", "label", "repetition", "state", "seconds", "tokens", "cost", "calls", "errors", "denied")
_IF_KNOWN = {"tokens", "cost", "errors", "denied"}
_BELOW = (
    "font:14px/1.5 var(--jp-ui-font-family,system-ui,sans-serif);"
    "white-space:normal;max-width:none;overflow-wrap:anywhere"
)
_AROUND = "overflow-x:auto;overflow-wrap:break-word"
"""In a narrow page, the table is scrolled: its words are not broken letter by letter."""
_NUMBERS = {"repetition", "seconds", "tokens", "cost", "calls", "errors", "denied"}


def batch_bundle(
    rows: Sequence[RunRow],
    runs: Iterable[RecordedRun],
    seconds: float | None = None,
    *,
    include: Collection[str] | None = None,
    exclude: Collection[str] | None = None,
) -> dict[str, str]:
    """Returns a finished batch by MIME type.

    ``runs`` are those of the rows that have an ``entry``. ``seconds`` is the batch's time, None if unknown.
    """
    makers = {
        "text/html": lambda: saved_html(
            fragment(batch_nodes(rows, seconds, _transcripts(rows, runs))), f"Batch: {describe_rows(rows, seconds)}"
        ),
        "text/plain": lambda: "\n".join(map(visible, _lines(rows, seconds))),
    }
    return make_bundle(makers, include, exclude)


def batch_nodes(
    rows: Sequence[RunRow], seconds: float | None, transcripts: Mapping[int, str] | None = None
) -> list[Node]:
    """Returns the line of counts and the table.

    ``transcripts`` is the HTML of transcripts by the number of their row, for a table that a notebook keeps; it has no
    times. Without it, a finished row has an empty fold for a page that asks for the transcript when it is opened.
    """
    first = rows[:SHOWN_ROWS]
    left_out = set() if transcripts is None else {"seconds"}  # what a notebook keeps is the same each time
    names = [
        name
        for name in _HEAD
        if name not in left_out and (name not in _IF_KNOWN or any(getattr(row, name) for row in first))
    ]
    head = "".join(_cell("th", name, name in _NUMBERS) for name in names)
    body = "".join(_row(number, row, names, transcripts) for number, row in enumerate(first))
    hidden = len(rows) - len(first)
    caption = f"<caption>{escape(format_hidden(hidden, 'rows'))}</caption>" if hidden else ""
    table = f'<table class="tc-batch">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    counts = element("p", "tc-counts", describe_rows(rows, seconds))
    return [Node("counts", counts), Node("table", f'<div style="{_AROUND}">{table}</div>')]


def transcript_html(transcript: Transcript, row: int) -> str:
    """Returns a transcript as HTML without the style, for the row of this number; no key of a fold is there twice."""
    kept, _ = saved_value(transcript)
    look = Look({}, {}, picture_hosts(), nesting=CallNesting(kept.calls.values(), kept.messages))
    first = (row + 1) * _NUMBER_SPACE
    return serialise([message_node(first + number, message, look) for number, message in enumerate(kept.messages)])


def _transcripts(rows: Sequence[RunRow], runs: Iterable[RecordedRun]) -> dict[int, str]:
    """Returns the HTML of the first transcripts, as many as an output may hold."""
    numbers = [number for number, row in enumerate(rows[:SHOWN_ROWS]) if row.entry is not None]
    transcripts: dict[int, str] = {}
    size = 0
    for number, run in zip(numbers[:_TRANSCRIPTS], runs, strict=False):
        html = transcript_html(run.transcript, number)
        size += len(html)
        if size > _CHARACTERS:
            break
        transcripts[number] = html
    return transcripts


def _row(number: int, row: RunRow, names: Sequence[str], transcripts: Mapping[int, str] | None) -> str:
    cells = {
        "prompt": saved_text(row.prompt),
        "label": saved_text(row.model),
        "repetition": f"{row.number}",
        "seconds": "" if row.seconds is None else format_seconds(row.seconds),
        "tokens": "" if row.tokens is None else f"{row.tokens:,}",
        "cost": "" if row.cost is None else f"${row.cost:.4f}",
        "calls": f"{row.calls:,}",
        "errors": f"{row.errors or ''}",
        "denied": f"{row.denied or ''}",
    }
    drawn = {name: _cell("td", text, name in _NUMBERS) for name, text in cells.items()}
    state = "made before" if row.was_there and row.outcome == RowState.DONE else row.outcome
    drawn["state"] = f"<td>{element('span', 'tc-state', state)}</td>"
    note = saved_text(row.note[:_NOTE])
    below = element("p", "tc-note", note) if note else ""
    if row.entry is not None and (transcripts is None or number in transcripts):
        inside = "" if transcripts is None else transcripts[number]
        label = escape_attribute(f"Transcript of run {number + 1}")
        below += f'<details data-row="{number}"><summary aria-label="{label}">Transcript</summary>{inside}</details>'
    more = f'<tr class="tc-below"><td colspan="{len(names)}" style="{_BELOW}">{below}</td></tr>' if below else ""
    tone = _TONES[row.state] if row.outcome == row.state else _TONES[RowState.ERROR]
    return f'<tr class="tc-{tone}">{"".join(drawn[name] for name in names)}</tr>{more}'


def _cell(tag: str, text: str, is_number: bool) -> str:
    kind = ' class="tc-number"' if is_number else ""
    return f"<{tag}{kind}>{escape(text)}</{tag}>"


def _lines(rows: Sequence[RunRow], seconds: float | None) -> list[str]:
    hidden = len(rows) - SHOWN_ROWS
    lines = [saved_text(row_line(row, has_time=False)) for row in rows[:SHOWN_ROWS]]
    return [*lines, *([format_hidden(hidden, "rows")] if hidden > 0 else []), describe_rows(rows, seconds)]


def describe_rows(rows: Sequence[RunRow], seconds: float | None = None) -> str:
    """Returns the number of runs in each state and the time, as ``3 of 12 done · 1 error · 2 running · 14 s``."""
    counts = Counter(row.outcome for row in rows)
    words = {RowState.ERROR.value: "errors"} if counts[RowState.ERROR.value] > 1 else {}
    done = counts.pop(RowState.DONE.value, 0)
    states = dict.fromkeys([*map(str, RowState), *map(str, RunState)])
    others = [f"{counts[state]:,} {words.get(state, state)}" for state in states if counts[state]]
    time = [] if seconds is None else [format_seconds(seconds)]
    return " · ".join([f"{done:,} of {len(rows):,} done", *others, *time])


def row_line(row: RunRow, *, has_time: bool = True) -> str:
    """Returns a run in one line: its state, prompt, model, repetition and known numbers.

    Without ``has_time`` the line is the same each time that the same answers come.
    """
    time = format_seconds(row.seconds) if has_time and row.seconds is not None else ""
    parts = [f"{row.outcome:<8} {row.prompt}", row.model, f"{row.number}", time, *_numbers(row), row.note[:_NOTE]]
    return " · ".join(filter(None, parts))


def _numbers(row: RunRow) -> list[str]:
    calls = f"{row.calls:,} call{'' if row.calls == 1 else 's'}" if row.calls else ""
    errors = f"{row.errors:,} error{'' if row.errors == 1 else 's'}" if row.errors else ""
    denied = f"{row.denied:,} denied" if row.denied else ""
    return [
        "" if row.tokens is None else f"{row.tokens:,} tokens",
        "" if row.cost is None else f"${row.cost:.4f}",
        ", ".join(filter(None, (calls, errors, denied))),
    ]
