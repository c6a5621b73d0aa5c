"""Several calls beside each other, each in a thread of its own."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections import deque
from collections.abc import Generator, Sequence
from typing import TypeAlias

from msgspec import Struct

from toolcall_nb.core.events import Json
from toolcall_nb.tools.definition import Tool
from toolcall_nb.tools.interrupting import STOP, check_stop, surely
from toolcall_nb.tools.progress import Progress, Tell
from toolcall_nb.tools.running import Outcome, error_text
from toolcall_nb.tools.workers import POLL

__all__ = ["AT_ONCE", "Job", "News", "Started", "run_together"]

AT_ONCE = 16
"""Threads that run at the same time; further jobs wait for their turn."""


class Job(Struct, frozen=True, eq=False):
    """One call of a tool; it is itself and equal to no other. ``whole`` is as in `Tool.run`."""

    tool: Tool
    arguments: Json
    whole: str = ""


class Started(Struct, frozen=True):
    """The job's thread runs: it waits no longer for its turn."""


News: TypeAlias = tuple[Job, Started | Progress | Outcome]


def run_together(jobs: Sequence[Job]) -> Generator[News, None, None]:
    """Run the jobs beside each other; what each tells, and its outcome, as it comes.

    Each job first tells that it has `Started`; it has one outcome, and tells nothing after it. When the generator is
    closed, or the thread that waits in it is interrupted, the jobs that still run are interrupted, as far as Python
    allows, and nothing more is told.
    """
    news: queue.SimpleQueue[News] = queue.SimpleQueue()
    waiting, running, stop = deque(jobs), set[Job](), threading.Event()
    try:
        check_stop()  # CPython 3.11 takes an interrupt at a `continue` to the first line of a `try` for one before it
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                running.add(waiting[0])
                _start(waiting.popleft(), news, stop)
            found = _next(news)
            check_stop()
            if found is None:
                continue
            job, what = found
            if isinstance(what, Outcome):
                running.discard(job)
            yield job, what
    finally:
        surely(stop.set)


def _next(news: queue.SimpleQueue[News]) -> News | None:
    """What comes within `POLL`."""
    try:
        return news.get(timeout=POLL)
    except queue.Empty:
        return None


def _start(job: Job, news: queue.SimpleQueue[News], stop: threading.Event) -> None:
    def body() -> None:
        STOP.set(stop)
        news.put((job, Started()))
        news.put((job, _outcome(job, lambda progress: news.put((job, progress)))))

    run = contextvars.copy_context().run
    threading.Thread(target=run, args=(body,), name="toolcall_nb-parallel", daemon=True).start()


def _outcome(job: Job, tell: Tell) -> Outcome:
    try:
        return job.tool.run(job.arguments, tell, job.whole)
    except KeyboardInterrupt as error:  # the tool's own, or the end of all: then nobody reads this
        return Outcome(error=error_text(error), exception=error)
