"""The runs that a batch made, as a collection: `BatchRuns`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolcall_nb.batches.batch_table import batch_bundle
from toolcall_nb.batches.progress import RowState, RunRow
from toolcall_nb.core.data_frames import data_frame
from toolcall_nb.errors import UsageError
from toolcall_nb.runs.collection import Runs
from toolcall_nb.runs.difference import Difference, diff
from toolcall_nb.tools.ipython_shell import ipython_shell

_COLUMNS = {
    **{"prompt": "prompt", "label": "model", "repetition": "number", "state": "outcome"},
    **{name: name for name in ("seconds", "tokens", "cost", "calls", "errors", "denied", "note")},
}
"""The columns of the table, with the fields of `RunRow`."""


class BatchRuns(Runs):
    """The runs of a batch that came to an end, in the order of prompts, models and repetitions.

    ``rows`` are all runs of the batch: also those that were stopped, or that failed before a chat could begin.
    """

    def __init__(self, rows: Sequence[RunRow]) -> None:
        self.rows = tuple(rows)
        self._shown_in: int | None = None
        super().__init__(entries=[row.entry for row in self.rows if row.entry is not None])

    def __repr__(self) -> str:
        kept = len(self.entries)
        failed = sum(row.outcome != RowState.DONE for row in self.rows)
        return f"<BatchRuns: {kept:,} of {len(self.rows):,} runs{f', {failed:,} not done' if failed else ''}>"

    def mark_as_shown(self) -> None:
        """Notes that the cell that runs now shows the table, so that its value is not shown as a second one."""
        self._shown_in = _cell_number()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Shows the runs in a cell as a table whose rows open into transcripts."""
        if self._shown_in is not None and self._shown_in == _cell_number():
            return {"text/plain": repr(self)}
        return batch_bundle(self.rows, self, include=include, exclude=exclude)

    @property
    def table(self) -> Any:
        """All rows as a `pandas.DataFrame`, also of runs that were stopped; `RunRow` describes the columns.

        ``label`` and ``repetition`` are its ``model`` and ``number``; ``df`` has them under the same names.
        """
        columns = {name: [getattr(row, field) for row in self.rows] for name, field in _COLUMNS.items()}
        return data_frame(columns, "A table of runs as a data frame")

    def compare(
        self, prompt: int = 0, *, models: Sequence[str] = (), number: int = 1, ignore: str | Iterable[str] = "timings"
    ) -> list[Difference]:
        """Compares the answers of the models to one prompt: each with that of the first model.

        ``prompt`` is the number of the prompt, from 0. ``models`` are the names of the models, all by default.
        ``number`` is the repetition, from 1. ``ignore`` is that of `toolcall_nb.diff`. Raises `UsageError` if there are
        fewer than two such runs.
        """
        runs = {
            row.model: index
            for index, row in enumerate(row for row in self.rows if row.entry is not None)
            if row.prompt_number == prompt and row.number == number
        }
        if unknown := [name for name in models if name not in runs]:
            raise UsageError(
                f"There is no such run of the model {unknown[0]!r}. There are: {', '.join(runs) or 'none'}."
            )
        names = [*models] or [*runs]
        if len(names) < 2:
            raise UsageError(f"Prompt {prompt} has {len(names)} such runs, and two are needed to compare.")
        first, *others = names
        a = self[runs[first]]
        return [diff(a, self[runs[name]], ignore=ignore, names=(first, name)) for name in others]


def _cell_number() -> int | None:
    """Returns the number of the cell that runs; None outside of IPython."""
    shell = ipython_shell()
    return None if shell is None else int(shell.execution_count)
