"""One watch from its begin to its end: `WatchSession` holds its transcript and its recording."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.recording import Recording
from toolcall_nb.core.reducer import TranscriptBuilder
from toolcall_nb.core.transcript import ToolCalls, Transcript
from toolcall_nb.watching.span_sources import begin_watching, end_watching, missing_instrumentations
from toolcall_nb.watching.span_store import SpanStore
from toolcall_nb.watching.transcript_events import TranscriptFollower

_PAUSE = 0.05
_SHARE = 4
"""A pause between two readings is at least `_PAUSE` seconds, and `_SHARE` times as long as the reading took."""
_WAKES = 0.5


class WatchSession:
    """A watch: what runs between `begin` and `end`, as a transcript, its calls and its recording, at any time.

    ``left_out`` is the number of spans that were too many, and not read. ``unseen`` says after the end which requests
    the watch could not see, if it saw none.
    """

    def __init__(self) -> None:
        self.unseen: list[str] = []
        self.recording = Recording(says_running=True)
        self._store = SpanStore()
        self._follower = TranscriptFollower()
        self._builder = TranscriptBuilder(None, self.recording.times.records)
        self._events: deque[Event] = deque()
        self._lock = threading.RLock()
        self._start = 0.0
        self._ended = threading.Event()

    def begin(self, provider: Any = None) -> None:
        """Begins to watch. ``provider`` is a tracer provider besides the one that is set."""
        self._start, self.recording.began = time.perf_counter(), time.time()
        begin_watching(self._store, provider)

    def end(self, reason: str | None = None) -> None:
        """Ends; ``reason`` is that of an early end. Calls that still run become interrupted."""
        if self._ended.is_set():
            return
        if not self._store.has_requests:
            self.unseen = missing_instrumentations()
        end_watching(self._store)
        with self._lock:
            self._update()
            if self.left_out:
                number = "1 span was" if self.left_out == 1 else f"{self.left_out:,} spans were"
                self._apply(ev.Diagnostic(f"{number} too many: only the first ones were read.", ev.LEFT_OUT))
            for event in self._follower.finish(reason):
                self._apply(event)
            self._ended.set()
        self._store.changed.set()

    @property
    def left_out(self) -> int:
        """The number of spans that were not read."""
        return self._store.left_out

    @property
    def transcript(self) -> Transcript:
        """The transcript so far."""
        self._update()
        return self._builder.transcript

    @property
    def calls(self) -> ToolCalls:
        """The tool calls by id, in order."""
        return self.transcript.calls

    def events(self) -> Iterator[Event]:
        """Yields the events as they come, until the end."""
        while True:
            is_last = self._ended.is_set()
            began = time.perf_counter()
            self._update()
            while self._events:
                yield self._events.popleft()
            if is_last:
                return
            self._ended.wait(max(_PAUSE, _SHARE * (time.perf_counter() - began)))
            while not (self._store.changed.wait(_WAKES) or self._ended.is_set()):
                continue

    def _update(self) -> None:
        """Reads what is new."""
        with self._lock:
            if not self._store.changed.is_set() or self._ended.is_set():
                return
            self._store.changed.clear()
            for event in self._follower.update(self._store.transcript()):
                self._apply(event)

    def _apply(self, event: Event) -> None:
        self.recording.add(time.perf_counter() - self._start, event)
        self._builder.apply(event)
        self._events.append(event)
