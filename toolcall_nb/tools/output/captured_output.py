"""Captures what a tool prints, displays and plots while it runs: `captured_output`."""

from __future__ import annotations

import contextvars
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from toolcall_nb.core.call_display import with_displayed_bundles
from toolcall_nb.core.events import Json, Object
from toolcall_nb.core.result_text import truncate_text
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.threads.interrupts import start_if_possible
from toolcall_nb.tools.output import Log, Preliminary, ProgressCallback, ToolProgress
from toolcall_nb.tools.output.figures import open_figures
from toolcall_nb.tools.output.log_text import MAX_LOG, LogText
from toolcall_nb.tools.output.patched_streams import OUTPUT_SINK, OutputSink, PatchedMethod, output_routed
from toolcall_nb.tools.results.result import WIDGET, clean_bundle, output_and_display

_LOG_SECONDS = 0.04
"""Seconds between two pieces of a log: as often as a page can show them."""

_DISPLAY_SECONDS = 0.25
"""Seconds between two reports of what is displayed."""

_MAX_PLAIN = 20_000
"""Characters of plain text that are kept beside a display."""

_NEW_BAR = "[00:00"
"""Part of the text of a progress bar that has just begun."""

_log = logger("toolcall_nb.tools")

_ACTIVE: set[CapturedOutput] = set()
"""The captures that are not closed."""


@contextmanager
def captured_output(
    on_progress: ProgressCallback | None, interval: float = _LOG_SECONDS
) -> Iterator[CapturedOutput | None]:
    """Within this block, what this context prints and displays goes to ``on_progress`` only; None changes nothing.

    Captured are ``sys.stdout`` and ``sys.stderr``, and so warnings, logging and progress bars, also from threads and
    tasks that are started within the block; and ``display()``. Other contexts print as before. What is written to the
    file descriptors themselves, by a child process or a C library, is not captured.
    """
    if on_progress is None:
        yield None
        return
    captured = CapturedOutput(on_progress, OUTPUT_SINK.get(), interval)
    with output_routed():
        token = OUTPUT_SINK.set(captured)
        try:
            yield captured
        finally:
            OUTPUT_SINK.reset(token)
            captured.close()


class CapturedOutput:
    """The captured output of one running tool. ``outer`` is the sink of the code around it, if there is one.

    ``on_progress`` is called by one thread at a time, at most once every ``interval`` seconds and once at the end; with
    0, at each write. After `close`, output goes to ``outer`` or to where it went before.
    """

    def __init__(
        self, on_progress: ProgressCallback, outer: OutputSink | None = None, interval: float = _LOG_SECONDS
    ) -> None:
        self.outer = outer
        self.closed = False
        self.process = os.getpid()
        self._displays: list[tuple[str | None, Object]] = []  # each with the id that an update names
        self._clear_at_next_display = False
        self._figures: list[Any] = []
        self._opened_before = frozenset(map(id, open_figures()))
        self._output: Json = None  # the last value that was yielded
        self._displays_reported_at, self._has_new_displays = 0.0, False
        self._patched: list[PatchedMethod] = []
        self._on_progress = on_progress
        self._interval = interval
        self.context = contextvars.copy_context()
        self._state_lock = threading.RLock()
        self._report_lock = threading.RLock()
        self._due, self._end = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._printed: list[str] = []
        self._length = 0
        self._log_text = LogText()
        self._has_failed = False
        _ACTIVE.add(self)

    def write(self, text: str) -> None:
        """Takes printed text."""
        with self._state_lock:
            self._printed.append(text)
            self._length += len(text)
            is_much = self._length > MAX_LOG
        if is_much or not self._interval:
            self._flush()
        else:
            self._wake_thread()

    def show(self, data: Object, display_id: str | None = None, *, is_update: bool = False) -> bool:
        """Takes a displayed MIME bundle; one of plain text alone is logged. False for an update of another display."""
        text = data.get("text/plain")
        text = text if isinstance(text, str) else ""
        is_bar = _NEW_BAR in text and WIDGET in data
        bundle = None if is_bar else clean_bundle(data)
        with self._state_lock:
            ids = [known for known, _ in self._displays]
            place = ids.index(display_id) if display_id and display_id in ids else None
            if is_update and place is None:
                return False
            if self._clear_at_next_display:
                self._displays.clear()
                self._clear_at_next_display, place = False, None
            if bundle is not None and text:
                bundle["text/plain"] = truncate_text(text, _MAX_PLAIN)
            if bundle is not None and place is not None:
                self._displays[place] = (display_id, bundle)
            elif bundle is not None or display_id:
                self._displays.append((display_id, bundle or {}))
        if bundle is not None:
            self._displays_changed()
        elif text:
            self.write(text if is_bar else text + "\n")
        return True

    def clear(self, *, wait: bool = False) -> None:
        """Removes what was displayed, with ``wait`` at the next display; what was printed stays in the log."""
        with self._state_lock:
            self._clear_at_next_display = wait
            if not wait:
                self._displays.clear()
        if not wait:
            self._displays_changed()

    def add_figure(self, figure: Any) -> None:
        """Takes note of a figure that was opened."""
        self._figures.append(figure)

    def show_figures(self) -> None:
        """Displays and closes the open figures of this context, or if it has none, those of no running tool."""
        still_open = open_figures()
        figures = [figure for figure in still_open if figure in self._figures]
        if not figures:
            figures = [figure for figure in still_open if not any(figure in other._figures for other in _ACTIVE)]
        self._figures.clear()
        for figure in figures:
            output, display = output_and_display(figure)
            self.show({**(display or {}), "text/plain": output})

    def show_open_figures(self, but: Any = None) -> None:
        """Displays the figures that the tool has left open, as a notebook does; ``but`` is the tool's result."""
        if not self._figures and {self} == _ACTIVE:  # the tool imported matplotlib, which was not patched until then
            self._figures = [figure for figure in open_figures() if id(figure) not in self._opened_before]
        self._figures = [figure for figure in self._figures if figure is not but]
        if self._figures:
            self.show_figures()

    def final_display(self, own: Object | None) -> Object | None:
        """Returns the display of the call: that of its result, ``own``, and what was displayed."""
        self._has_new_displays = False
        return self._all_displays(own)

    def _all_displays(self, own: Object | None) -> Object | None:
        with self._state_lock:
            return with_displayed_bundles(own, [bundle for _, bundle in self._displays if bundle])

    def keep_patched(self, method: PatchedMethod) -> None:
        """Releases this method when the capture is closed."""
        self._patched.append(method)

    def report(self, progress: ToolProgress) -> None:
        """Reports other progress, in its order among what was printed."""
        with self._report_lock:
            self._flush()
            if not self.closed:
                if isinstance(progress, Preliminary):
                    self._output = progress.output
                    progress = Preliminary(progress.output, self._all_displays(None))
                self._send(progress)

    def close(self) -> None:
        """Reports the rest. Nothing is reported afterwards."""
        self._end.set()
        self._due.set()
        with self._report_lock:
            if self.closed:
                return
            self._flush()
            self._send_displays()
            self.closed = True
            _ACTIVE.discard(self)
            self._send_log(self._log_text.close())
        for method in self._patched:
            method.release()

    def _wake_thread(self) -> None:
        self._due.set()
        with self._state_lock:
            if self._thread is not None or self._end.is_set():
                return
            self._thread = threading.Thread(
                target=self.context.run, args=(self._loop,), name="toolcall_nb-log", daemon=True
            )
        if not start_if_possible(self._thread):
            self._thread = None
            self._flush()

    def _loop(self) -> None:
        while self._due.wait() and not self._end.is_set():
            self._due.clear()
            self._flush()
            self._end.wait(self._interval)

    def _displays_changed(self) -> None:
        """Reports the displays at once if the last report is long enough ago, else with the next printed text."""
        self._has_new_displays = True
        if time.monotonic() - self._displays_reported_at >= _DISPLAY_SECONDS:
            with self._report_lock:
                self._flush()
                self._send_displays()
        elif self._interval:
            self._wake_thread()

    def _flush(self) -> None:
        with self._report_lock:
            with self._state_lock:
                text = "".join(self._printed)
                self._printed.clear()
                self._length = 0
            if not self.closed:
                if text:
                    self._send_log(self._log_text.feed(text))
                if time.monotonic() - self._displays_reported_at >= _DISPLAY_SECONDS:
                    self._send_displays()

    def _send_displays(self) -> None:
        if self._has_new_displays and not self.closed:
            self._has_new_displays, self._displays_reported_at = False, time.monotonic()
            self._send(Preliminary(self._output, self._all_displays(None)))

    def _send_log(self, text: str) -> None:
        if text:
            self._send(Log(text))

    def _send(self, progress: ToolProgress) -> None:
        token = OUTPUT_SINK.set(self.outer)  # what the callback itself prints is not part of the log
        try:
            self._on_progress(progress)
        except Exception:
            if not self._has_failed:
                _log.exception("What a tool tells while it runs could not be passed on; the tool goes on")
            self._has_failed = True
        finally:
            OUTPUT_SINK.reset(token)
