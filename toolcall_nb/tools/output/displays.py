"""Collects the MIME bundles that a running tool displays, and reports their changes: `Displays`."""

from __future__ import annotations

import threading
import time

from toolcall_nb.core.call_display import with_displayed_bundles
from toolcall_nb.core.events import Json, Object
from toolcall_nb.tools.output import Preliminary

_SECONDS = 0.25
"""Seconds between two reports of what is displayed."""


class Displays:
    """The bundles that a tool has displayed, in order. They may be changed in any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._bundles: list[tuple[str | None, Object]] = []  # each with the id that an update names
        self._clear_at_next = False
        self._output: Json = None  # the last value that was yielded
        self._reported_at, self._has_news = 0.0, False

    def add(self, bundle: Object | None, display_id: str | None, *, is_update: bool) -> bool:
        """Adds a bundle, or replaces the one with this id; None keeps the id alone. False for an update of none."""
        with self._lock:
            ids = [each for each, _ in self._bundles]
            index = ids.index(display_id) if display_id and display_id in ids else None
            if is_update and index is None:
                return False
            if self._clear_at_next:
                self._bundles.clear()
                self._clear_at_next, index = False, None
            if bundle is not None and index is not None:
                self._bundles[index] = (display_id, bundle)
            elif bundle is not None or display_id:
                self._bundles.append((display_id, bundle or {}))
            self._has_news = self._has_news or bundle is not None
        return True

    def clear(self, *, wait: bool) -> None:
        """Removes all bundles; with ``wait``, when the next one is added."""
        with self._lock:
            self._clear_at_next = wait
            if not wait:
                self._bundles.clear()
                self._has_news = True

    @property
    def is_due(self) -> bool:
        """Whether the last report is long enough ago for the next one."""
        return time.monotonic() - self._reported_at >= _SECONDS

    def take_news(self) -> Preliminary | None:
        """Returns the report of what has changed since the last one; None if nothing has."""
        if not self._has_news:
            return None
        self._has_news, self._reported_at = False, time.monotonic()
        return self.preliminary(self._output)

    def preliminary(self, output: Json) -> Preliminary:
        """Returns the report of a yielded value, with what is displayed beside it."""
        self._output = output
        return Preliminary(output, self._beside(None))

    def final(self, result_display: Object | None) -> Object | None:
        """Returns the display of the call: that of its result, and what was displayed. It is not reported again."""
        self._has_news = False
        return self._beside(result_display)

    def _beside(self, result_display: Object | None) -> Object | None:
        with self._lock:
            return with_displayed_bundles(result_display, [bundle for _, bundle in self._bundles if bundle])
