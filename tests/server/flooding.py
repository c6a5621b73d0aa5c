"""Shared by the tests of the server: `Flood`, a model that says much at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event


class Flood:
    """A model that says more than anybody can hold. It counts how much, and knows when it was ended."""

    name = "flood"

    def __init__(self) -> None:
        self.said = 0
        self.ended = threading.Event()

    def stream(self, messages: Sequence[Any], tools: Sequence[Any]) -> Iterator[Event]:
        try:
            yield ev.TextStart("t")
            for _ in range(1_000_000):
                yield ev.TextDelta("t", "x" * 10_000)
                self.said += 10_000
        finally:
            self.ended.set()
