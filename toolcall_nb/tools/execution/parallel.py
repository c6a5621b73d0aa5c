"""Runs several calls in parallel, each in a thread: `run_together`."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from toolcall_nb.core.events import Json
from toolcall_nb.tools.definition import Tool
from toolcall_nb.tools.execution.interrupts import STOP, check_stop, run_to_end
from toolcall_nb.tools.execution.runner import Outcome, exception_text
from toolcall_nb.tools.execution.workers import POLL_SECONDS
from toolcall_nb.tools.output import ProgressCallback, ToolProgress

__all__ = ["MAX_THREADS", "Job", "Started", "run_together"]

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


_Update: TypeAlias = tuple[Job, Started | ToolProgress | Outcome]


def run_together(jobs: Sequence[Job]) -> Generator[_Update, None, None]:
    """Runs the jobs in parallel and yields each job's updates as they come: `Started`, its progress, its `Outcome`.

    The outcome is a job's last update. When the generator is closed, or the thread that waits in it is interrupted,
    the jobs that still run are interrupted, as far as Python allows, and nothing more is yielded.
    """
    updates: queue.SimpleQueue[_Update] = queue.SimpleQueue()
    waiting, running, stop = deque(jobs), set[Job](), threading.Event()
    try:
        check_stop()  # CPython 3.11 takes an interrupt at a `continue` to the first line of a `try` for one before it
        while waiting or running:
            while waiting and len(running) < MAX_THREADS:
                running.add(waiting[0])
                _start(waiting.popleft(), updates, stop)
            update = None
            with suppress(queue.Empty):
                update = updates.get(timeout=POLL_SECONDS)
            check_stop()
            if update is None:
                continue
            job, what = update
            if isinstance(what, Outcome):
                running.discard(job)
            yield job, what
    finally:
        run_to_end(stop.set)


def _start(job: Job, updates: queue.SimpleQueue[_Update], stop: threading.Event) -> None:
    def body() -> None:
        STOP.set(stop)
        updates.put((job, Started()))
        try:
            outcome = job.run(lambda progress: updates.put((job, progress)))
        except KeyboardInterrupt as error:  # raised by the tool itself, or by the stop, after which nobody reads this
            outcome = Outcome(error=exception_text(error), exception=error)
        updates.put((job, outcome))

    run = contextvars.copy_context().run
    threading.Thread(target=run, args=(body,), name="toolcall_nb-parallel", daemon=True).start()
