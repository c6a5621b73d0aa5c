"""Where a turn stands."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator

from toolcall_nb.chat.meter import Meter
from toolcall_nb.chat.watch import ToolWatch
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.models.reply import Reply

__all__ = ["Turn"]


class Turn:
    """One prompt and all that it leads to, as far as it has come.

    ``watch`` follows its tools. ``events`` gives the turn's own stream as long as somebody has it.
    """

    def __init__(self, watch: ToolWatch) -> None:
        self.watch = watch
        self.events: Callable[[], Generator[Event, None, None] | None] = lambda: None
        self.thread: threading.Thread | None = None
        self.reply: Reply | None = None
        self.began = False
        self.ended = False
        self.meter = Meter()

    def note(self, event: Event) -> None:
        """One more event of the answer."""
        self.began = True
        self.ended = isinstance(event, ev.Finish | ev.Abort)

    def closing(self, reason: str) -> list[Event]:
        """What ends the turn here: nothing where it has ended."""
        if self.ended:
            return []
        held = [*self.watch.missed(), *(self.reply.close() if self.reply is not None else ())]
        self.ended = True
        return [*([] if self.began else [ev.Start()]), *held, *self.told(), ev.Abort(reason=reason)]

    def told(self) -> list[Event]:
        """The metadata, for a message that does not end with ``finish``."""
        metadata = self.meter.metadata
        return [ev.MessageMetadata(metadata)] if metadata else []
