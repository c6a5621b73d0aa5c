"""The words for the runs of a batch: `describe_rows` counts them, `row_line` is one of them as a line of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from toolcall_nb.batches.progress import RowState, RunRow
from toolcall_nb.core.run_outcome import RunState
from toolcall_nb.render.wording import format_seconds

_NOTE = 200


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
    """Returns a run in one line: its state, prompt, model and repetition, and the numbers that are known of it.

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
