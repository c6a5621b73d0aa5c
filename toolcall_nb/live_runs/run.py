"""One run, from its first event to its last: `Run` plays events to a `RunDisplay` and can be stopped.

The events come from a chat, a replay or a stream. The display is a widget in a cell, a static output, a terminal or a
server's response.
"""

from __future__ import annotations

import contextvars
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeAlias

from toolcall_nb.core import events as ev
from toolcall_nb.errors import ToolcallError
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.threads.interrupts import STOP, ThreadInterrupts, interrupts_handled, start_if_possible
from toolcall_nb.tools import stop_thread
from toolcall_nb.tools.output.patched_streams import OUTPUT_SINK

if TYPE_CHECKING:
    from toolcall_nb.approvals import Decision
    from toolcall_nb.core.events import Event
    from toolcall_nb.core.transcript import ToolCall, Transcript
    from toolcall_nb.threads.waiting import WaitingThreads

_log = logger("toolcall_nb.live_runs")

Source: TypeAlias = Callable[[Callable[["Event"], None]], Iterator["Event"]]
"""Yields the events of a run. It passes what happens between two of them, in any thread, to its argument at once."""

_GRACE = 0.3
"""Seconds from Stop until a tool that still runs is interrupted."""

_AGAIN = 1.0
_TRIES = 3
"""An interrupt that comes just before a blocking call does not end that call: it is sent again, a second later."""

PLAYING: contextvars.ContextVar[Run | None] = contextvars.ContextVar("toolcall_nb_playing", default=None)
"""The run that plays in this context."""


def _run_of_this_code() -> Run | None:
    """Returns the run that plays in this context, or whose tool started this thread and has not ended."""
    sink = OUTPUT_SINK.get()
    return PLAYING.get() or (None if sink is None or sink.closed else sink.context.get(PLAYING))


class RunDisplay(Protocol):
    """Shows or sends one run."""

    def show(self, event: Event) -> None:
        """Takes one event in."""

    def ask(self, call: ToolCall, is_stopped: Callable[[], bool]) -> Decision:
        """Asks whether a call may run. Raises `KeyboardInterrupt` if the run is stopped in the meantime."""

    def close(self, info: str) -> None:
        """Ends the display; ``info`` is the line below the run."""

    @property
    def transcript(self) -> Transcript:
        """The transcript of the events so far."""


class Stoppable:
    """Events that end with ``abort`` soon after `stop`, for sources that cannot be stopped themselves."""

    def __init__(self, events: Iterator[Event]) -> None:
        self._events = events
        self._is_stopped = False

    def stop(self) -> None:
        """Ends before the next event."""
        self._is_stopped = True

    def __iter__(self) -> Iterator[Event]:
        for event in self._events:
            if self._is_stopped:
                yield ev.Abort(reason="stopped")
                return
            yield event


class Run:
    """Plays the events of ``source`` to a display until they end.

    ``stop`` asks the source to end. ``info`` returns the line that stays below the run. An error of the display is
    logged and does not end the run. The constructor raises what the source raises before its first event.
    """

    def __init__(self, source: Source, *, stop: Callable[[], None], info: Callable[[Run], str]) -> None:
        self._events = iter(source(self._show_meanwhile))
        self._stop_source = stop
        self._info = info
        self.display: RunDisplay
        """The display that was given to `play`."""
        self.error: Exception | None = None
        """What the source has raised."""
        self._last: Event | None = None
        self._has_failed = False
        self._thread: threading.Thread | None = None
        self._interrupts: ThreadInterrupts | None = None  # of that thread, once it plays
        self._outer: Run | None = None  # whose tool began this run
        self._stop_asked = threading.Event()
        self._ended = threading.Event()
        self._at_the_end = threading.Lock()
        self._showing = threading.RLock()  # tools that run in parallel send what they print from their own threads

    @property
    def is_running(self) -> bool:
        """Whether it goes on, in this thread or in the background."""
        return self._thread is not None and not self._ended.is_set()

    @property
    def has_other_thread(self) -> bool:
        """Whether it plays, or has played, in another thread than this one."""
        return self._thread not in (None, threading.current_thread())

    def is_around(self) -> bool:
        """Whether a tool of this run runs the calling code, in its own thread or in one that it has started."""
        run = _run_of_this_code()
        while run is not None and run is not self:
            run = run._outer
        return run is self

    def play(self, display: RunDisplay) -> None:
        """Plays to the end. An interrupt ends the run early without raising: the transcript says so."""
        self.display = display
        self._outer = _run_of_this_code()
        playing = PLAYING.set(self)
        with interrupts_handled(self._stop_asked.is_set) as interrupts:
            self._thread, self._interrupts = threading.current_thread(), interrupts
            try:
                self._drain(interrupts)
            finally:
                interrupts.are_held = True
                with self._at_the_end:
                    self._ended.set()
                PLAYING.reset(playing)
                try:
                    display.close(self._info(self))
                except Exception:
                    self._note_failure()

    def play_in_background(self, display: RunDisplay, threads: WaitingThreads | None = None) -> None:
        """Plays in a new thread or in one of ``threads``, in this context: ipykernel finds the output's cell by it.

        Where no thread can be started, it plays to the end before it returns.
        """
        self.display = display
        context = contextvars.copy_context()
        context.run(STOP.set, self._stop_asked)

        def play() -> None:
            context.run(self.play, display)

        if threads is None:
            thread = threading.Thread(target=play, name="toolcall_nb-run", daemon=True)
            self._thread = thread if start_if_possible(thread) else None
        else:
            self._thread = threads.start(play)
        if self._thread is None:
            play()

    def stop(self) -> None:
        """Asks the source to end, and interrupts what blocks its thread. Does nothing after the end."""
        if self._ended.is_set():
            return
        self._stop_source()
        self._stop_asked.set()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        for pause in (_GRACE, *[_AGAIN] * (_TRIES - 1)):
            if self._ended.wait(pause):
                return
            with self._at_the_end:
                if not self._ended.is_set():
                    interrupt_thread(thread, self._interrupts)

    def wait(self, seconds: float) -> bool:
        """Waits for the end, at most so long. Returns whether it has come."""
        return self._ended.wait(seconds)

    def join(self) -> None:
        """Waits until a run in a new thread has ended and its display is closed."""
        if self._thread is not None and self.has_other_thread:
            self._thread.join()

    def _drain(self, interrupts: ThreadInterrupts) -> None:
        try:
            self._show_all(interrupts)
        except KeyboardInterrupt:
            interrupts.are_held = True
            self._stop_source()
            with suppress(KeyboardInterrupt):  # a second one: the person does not want to wait
                self._show_all(interrupts)
            if isinstance(self._events, Generator):  # lets the source complete its transcript
                self._events.close()
            interrupts.are_held = True
            if not isinstance(self._last, ev.Finish | ev.Abort):  # the interrupt hit the source itself
                self._show(ev.Abort(reason="interrupted"))
        except Exception as error:
            interrupts.are_held = True
            self.error = error
            if not isinstance(error, ToolcallError):
                _log.exception("The run ended with an error that should have been an event")
            self._show(ev.Error(str(error) or type(error).__name__))

    def _show_all(self, interrupts: ThreadInterrupts) -> None:
        """Shows each event. Interrupts are let through while the source works on the next one."""
        interrupts.let_through()
        for event in self._events:
            interrupts.are_held = True
            self._last = event
            self._show(event)
            interrupts.are_held = False
            if interrupts.has_come:
                interrupts.let_through()

    def _show(self, event: Event) -> None:
        try:
            with self._showing:
                self.display.show(event)
        except Exception:
            self._note_failure()

    def _show_meanwhile(self, event: Event) -> None:
        """Shows what a tool sends between two events. What a tool sends after the end of its run is dropped."""
        if not self._ended.is_set():
            self._show(event)

    def _note_failure(self) -> None:
        """Logs the first error of the display."""
        if not self._has_failed:
            _log.exception("The display failed; the run goes on")
        self._has_failed = True


def interrupt_thread(thread: threading.Thread, interrupts: ThreadInterrupts | None = None) -> None:
    """Interrupts a thread: the main thread as Ctrl+C does, so that a blocking call returns; others as Python allows.

    Where the thread holds its ``interrupts``, this one waits.
    """
    if thread is not threading.main_thread():
        stop_thread(thread, interrupts=interrupts)
    elif hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)
