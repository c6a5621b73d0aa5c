"""Runs several calls in parallel, each in a thread: `run_together`, or `RunningJobs` if they come one by one."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from toolcall_nb.core.events import Json
from toolcall_nb.threads.interrupts import STOP, check_stop, run_to_end, start_if_possible
from toolcall_nb.tools.definition import Tool
from toolcall_nb.tools.execution.runner import Outcome, exception_text
from toolcall_nb.tools.execution.workers import POLL_SECONDS
from toolcall_nb.tools.output import ProgressCallback, ToolProgress

MAX_THREADS = 16
"""Threads that run at the same time; further jobs are queued."""


class Job(Struct, frozen=True, eq=False):
    """One call of a tool, equal to no other. ``value_expression`` is as in `Tool.run`.

    ``around`` is called with the run, in the thread of the run, and returns its outcome; it is how runs are traced.
    """

    tool: Tool
    arguments: Json
    value_expression: str = ""
    around: Callable[[Callable[[], Outcome]], Outcome] | None = None

    def run(self, on_progress: ProgressCallback) -> Outcome:
        """Runs the tool, as `Tool.run` does."""
        run = partial(self.tool.run, self.arguments, on_progress, self.value_expression)
        return run() if self.around is None else self.around(run)


class Started(Struct, frozen=True):
    """The job was taken from the queue, and its thread runs."""


JobUpdate: TypeAlias = "Started | ToolProgress | Outcome"
_Update: TypeAlias = tuple[Job, JobUpdate]


def run_together(jobs: Sequence[Job]) -> Generator[_Update, None, None]:
    """Runs the jobs in parallel and yields each job's updates as they come: `Started`, its progress, its `Outcome`.

    The outcome is a job's last update. When the generator is closed, or the thread that waits in it is interrupted,
    the jobs that still run are interrupted, as far as Python allows, and nothing more is yielded.
    """
    running, waiting = RunningJobs(), deque(jobs)
    try:
        check_stop()  # CPython 3.11 takes an interrupt at a `continue` to the first line of a `try` for one before it
        while waiting or running.count:
            while waiting and running.count < MAX_THREADS:
                running.start(waiting.popleft())
            update = running.next_update(POLL_SECONDS)
            check_stop()
            if update is not None:
                yield update
    finally:
        run_to_end(running.stop)


class RunningJobs:
    """Jobs that run, each in a thread, with a copy of the context in which this object was made.

    The updates of a job are those of `run_together`. ``on_update`` is called after each, in the job's thread. Updates
    are read in one thread at a time; ``count`` is the number of jobs whose outcome was not read yet.
    """

    def __init__(self, on_update: Callable[[], object] = lambda: None) -> None:
        self.count = 0
        self._updates: queue.SimpleQueue[_Update] = queue.SimpleQueue()
        self._on_update = on_update
        self._stop = threading.Event()
        self._context = contextvars.copy_context()

    def start(self, job: Job) -> None:
        """Starts a job. Where no thread can be started, it runs to its end before this returns."""
        self.count += 1
        run = self._context.copy().run
        thread = threading.Thread(target=run, args=(self._run, job), name="toolcall_nb-parallel", daemon=True)
        if not start_if_possible(thread):
            run(self._run, job)

    def next_update(self, seconds: float) -> _Update | None:
        """Returns the next update, or None if none comes within so many seconds."""
        try:
            update = self._updates.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(update[1], Outcome):
            self.count -= 1
        return update

    def stop(self) -> None:
        """Interrupts the jobs that still run, as far as Python allows."""
        self._stop.set()

    def _run(self, job: Job) -> None:
        STOP.set(self._stop)
        self._put(job, Started())
        try:
            outcome = job.run(partial(self._put, job))
        except KeyboardInterrupt as error:  # raised by the tool itself, or by the stop, after which nobody reads this
            outcome = Outcome(error=exception_text(error), exception=error)
        self._put(job, outcome)

    def _put(self, job: Job, what: JobUpdate) -> None:
        self._updates.put((job, what))
        self._on_update()
