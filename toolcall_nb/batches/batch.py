"""The loop of a batch: `run_batch` runs each prompt with each model, several times, and returns the runs."""

from __future__ import annotations

import atexit
import os
import shutil
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from queue import Empty, SimpleQueue
from tempfile import mkdtemp
from time import monotonic
from typing import Any, Protocol

from msgspec.structs import replace

from toolcall_nb.batches.batch_runs import BatchRuns
from toolcall_nb.batches.planning import plan_jobs
from toolcall_nb.batches.progress import BatchProgress, RowState
from toolcall_nb.batches.run_jobs import RunJob, RunResult, failed_result
from toolcall_nb.batches.run_store import FileStore, FolderStore
from toolcall_nb.batches.workers import LONGEST_PAUSE, LocalWorkers, RateLimits, RemoteWorkers, make_workers
from toolcall_nb.errors import UsageError
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.sources.provider_errors.retry_after import in_words
from toolcall_nb.tools import ToolSource

_log = logger("toolcall_nb.batches")

_TICK = 0.2
"""Seconds between two looks at the clock, the button Stop and the rows of a display."""
_ATTEMPTS = 3
"""How often a run is started if its provider asks to wait."""
_TO_STOP = 5.0
"""Seconds that runs have to end after Stop."""

_Path = str | os.PathLike[str]


class BatchDisplay(Protocol):
    """Shows a batch while it goes on. Its errors are logged and do not end the batch."""

    def update(self, progress: BatchProgress) -> None:
        """Shows the changed rows. Called several times a second."""

    def close(self, progress: BatchProgress, runs: BatchRuns) -> None:
        """Shows the end."""


def run_batch(
    prompts: Any,
    *,
    models: Any,
    tools: ToolSource | None = None,
    repeat: int = 1,
    workers: int = 4,
    executor: Any = None,
    folder: _Path | None = None,
    file: _Path | None = None,
    resume: bool = True,
    display: Callable[[BatchProgress], BatchDisplay] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> BatchRuns:
    """Runs each prompt with each model, ``repeat`` times, and returns the runs; see `toolcall_nb.run_many`.

    ``settings`` are those of each run's chat. ``display`` makes the display of the batch.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise UsageError(f"workers is a whole number of at least 1, but is {workers!r:.100}.")
    jobs = plan_jobs(prompts, models, tools, repeat, settings or {})
    progress, limits = BatchProgress(jobs), RateLimits()
    runner = make_workers(executor, jobs, progress, limits)
    store = _store(folder, file)
    try:
        finished = store.finished({job.key for job in jobs}) if resume else {}
        for job in jobs:
            if (entry := finished.get(job.key)) is not None:
                progress.end(job.index, RowState.DONE, entry=entry, was_there=True)
        unfinished = [job for job in jobs if job.key not in finished]
        return _Batch(jobs, unfinished, progress, limits, runner, store, workers).run(display)
    finally:
        store.release()


def _store(folder: _Path | None, file: _Path | None) -> FolderStore | FileStore:
    if folder is not None and file is not None:
        raise UsageError("Give folder, with a file for each run, or file, with all runs; not both.")
    if file is not None:
        return FileStore(file)
    return FolderStore(folder if folder is not None else _temporary_folder())


def _temporary_folder() -> str:
    """Makes a folder for this process. A collection of chosen runs reads from it, so it stays until the end."""
    folder, owner = mkdtemp(prefix="toolcall_nb-"), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # a forked process must not
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


class _Batch:
    """The jobs that wait and those that run. All but the workers is done in the thread that called."""

    def __init__(
        self,
        jobs: Sequence[RunJob],
        unfinished: Sequence[RunJob],
        progress: BatchProgress,
        limits: RateLimits,
        workers: LocalWorkers | RemoteWorkers,
        store: FolderStore | FileStore,
        at_once: int,
    ) -> None:
        self._jobs, self._waiting = jobs, deque(unfinished)
        self._progress, self._limits, self._workers, self._store = progress, limits, workers, store
        self._at_once = at_once
        self._running: dict[int, tuple[RunJob, Future[RunResult]]] = {}
        self._ended: SimpleQueue[int] = SimpleQueue()
        self._display: BatchDisplay | None = None

    def run(self, make_display: Callable[[BatchProgress], BatchDisplay] | None) -> BatchRuns:
        """Runs all jobs. An interrupt ends the batch without raising."""
        progress = self._progress
        try:
            try:
                if make_display is not None:
                    self._display = make_display(progress)
                while (self._waiting or self._running) and not progress.stopping.is_set():
                    self._begin()
                    self._end_one()
                    self._draw(lambda display: display.update(progress))
            except KeyboardInterrupt:
                progress.stop()
            finally:
                self._stop()
        except KeyboardInterrupt:  # a second one: the person does not want to wait
            pass
        finally:
            entries = self._store.close([job.key for job in self._jobs])
            for index, row in enumerate(progress.rows):
                if row.state in (RowState.WAITING, RowState.RUNNING):
                    progress.end(index, RowState.STOPPED)
                row.entry = entries.get(row.key)
            runs = BatchRuns(progress.rows)
            self._draw(lambda display: display.close(progress, runs))
        return runs

    def _begin(self) -> None:
        """Begins runs, as many as may go on at the same time, of models that need not wait."""
        for job in [*self._waiting]:
            if len(self._running) >= self._at_once:
                return
            if self._limits.remaining(job.model_name):
                continue
            self._waiting.remove(job)
            self._progress.begin(job.index)
            try:
                future = self._workers.submit(job)
            except Exception as error:  # such as an executor that was shut down, or whose processes died
                self._end(job, failed_result(error))
                continue
            self._running[job.index] = job, future
            future.add_done_callback(partial(_put, self._ended, job.index))

    def _end_one(self) -> None:
        """Waits a moment for the end of a run, and writes it."""
        try:
            index = self._ended.get(timeout=_TICK)
        except Empty:
            return
        job, future = self._running.pop(index)
        self._end(job, _result(future))

    def _end(self, job: RunJob, result: RunResult) -> None:
        wait = result.retry_after
        if result.error and wait is not None and wait <= LONGEST_PAUSE:
            self._limits.hold(job.model_name, wait)
            if job.attempt < _ATTEMPTS and not self._progress.stopping.is_set():
                self._progress.wait_again(job.index, f"Rate limit: waits {in_words(wait)}")
                self._waiting.appendleft(replace(job, attempt=job.attempt + 1))
                return
        if result.is_stopped:
            self._progress.end(job.index, RowState.STOPPED)
            return
        recording = result.with_recording().recording
        entry = None if recording is None else self._store.write(job, recording, result.error)
        self._progress.end(job.index, RowState.ERROR if result.error else RowState.DONE, result.error, entry)

    def _stop(self) -> None:
        """Ends what still runs, and writes the runs that have come to their end."""
        if not self._running:
            return
        for _, future in self._running.values():
            future.cancel()
        until = monotonic() + (_TO_STOP if self._workers.stop() else 0.0)
        while self._running and (monotonic() < until or not self._ended.empty()):
            self._end_one()

    def _draw(self, draw: Callable[[BatchDisplay], None]) -> None:
        if self._display is None:
            return
        try:
            draw(self._display)
        except Exception:
            _log.exception("The display of the batch failed; the batch goes on")
            self._display = None


def _put(queue: SimpleQueue[int], index: int, _: Any) -> None:
    queue.put(index)


def _result(future: Future[RunResult]) -> RunResult:
    """Returns the result of a run. A worker may have died, or an executor may not have been able to send the job."""
    try:
        return future.result()
    except CancelledError:
        return RunResult(error="The run was cancelled.", is_stopped=True)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return failed_result(error)
