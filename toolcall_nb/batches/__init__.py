"""Many runs at once: each prompt with each model, several times. `run_batch` is the entry point.

`toolcall_nb.run_many` calls it with the display of the place where it runs.

planning.py        `plan_jobs`: the runs to be made, each with its key
run_jobs.py        `RunJob`, and `run_job`, which runs one in a chat of its own
workers.py         `LocalWorkers` and `RemoteWorkers`: threads, and executors of other packages; `RateLimits`: pauses
run_store.py       `FolderStore` and `FileStore`: runs are written as soon as they end, and found again
progress.py        `BatchProgress`: the state of each run
batch.py           `run_batch`: the loop
batch_runs.py      `BatchRuns`: the runs that were made
batch_table.py     `batch_bundle`: the table that a notebook shows; `row_line`: a run as a line of text
"""

from __future__ import annotations

from toolcall_nb.batches.batch import BatchDisplay, run_batch
from toolcall_nb.batches.batch_runs import BatchRuns
from toolcall_nb.batches.batch_table import batch_bundle, batch_nodes, describe_rows, row_line, transcript_html
from toolcall_nb.batches.progress import BatchProgress, RowState, RunRow

__all__ = [
    "BatchDisplay",
    "BatchProgress",
    "BatchRuns",
    "RowState",
    "RunRow",
    "batch_bundle",
    "batch_nodes",
    "describe_rows",
    "row_line",
    "run_batch",
    "transcript_html",
]
