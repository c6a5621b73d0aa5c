"""What a running tool prints: collected, cleaned, bounded, and told soon but not too often."""

from __future__ import annotations

import contextvars
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from toolcall_nb.events import Object
from toolcall_nb.logs import logger
from toolcall_nb.tools.listening import LISTENER, Bent, Listener, routed
from toolcall_nb.tools.progress import Log, Progress, Tell
from toolcall_nb.tools.results import WIDGET, clean_bundle

__all__ = ["INTERVAL", "MOST", "Printout", "listening"]

INTERVAL = 0.04
"""Seconds between two pieces of a log: as often as a display can show them."""

MOST = 1_000_000
"""Characters of one tool's log; of what comes after them only the number is told."""

_log = logger("toolcall_nb.tools")

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
        self.shown: Object | None = None
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

    def show(self, data: Object) -> None:
        """Something was displayed: its plain text is logged; ``shown`` keeps the last one that is more than text."""
        self.shown = clean_bundle(data) or self.shown
        text = data.get("text/plain")
        if isinstance(text, str) and text:
            self.write(text if _BAR in text and WIDGET in data else text + "\n")

    def hold(self, method: Bent) -> None:
        """Keep this method bent as well, until the end."""
        self._held.append(method)

    def tell(self, progress: Progress) -> None:
        """Tell something else, in its place among what was printed."""
        with self._telling:
            self._flush()
            if not self.closed:
                self._say(progress)

    def close(self) -> None:
        """Tell the rest. From here on nothing is told any more."""
        self._end.set()
        self._due.set()
        with self._telling:
            if self.closed:
                return
            self._flush()
            self.closed = True
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

    def _flush(self) -> None:
        with self._telling:
            with self._taking:
                text = "".join(self._written)
                self._written.clear()
                self._length = 0
            if not self.closed:
                self._say_log(self._cleaner.feed(text))

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
