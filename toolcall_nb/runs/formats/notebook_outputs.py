"""Notebooks with saved outputs of this package: `NOTEBOOK_OUTPUTS`.

Each output that shows a transcript is a run: its ``text/markdown`` reads back as the transcript. Saved outputs hold no
times of calls; where the notebook recorded the times of its cells, the run has those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolcall_nb.core.events import Diagnostic
from toolcall_nb.core.sdk_objects import as_mapping, get
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.runs.formats.base import RecordedRun, TraceFormat
from toolcall_nb.runs.timestamps import parse_timestamp

_ROOTS = ('<div class="tc-run', '<div class="tc ', '<div class="tc"')
"""The root elements of this package's HTML, in every version."""

_TABLE = "| name | arguments | state |"
_NO_CALLS = "No tool calls."
_CUT_OFF = "A run of toolcall_nb that is not finished"
_BEGINS = ("iopub.execute_input", "iopub.status.busy", "shell.execute_reply.started")
_ENDS = ("shell.execute_reply", "iopub.status.idle")
_TITLE = 120


def _recognises(records: Sequence[Any]) -> bool:
    return any(get(record, "cells", list) is not None and "nbformat" in record for record in records)


def _read(records: Iterable[Any]) -> Iterator[RecordedRun]:
    for record in records:
        for number, cell in enumerate(get(record, "cells", list) or [], 1):
            yield from _cell_runs(as_mapping(cell), number)


def _cell_runs(cell: Mapping[str, Any], number: int) -> Iterator[RecordedRun]:
    source = _text(cell.get("source"))
    name = get(cell, "id", str) or f"cell-{number}"
    times = as_mapping(get(cell.get("metadata"), "execution"))
    began, ended = _time(times, _BEGINS), _time(times, _ENDS)
    transcripts = [each for output in get(cell, "outputs", list) or [] if (each := _transcript(output)) is not None]
    for index, transcript in enumerate(transcripts, 1):
        yield RecordedRun(
            id=name if index == 1 else f"{name}-{index}",
            transcript=transcript,
            title=source.partition("\n")[0][:_TITLE],
            began=began,
            seconds=None if began is None or ended is None else max(0.0, round(ended - began, 6)),
            extra={"cell": number, "source": source},
        )


def _transcript(output: Any) -> Transcript | None:
    """Returns the transcript that an output shows; None if it is of another package, or a table of calls."""
    data = as_mapping(get(output, "data"))
    html, markdown = _text(data.get("text/html")), _text(data.get("text/markdown"))
    if _CUT_OFF in html[:200]:
        unfinished = Diagnostic(
            "The run was not finished when the notebook was saved.", "Its output is not in the file."
        )
        return Transcript(diagnostics=(unfinished,))
    is_ours = "text/markdown" in data and any(root in html for root in _ROOTS)
    if not is_ours or markdown.startswith(_TABLE) or markdown == _NO_CALLS:
        return None
    return Transcript.from_markdown(markdown)


def _text(value: Any) -> str:
    """Returns a text, which a notebook may keep as a list of lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def _time(times: Mapping[str, Any], names: Sequence[str]) -> float | None:
    return next((time for name in names if (time := parse_timestamp(times.get(name))) is not None), None)


NOTEBOOK_OUTPUTS = TraceFormat("notebook", "notebooks with saved outputs of this package (.ipynb)", _recognises, _read)
