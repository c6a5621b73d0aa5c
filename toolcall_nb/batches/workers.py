"""Runs the jobs of a batch: `LocalWorkers` in threads of this process, `RemoteWorkers` on an executor.

`RateLimits` holds back the requests to a model whose provider asks to wait. A pause counts for all runs of the model.

An executor is a `concurrent.futures.Executor`: a process pool, or that of Dask, Ray or ipyparallel. It gets a function
of this module and bytes: the job, pickled by cloudpickle where that is installed, which takes functions of a notebook.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from toolcall_nb.approvals.terminal import deny_unattended
from toolcall_nb.batches.run_jobs import RunJob, RunResult, failed_result, job_result, make_chat, run_job, stream_job
from toolcall_nb.chat import Chat
from toolcall_nb.errors import ModelError, UsageError
from toolcall_nb.live_runs.run import Run
from toolcall_nb.sources.provider_errors.retry_after import in_words
from toolcall_nb.sources.provider_errors.translation import as_model_error

if TYPE_CHECKING:
    from toolcall_nb.approvals import Approver, Decision
    from toolcall_nb.batches.progress import BatchProgress
    from toolcall_nb.core.events import Event
    from toolcall_nb.core.transcript import ToolCall, Transcript
import time

LONGEST_PAUSE = 3600.0
"""The most seconds that a model is waited for. If the provider asks for more, its runs fail and say so."""


def make_workers(
    executor: Any, jobs: Iterable[RunJob], progress: BatchProgress, limits: RateLimits
) -> LocalWorkers | RemoteWorkers:
    """Returns the workers for the jobs. Raises `UsageError` for anything but an executor, and for unsendable jobs."""
    if executor is None or isinstance(executor, ThreadPoolExecutor):
        return LocalWorkers(progress, limits, executor)
    workers = RemoteWorkers(_executor_of(executor))
    for job in {id(job.model): job for job in jobs}.values():
        workers.check(job)
    return workers


def _executor_of(thing: Any) -> Executor:
    """Returns the executor that something is or has, such as a client of Dask or a view of ipyparallel."""
    if isinstance(thing, Executor):
        return thing
    get = getattr(thing, "get_executor", None)
    executor = get() if callable(get) else getattr(thing, "executor", None)
    if isinstance(executor, Executor):
        return executor
    raise UsageError(
        f"executor is a concurrent.futures.Executor, a client of Dask or a view of ipyparallel, but is {thing!r:.100}."
    )


# Pauses -------------------------------------------------------------------------------------------------------


class RateLimits:
    """Until when no request may be made to a model. Any thread may use it. ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}
        self._lock = threading.Lock()

    def hold(self, model: str, seconds: float) -> None:
        """Lets no request to the model begin for this time; a longer pause that is set stays."""
        with self._lock:
            until = self._clock() + min(seconds, LONGEST_PAUSE)
            self._until[model] = max(until, self._until.get(model, until))

    def remaining(self, model: str) -> float:
        """Returns the seconds until a request to the model may begin; 0 if it may now."""
        with self._lock:
            return max(0.0, self._until[model] - self._clock()) if model in self._until else 0.0

    def wait(self, model: str, stopping: threading.Event) -> None:
        """Waits until a request may begin, or until ``stopping`` is set."""
        while (seconds := self.remaining(model)) and not stopping.wait(seconds):
            pass


# Threads ------------------------------------------------------------------------------------------------------


class LocalWorkers:
    """Runs each job in a thread of its own, or in those of ``pool``. The runs can be watched and stopped."""

    def __init__(self, progress: BatchProgress, limits: RateLimits, pool: ThreadPoolExecutor | None = None) -> None:
        self._progress = progress
        self._limits = limits
        self._pool = pool
        self._runs: set[Run] = set()
        self._lock = threading.Lock()
        self._asking = threading.Lock()

    def submit(self, job: RunJob) -> Future[RunResult]:
        """Begins a run. The future never has an exception of the run itself: that is in the result."""
        if self._pool is not None:
            return self._pool.submit(self._run_here, job)
        future: Future[RunResult] = Future()
        future.set_running_or_notify_cancel()
        try:
            run, display = self._make(job, future.set_result)
            run.play_in_background(display)
        except Exception as error:  # one run must not end the others
            future.set_result(failed_result(error))
        return future

    def stop(self) -> bool:
        """Ends all runs; tools that block are interrupted. Returns whether they will end soon."""
        with self._lock:
            runs = [*self._runs]
        for run in runs:
            threading.Thread(target=run.stop, name="toolcall_nb-stop", daemon=True).start()
        return True

    def _run_here(self, job: RunJob) -> RunResult:
        results: list[RunResult] = []
        try:
            run, display = self._make(job, results.append)
            run.play(display)
        except Exception as error:  # one run must not end the others
            return failed_result(error)
        return results[0]

    def _make(self, job: RunJob, on_end: Callable[[RunResult], None]) -> tuple[Run, _JobDisplay]:
        chat = make_chat(job, partial(_PacedChat, job=job, limits=self._limits, progress=self._progress))
        if chat.ask_approval is not None:
            chat.ask_approval = self._one_at_a_time(chat.ask_approval)
        run = Run(partial(stream_job, chat, job), stop=chat.stop, info=lambda _: "")

        def end() -> None:
            with self._lock:
                self._runs.discard(run)
            on_end(job_result(chat))

        with self._lock:
            self._runs.add(run)
        return run, _JobDisplay(chat, job.index, self._progress, end)

    def _one_at_a_time(self, approver: Approver) -> Approver:
        """Returns the approver with a lock: a person is asked one question at a time."""

        def ask(call: ToolCall) -> Decision | bool:
            with self._asking:
                return approver(call)

        return ask  # type: ignore[return-value]


class _PacedChat(Chat):
    """A chat that makes no request while its model is held back, and holds it back for all if the provider asks to."""

    def __init__(self, *args: Any, job: RunJob, limits: RateLimits, progress: BatchProgress, **settings: Any) -> None:
        self._job, self._limits, self._progress = job, limits, progress
        super().__init__(*args, **settings)
        self._pause = self.pause
        self.pause = self._hold_all

    def record_request(self) -> None:
        """Waits until the request may be made."""
        name, index = self._job.model_name, self._job.index
        if seconds := self._limits.remaining(name):
            self._progress.note(index, f"Rate limit: waits {in_words(seconds)}")
            self._limits.wait(name, self.stopping)
            self._progress.note(index, "")
        if self.stopping.is_set():
            raise KeyboardInterrupt  # ends the turn as stopped, without a request
        super().record_request()

    def _hold_all(self, seconds: float) -> object:
        if self.last_error is not None:
            error: ModelError = as_model_error(self.last_error, self.model_name)
            if error.retry_after is not None:
                self._limits.hold(self._job.model_name, error.retry_after)
        return self._pause(seconds)


class _JobDisplay:
    """Notes the events of a run in the progress of the batch, and calls ``on_end`` at its end."""

    def __init__(self, chat: Chat, index: int, progress: BatchProgress, on_end: Callable[[], None]) -> None:
        self._chat, self._index, self._progress, self._on_end = chat, index, progress, on_end

    @property
    def transcript(self) -> Transcript:
        """The transcript of the events so far."""
        return self._chat.transcript

    def show(self, event: Event) -> None:
        """Takes one event in."""
        self._progress.take(self._index, event)

    def ask(self, call: ToolCall, is_stopped: Callable[[], bool]) -> Decision:
        """Denies: a run of a batch asks by its chat's ``ask_approval`` only."""
        return deny_unattended(call)

    def close(self, info: str) -> None:
        """Ends the run."""
        self._on_end()


# Executors ----------------------------------------------------------------------------------------------------


class RemoteWorkers:
    """Runs jobs on an executor. A run that has begun there cannot be told to stop."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, job: RunJob) -> Future[RunResult]:
        """Sends a job to the executor."""
        return self._executor.submit(run_pickled_job, _pickled(job))

    def stop(self) -> bool:
        """Does nothing: the futures can be cancelled, and what runs elsewhere ends by itself."""
        return False

    def check(self, job: RunJob) -> None:
        """Raises `UsageError` that names the model, tool or setting which cannot be sent to another process."""
        parts = {f"The model {job.model_name!r}": job.model}
        parts |= {f"The tool {tool.name!r}": tool for tool in job.tools}
        parts |= {f"The setting {name}": value for name, value in job.settings.items()}
        for name, part in parts.items():
            try:
                _pickled(part)
            except Exception as error:  # a pickler raises whatever the object does
                hint = "" if _has_cloudpickle() else " Or install cloudpickle, which sends functions of a notebook."
                raise UsageError(
                    f"{name} cannot be sent to another process: {error}. Define it in a module that the other process "
                    f"can import, or run in threads: leave out executor.{hint}"
                ) from None


def run_pickled_job(payload: bytes) -> RunResult:
    """Runs a job in the process of an executor. The result has the recording as text."""
    try:
        job: RunJob = pickle.loads(payload)
    except Exception as error:  # such as a module that this process cannot import
        return failed_result(error)
    return run_job(job).as_text()


def _pickled(thing: Any) -> bytes:
    pickler = import_module("cloudpickle") if _has_cloudpickle() else pickle
    pickled: bytes = pickler.dumps(thing)
    return pickled


def _has_cloudpickle() -> bool:
    return find_spec("cloudpickle") is not None
