"""Threads that wait for the next task: `WaitingThreads`. Waking one takes a fraction of the time of starting one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from toolcall_nb.threads.interrupts import start_if_possible

_IDLE_SECONDS = 10.0


class WaitingThreads:
    """Daemon threads that run one task after the other. A task never waits for another one to end.

    A thread that gets no task for ten seconds ends. So does one whose task raises, after its traceback was printed.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[_WaitingThread] = []  # the last one has run last

    def start(self, task: Callable[[], object]) -> threading.Thread | None:
        """Runs the task in a thread and returns that; None where no thread can be started."""
        thread = self._idle_thread()
        if thread is None:
            thread = _WaitingThread(self._idle, self._name)
            if not start_if_possible(thread):
                return None
        thread.tasks.put(task)
        return thread

    def _idle_thread(self) -> _WaitingThread | None:
        while True:
            try:
                thread = self._idle.pop()
            except IndexError:
                return None
            if thread.is_alive():  # a fork leaves the threads behind
                return thread


class _WaitingThread(threading.Thread):
    """A thread that takes itself out of ``idle`` ends; other code that takes it out gives it a task."""

    def __init__(self, idle: list[_WaitingThread], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.tasks: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._idle = idle

    def run(self) -> None:
        self.tasks.get()()
        while True:
            self._idle.append(self)
            try:
                task = self.tasks.get(timeout=_IDLE_SECONDS)
            except Empty:
                try:
                    self._idle.remove(self)
                except ValueError:  # it was just taken: its task is on the way
                    task = self.tasks.get()
                else:
                    return
            task()
            del task  # it holds its whole turn
