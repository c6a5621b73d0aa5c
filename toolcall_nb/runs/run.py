"""One run: events from a chat or a replay, a face that shows them, and how to end it early."""

from __future__ import annotations

import contextvars
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from toolcall_nb.core import events as ev
from toolcall_nb.errors import ToolcallError
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.tools import stop_thread
from toolcall_nb.tools.interrupting import STOP, stop_signal_heard

if TYPE_CHECKING:
    from toolcall_nb.core.events import Event
    from toolcall_nb.runs.face import Face

__all__ = ["Run", "Source", "Stoppable"]

log = logger("toolcall_nb.runs")

Show: TypeAlias = Callable[["Event"], None]
Source: TypeAlias = Callable[[Show], Iterator["Event"]]
"""Gives the events of a run. What happens between two of them, in whichever thread, it gives to ``Show`` at once."""

_GRACE = 0.3
"""Seconds that a tool is given, after Stop, until it is interrupted."""

_AGAIN = 1.0
_TRIES = 3
"""An interrupt that comes just before a blocking call does not end that call: it is sent again, a second later."""


class Stoppable:
    """A stream of events that ends with ``abort`` soon after `stop`; for streams that have no stop of their own."""

    def __init__(self, events: Iterator[Event]) -> None:
        self._events = events
        self._is_stopped = False

    def stop(self) -> None:
        """End before the next event."""
        self._is_stopped = True

    def __iter__(self) -> Iterator[Event]:
        for event in self._events:
            if self._is_stopped:
                yield ev.Abort(reason="stopped")
                return
            yield event


class Run:
    """Plays the events of ``source`` to ``face`` until they end.

    ``stop`` asks the source to end. What fails in the showing is logged and does not end the run. ``info``
    gives the line that stays below it. What `Source` raises before its first event, the constructor raises.
    """

    def __init__(self, source: Source, *, stop: Callable[[], None], info: Callable[[Run], str]) -> None:
        self._events = iter(source(self._show_meanwhile))
        self._stop_source = stop
        self._info = info
        self._face: Face | None = None
        self._last: Event | None = None
        self._faults = 0
        self._thread: threading.Thread | None = None
        self._asked = threading.Event()  # to stop
        self._ended = threading.Event()
        self._at_the_end = threading.Lock()
        self._showing = threading.RLock()  # tools that run side by side tell what they print from their own threads

    @property
    def face(self) -> Face:
        """What shows it."""
        assert self._face is not None
        return self._face

    @property
    def is_running(self) -> bool:
        """Whether it goes on, here or in the background."""
        return self._thread is not None and not self._ended.is_set()

    def play(self, face: Face) -> None:
        """To the end. An interrupt ends it early, and quietly: the transcript says so."""
        self._face = face
        self._thread = threading.current_thread()
        try:
            with stop_signal_heard(self._asked.is_set):
                try:
                    self._drain()
                finally:
                    self._end()
        finally:
            self._safely(lambda: face.close(self._info(self)))

    def play_in_background(self, face: Face) -> None:
        """The same in a thread. Its output finds the cell, since the thread has the cell's context."""
        self._face = face
        context = contextvars.copy_context()
        context.run(STOP.set, self._asked)
        self._thread = threading.Thread(target=context.run, args=(self.play, face), name="toolcall_nb-run", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the source to end; what holds its thread is interrupted. A run that has ended is left alone."""
        if self._ended.is_set():
            return
        self._stop_source()
        self._asked.set()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        for pause in (_GRACE, *[_AGAIN] * (_TRIES - 1)):
            if self._ended.wait(pause):
                return
            with self._at_the_end:
                if not self._ended.is_set():
                    _interrupt(thread)

    def wait(self, seconds: float) -> bool:
        """Until it has ended; whether it has."""
        return self._ended.wait(seconds)

    def _end(self) -> None:
        """From here on `stop` interrupts nothing any more; what it sent before arrives now at the latest."""
        try:
            with self._at_the_end:
                self._ended.set()
        except KeyboardInterrupt:
            self._ended.set()

    def _drain(self) -> None:
        try:
            self._show_all()
        except KeyboardInterrupt:
            self._stop_source()
            with suppress(KeyboardInterrupt):  # twice: whoever interrupts does not want to wait
                self._show_all()
            if not isinstance(self._last, ev.Finish | ev.Abort):  # a source that was torn off
                self._show(ev.Abort(reason="interrupted"))
        except Exception as error:
            if not isinstance(error, ToolcallError):
                log.exception("The run ended with an error that should have been an event")
            self._show(ev.Error(str(error) or type(error).__name__))

    def _show_all(self) -> None:
        for event in self._events:
            self._last = event
            self._show(event)

    def _show(self, event: Event) -> None:
        self._safely(lambda: self.face.show(event))

    def _show_meanwhile(self, event: Event) -> None:
        """A tool tells; one that outlives its run tells nobody."""
        if not self._ended.is_set():
            self._show(event)

    def _safely(self, show: Callable[[], Any]) -> None:
        try:
            with self._showing:
                show()
        except Exception:
            self._faults += 1
            if self._faults == 1:
                log.exception("The display failed; the run goes on")


def _interrupt(thread: threading.Thread) -> None:
    """As Ctrl+C does in the main thread, so that a blocking call there returns; in others as far as Python allows."""
    if thread is not threading.main_thread():
        stop_thread(thread)
    elif hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)
