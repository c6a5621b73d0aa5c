"""What a running tool prints: collected, cleaned, bounded, and told soon but not too often."""

from __future__ import annotations

import contextvars
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from toolcall_nb.core.call_display import with_displayed_bundles
from toolcall_nb.core.events import Json, Object
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.tools.figures import open_figures
from toolcall_nb.tools.listening import LISTENER, Bent, Listener, routed
from toolcall_nb.tools.progress import Log, Preliminary, Progress, Tell
from toolcall_nb.tools.results import WIDGET, clean_bundle, forms
from toolcall_nb.tools.values import cut_text

__all__ = ["INTERVAL", "MOST", "Printout", "listening"]

INTERVAL = 0.04
"""Seconds between two pieces of a log: as often as a display can show them."""

MOST = 1_000_000
"""Characters of one tool's log; of what comes after them only the number is told."""

PICTURES = 0.25
"""Seconds between two states of what is displayed."""

MAX_PLAIN = 20_000
"""Characters of the plain text that are kept beside a display."""

_log = logger("toolcall_nb.tools")

_OPEN: set[Printout] = set()
"""Those that are not closed."""

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links, and other strings
    r"|[ -/]+[0-~]|[0-OQ-WYZ\\`-~])"
)
_CUT_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{0,4000}\x1b?|[ -/]*)?\Z")
_LOWER_BAR = re.compile(r"(?<!\n)\n++\r?([^\n\r\x1b]*+)(?:\x1b\[A)++")
"""A progress bar below another: line feeds, the bar, and as often up again."""

_BAR = "[00:00"
"""In the text of a progress bar that has just begun."""


@contextmanager
def listening(tell: Tell | None, interval: float = INTERVAL) -> Iterator[Printout | None]:
    """Within this, what is printed in this context goes to ``tell`` and nowhere else; with None nothing changes.

    That is: ``sys.stdout`` and ``sys.stderr``, and by way of them warnings, logging and progress bars, also from
    threads and tasks that are started within; and ``display()``, of which the plain text is taken. Others that
    print meanwhile are not touched. What is written to the file descriptors themselves (by a child process, by a C
    library) is not seen here.
    """
    if tell is None:
        yield None
        return
    printout = Printout(tell, LISTENER.get(), interval)
    with routed():
        token = LISTENER.set(printout)
        try:
            yield printout
        finally:
            LISTENER.reset(token)
            printout.close()


class Printout:
    """The log of one running tool. ``around`` is the listener around it, if there is one.

    ``tell`` is called by one thread at a time, at most once every ``interval`` seconds and once at the end; with 0
    at each write. Text is cut anywhere; escape sequences are left out; of a line that was begun anew with a
    carriage return the last state is kept. After `close` everything goes where it went before.
    """

    def __init__(self, tell: Tell, around: Listener | None = None, interval: float = INTERVAL) -> None:
        self.around = around
        self.closed = False
        self.process = os.getpid()
        self._displays: list[tuple[str | None, Object]] = []  # with the id that an update names
        self._is_clearing = False
        self._figures: list[Any] = []
        self._opened_before = frozenset(map(id, open_figures()))
        self._output: Json = None  # the last that was yielded
        self._told_at, self._is_untold = 0.0, False  # of the displays
        self._held: list[Bent] = []
        self._tell = tell
        self._interval = interval
        self._context = contextvars.copy_context()
        self._taking = threading.RLock()
        self._telling = threading.RLock()
        self._due, self._end = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._written: list[str] = []
        self._length = 0
        self._cleaner = _Cleaner()
        self._failed = False
        _OPEN.add(self)

    def write(self, text: str) -> None:
        """More of it."""
        with self._taking:
            self._written.append(text)
            self._length += len(text)
            is_much = self._length > MOST
        if is_much or not self._interval:
            self._flush()
        else:
            self._wake()

    def show(self, data: Object, display_id: str | None = None, *, is_update: bool = False) -> bool:
        """Something was displayed: it is kept, or where it is only text, logged."""
        text = data.get("text/plain")
        text = text if isinstance(text, str) else ""
        is_bar = _BAR in text and WIDGET in data
        bundle = None if is_bar else clean_bundle(data)
        with self._taking:
            place = next((n for n, (known, _) in enumerate(self._displays) if display_id and known == display_id), None)
            if is_update and place is None:
                return False
            if self._is_clearing:
                self._displays.clear()
                self._is_clearing, place = False, None
            if bundle is not None and text:
                bundle["text/plain"] = cut_text(text, MAX_PLAIN)
            if bundle is not None and place is not None:
                self._displays[place] = (display_id, bundle)
            elif bundle is not None or display_id:
                self._displays.append((display_id, bundle or {}))
        if bundle is not None:
            self._tell_displays()
        elif text:
            self.write(text if is_bar else text + "\n")
        return True

    def clear(self, *, wait: bool = False) -> None:
        """What was displayed goes; what was printed stays in the log."""
        with self._taking:
            self._is_clearing = wait
            if not wait:
                self._displays.clear()
        if not wait:
            self._tell_displays()

    def open(self, figure: Any) -> None:
        """A figure was opened."""
        self._figures.append(figure)

    def show_figures(self) -> None:
        """Show the figures that are open and were opened in this context, or by no tool, and close them."""
        still_open = open_figures()
        figures = [figure for figure in still_open if figure in self._figures]
        if not figures:  # one that was there before, and belongs to no other tool
            figures = [figure for figure in still_open if not any(figure in other._figures for other in _OPEN)]
        self._figures.clear()
        for figure in figures:
            output, display = forms(figure)
            self.show({**(display or {}), "text/plain": output})

    def show_open_figures(self, but: Any = None) -> None:
        """Show what the tool has left open, as a notebook does at the end of a cell; ``but`` is its result."""
        if not self._figures and {self} == _OPEN:  # it imported matplotlib itself, and nobody saw what it opened
            self._figures = [figure for figure in open_figures() if id(figure) not in self._opened_before]
        self._figures = [figure for figure in self._figures if figure is not but]
        if self._figures:
            self.show_figures()

    def end(self, own: Object | None) -> Object | None:
        """The display of the call: the result's ``own`` one, and what was displayed."""
        self._is_untold = False
        return self._displayed(own)

    def _displayed(self, own: Object | None) -> Object | None:
        with self._taking:
            return with_displayed_bundles(own, [bundle for _, bundle in self._displays if bundle])

    def hold(self, method: Bent) -> None:
        """Keep this method bent as well, until the end."""
        self._held.append(method)

    def tell(self, progress: Progress) -> None:
        """Tell something else, in its place among what was printed."""
        with self._telling:
            self._flush()
            if not self.closed:
                if isinstance(progress, Preliminary):
                    self._output = progress.output
                    progress = Preliminary(progress.output, self._displayed(None))
                self._say(progress)

    def close(self) -> None:
        """Tell the rest. From here on nothing is told any more."""
        self._end.set()
        self._due.set()
        with self._telling:
            if self.closed:
                return
            self._flush()
            self._say_displays()
            self.closed = True
            _OPEN.discard(self)
            self._say_log(self._cleaner.close())
        for method in self._held:
            method.release()

    def _wake(self) -> None:
        self._due.set()
        with self._taking:
            if self._thread is not None or self._end.is_set():
                return
            self._thread = threading.Thread(
                target=self._context.run, args=(self._loop,), name="toolcall_nb-log", daemon=True
            )
        self._thread.start()

    def _loop(self) -> None:
        while self._due.wait() and not self._end.is_set():
            self._due.clear()
            self._flush()
            self._end.wait(self._interval)

    def _tell_displays(self) -> None:
        """At once, but not more often than a page can draw pictures; what waits is told with what is printed next."""
        self._is_untold = True
        if time.monotonic() - self._told_at >= PICTURES:
            with self._telling:
                self._flush()
                self._say_displays()
        elif self._interval:
            self._wake()

    def _say_displays(self) -> None:
        if self._is_untold and not self.closed:
            self._is_untold, self._told_at = False, time.monotonic()
            self._say(Preliminary(self._output, self._displayed(None)))

    def _flush(self) -> None:
        with self._telling:
            with self._taking:
                text = "".join(self._written)
                self._written.clear()
                self._length = 0
            if not self.closed:
                self._say_log(self._cleaner.feed(text))
                if time.monotonic() - self._told_at >= PICTURES:
                    self._say_displays()

    def _say_log(self, text: str) -> None:
        if text:
            self._say(Log(text))

    def _say(self, progress: Progress) -> None:
        """What the teller itself prints is not part of the log."""
        token = LISTENER.set(self.around)
        try:
            self._tell(progress)
        except Exception:
            if not self._failed:
                _log.exception("What a tool tells while it runs could not be passed on; the tool goes on")
            self._failed = True
        finally:
            LISTENER.reset(token)


def _is_alone(printout: Printout) -> bool:
    return {printout} == _OPEN


class _Cleaner:
    """Text as it was written in, text for a log out: without escapes, and at most `MOST` characters of it."""

    def __init__(self) -> None:
        self._cut = ""  # an escape sequence that is not whole
        self._size = 0  # of the lines that are whole
        self._line = 0  # of the last one
        self._left_out = 0

    def feed(self, text: str) -> str:
        text = self._cut + text
        unfinished = _CUT_ESCAPE.search(text, max(0, len(text) - 5000)) if "\x1b" in text else None
        self._cut = unfinished[0] if unfinished else ""
        text = text[: len(text) - len(self._cut)]
        if "\x1b" in text:
            text = _ESCAPES.sub("", _LOWER_BAR.sub(r"\r\1", text)).replace("\x1b", "")
        return self._bounded(_overwritten(text) if "\r" in text else text)

    def close(self) -> str:
        if not self._left_out:
            return ""
        end = "\n" if self._line else ""
        return f"{end}… {self._left_out:,} more characters were printed.\n"

    def _bounded(self, text: str) -> str:
        if self._left_out:
            self._left_out += len(text)
            return ""
        room = self._room(text)
        self._left_out = max(0, len(text) - room)
        text = text[:room]
        lines, end, last = text.rpartition("\n")
        if end:
            self._size += self._line + len(lines) + 1
            self._line = 0
        self._line = len(last) if "\r" in last else self._line + len(last)
        return text

    def _room(self, text: str) -> int:
        """A line that begins anew takes the room of the one that it replaces."""
        begins_anew = text.startswith("\r") and not text.startswith("\r\n")
        return MOST - self._size - (0 if begins_anew else self._line)


def _overwritten(text: str) -> str:
    """Of each line what stands after its last carriage return, with that; those at its end stay."""
    return "\n".join(map(_last_state, text.split("\n")))


def _last_state(line: str) -> str:
    body = line.rstrip("\r")
    _, anew, last = body.rpartition("\r")
    return anew + last + line[len(body) :]
