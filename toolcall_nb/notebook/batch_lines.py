"""The progress of a batch as lines of text, for terminals: `BatchLines`."""

from __future__ import annotations

import sys

from toolcall_nb.batches import BatchProgress, BatchRuns, RowState, describe_rows, row_line
from toolcall_nb.core.escaping import visible
from toolcall_nb.redaction.registered_secrets import saved_text


class BatchLines:
    """Prints a line to standard error when a run ends or has to wait, and one at the end."""

    def __init__(self, progress: BatchProgress) -> None:
        self._said: dict[int, tuple[RowState, str]] = {}
        there = sum(row.was_there for row in progress.rows)
        self._print(f"{len(progress.rows):,} runs" + (f", {there:,} of them made before" if there else ""))
        self._width = len(f"{len(progress.rows):,}")
        progress.changed()

    def update(self, progress: BatchProgress) -> None:
        """Prints what is new."""
        for place in progress.changed():
            row = progress.rows[place]
            said = (row.state, row.note)
            if self._said.get(place) != said and (row.note or row.state not in (RowState.WAITING, RowState.RUNNING)):
                self._said[place] = said
                self._print(f"{place + 1:>{self._width},}  {row_line(row)}")

    def close(self, progress: BatchProgress, runs: BatchRuns) -> None:
        """Prints the rest, and how many runs have which state."""
        self.update(progress)
        self._print(describe_rows(progress.rows, progress.seconds))

    def _print(self, line: str) -> None:
        print(visible(saved_text(line)), file=sys.stderr, flush=True)
