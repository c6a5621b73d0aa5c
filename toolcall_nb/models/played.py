"""What people hold, played: its events as they come, with the calls in its text, and what fails as an error in them."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Generator
from typing import Any

from toolcall_nb import events as ev
from toolcall_nb.adapters import ENVELOPES, format_of_item
from toolcall_nb.events import Event
from toolcall_nb.models.held import Reader, items, items_async
from toolcall_nb.models.reply import Reply
from toolcall_nb.models.trouble import as_model_error

__all__ = ["Player", "played", "played_async"]

_STREAM = "stream"
_NAMED = re.compile(rf"([Tt])he model '{_STREAM}'")
"""Of the model that is behind a stream only the stream is known."""

_NOTHING = "The stream gave nothing. Perhaps it was read before: that can be done once, so ask again for a new one."


def played(thing: Any, dialect: str | None = None) -> Generator[Event, None, None]:
    """The events of a stream, or of a whole reply.

    ``dialect`` says how calls are written in its text; without it a stream of plain text may have callouts, and the
    text of provider envelopes calls with a signature. What the
    stream raises, and what cannot be read in it, is an `Error` event, after which it is over.
    """
    player = Player(dialect)
    try:
        for item in items(thing):
            yield from player.take(item)
    except Exception as error:
        yield from player.fail(error)
        return
    yield from player.close()


async def played_async(thing: Any, dialect: str | None = None) -> AsyncGenerator[Event, None]:
    """The same of what must be awaited."""
    player = Player(dialect)
    try:
        async for item in items_async(thing):
            for event in player.take(item):
                yield event
    except Exception as error:
        for event in player.fail(error):
            yield event
        return
    for event in player.close():
        yield event


class Player:
    """From items to events: `take` each, then `close`, or `fail` with what was raised instead of the rest."""

    def __init__(self, dialect: str | None = None) -> None:
        self._reader = Reader()
        self._dialect = dialect
        self._calls: _CallsInText | None = None

    def take(self, item: Any) -> list[Event]:
        """The events of one item. Raises `UsageError` for what is none."""
        if self._calls is None:
            self._calls = _CallsInText(self._dialect or _dialect_of(item))
        return self._calls.of(self._reader.take(item))

    def close(self) -> list[Event]:
        """The ends of what is open; of a stream without a single item, that it was one."""
        if self._calls is None:
            return [ev.Start(), ev.Error(_NOTHING), ev.Finish(finish_reason="error")]
        return [*self._calls.of(self._reader.close()), *self._calls.close()]

    def fail(self, error: BaseException) -> list[Event]:
        """The same with an error, which stands in the message and not after it."""
        ends = self.close() if self._calls is not None else [ev.Start()]
        if ends and isinstance(ends[-1], ev.Finish):
            ends.pop()
        known = as_model_error(error, _STREAM)
        text = _NAMED.sub(r"\1he stream", str(known))
        return [*ends, ev.Error(text, details=known.details), ev.Finish(finish_reason="error")]


def _dialect_of(item: Any) -> str:
    """How calls are written in the text of a stream with such items, where nobody says so."""
    if isinstance(item, str):
        return "callout"
    return "signature" if format_of_item(item) is ENVELOPES else "native"


class _CallsInText:
    """Looks for the calls in the text of each message of the assistant; ``native`` leaves it as it is."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._used: set[str] = set()
        self._reply: Reply | None = None

    def of(self, events: list[Event]) -> list[Event]:
        if self._dialect == "native":
            return events
        return [found for event in events for found in self._look(event)]

    def close(self) -> list[Event]:
        reply, self._reply = self._reply, None
        return reply.close() if reply is not None else []

    def _look(self, event: Event) -> list[Event]:
        match event:
            case ev.Start():
                ends = self.close()
                self._reply = Reply(self._dialect, self._used) if event.role in (None, "assistant") else None
                return [*ends, event]
            case ev.Finish() | ev.Abort() | ev.StartStep() | ev.FinishStep() | ev.Error():
                return [*(self._reply.close() if self._reply is not None else ()), event]
            case _:
                return self._reply.take(event) if self._reply is not None else [event]
