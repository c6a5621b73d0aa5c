"""The state of a batch while it goes on: `BatchProgress`, with a `RunRow` for each run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from enum import StrEnum

from msgspec import Struct

from toolcall_nb.batches.run_jobs import RunJob
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.runs.run_index import RunEntry


class RowState(StrEnum):
    """The state of a run in a batch."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    ERROR = "error"
    STOPPED = "stopped"


class RunRow(Struct, kw_only=True):
    """One run of a batch as a table shows it. Unknown values are None.

    ``number`` is the repetition, from 1. ``tokens`` are those of prompts and answers, ``cost`` is in US dollars.
    ``calls`` counts all calls, ``errors`` and ``denied`` those that ended so. ``note`` says what the run waits for, or
    why it failed. ``was_there``: an earlier batch has made the run. ``entry`` is the finished run in the index.
    """

    key: str
    prompt: str
    prompt_number: int
    model: str
    number: int
    state: RowState = RowState.WAITING
    seconds: float | None = None
    tokens: int | None = None
    cost: float | None = None
    calls: int = 0
    errors: int = 0
    denied: int = 0
    note: str = ""
    was_there: bool = False
    entry: RunEntry | None = None

    @property
    def outcome(self) -> str:
        """The run's end in the words of `toolcall_nb.core.run_outcome`; its state in the batch until then."""
        if self.state is RowState.DONE and self.entry is not None and self.entry.state is not None:
            return self.entry.state
        return self.state.value


class BatchProgress:
    """The rows of a batch, in the order of its jobs. Any thread may use it. ``clock`` returns seconds.

    `stop` asks the batch to end.
    """

    def __init__(self, jobs: Sequence[RunJob], clock: Callable[[], float] = time.monotonic) -> None:
        self.rows = [
            RunRow(
                key=job.key,
                prompt=job.title,
                prompt_number=job.prompt_number,
                model=job.model_name,
                number=job.number,
            )
            for job in jobs
        ]
        self.stopping = threading.Event()
        self._clock = clock
        self._began = clock()
        self._begins: dict[int, float] = {}
        self._calls: dict[int, set[str]] = {}
        self._changed = set(range(len(self.rows)))
        self._lock = threading.RLock()

    def stop(self) -> None:
        """Asks the batch to end. The runs that have ended are kept."""
        self.stopping.set()

    @property
    def seconds(self) -> float:
        """The time since the batch began."""
        return self._clock() - self._began

    def changed(self) -> list[int]:
        """Returns the indices of the rows that have changed since the last call, or whose seconds pass."""
        with self._lock:
            now = self._clock()
            for index, began in self._begins.items():
                self.rows[index].seconds = now - began
            changed, self._changed = sorted({*self._changed, *self._begins}), set()
            return changed

    def begin(self, index: int) -> None:
        """Notes that a run begins, perhaps again."""
        with self._lock:
            row = self.rows[index]
            row.state, row.note, row.calls, row.errors, row.denied = RowState.RUNNING, "", 0, 0, 0
            self._begins[index] = self._clock()
            self._calls[index] = set()
            self._changed.add(index)

    def note(self, index: int, text: str) -> None:
        """Notes what a run waits for."""
        with self._lock:
            self.rows[index].note = text
            self._changed.add(index)

    def wait_again(self, index: int, text: str) -> None:
        """Notes that a run begins again later."""
        with self._lock:
            self._begins.pop(index, None)
            self.rows[index].state, self.rows[index].note = RowState.WAITING, text
            self._changed.add(index)

    def take(self, index: int, event: Event) -> None:
        """Takes in an event of a run."""
        with self._lock:
            row = self.rows[index]
            match event:
                case ev.ToolInputStart() | ev.ToolInputAvailable():
                    self._calls.setdefault(index, set()).add(event.tool_call_id)
                    row.calls = len(self._calls[index])
                case ev.ToolOutputError() | ev.ToolInputError():
                    row.errors += 1
                case ev.ToolOutputDenied():
                    row.denied += 1
                case ev.Status():
                    row.note = event.text
                case _:
                    return
            self._changed.add(index)

    def end(
        self, index: int, state: RowState, note: str = "", entry: RunEntry | None = None, *, was_there: bool = False
    ) -> None:
        """Notes the end of a run."""
        with self._lock:
            row = self.rows[index]
            began = self._begins.pop(index, None)
            if began is not None:
                row.seconds = self._clock() - began
            row.state, row.note, row.entry, row.was_there = state, note, entry, was_there
            if entry is not None:
                row.calls, row.errors, row.denied = entry.calls, entry.errors, entry.denied
                row.cost, row.note = entry.cost, note or entry.error or ""
                row.seconds = row.seconds if entry.seconds is None else entry.seconds
                if entry.tokens_in is not None or entry.tokens_out is not None:
                    row.tokens = (entry.tokens_in or 0) + (entry.tokens_out or 0)
            self._changed.add(index)
