"""What people hold, played: its events as they come, with the calls in its text, and what fails as an error in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from typing import Any

from toolcall_nb.adapters import ENVELOPES, events_of, format_of_item
from toolcall_nb.adapters.recognise import Kind, kind_of
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.errors import UsageError
from toolcall_nb.models.errors.translation import as_model_error
from toolcall_nb.models.reply import Reply
from toolcall_nb.models.sdk_streams import Reader, items, items_async

__all__ = ["Player", "events_of_items", "played", "played_async"]

_STREAM = "stream"
_NAMED = re.compile(rf"([Tt])he model '{_STREAM}'")
"""Of the model that is behind a stream only the stream is known."""

_NOTHING = "The stream gave nothing. Perhaps it was read before: that can be done once, so ask again for a new one."


def played(thing: Any, dialect: str | None = None) -> Generator[Event, None, None]:
    """The events of a stream, or of a whole reply.

    ``dialect`` says how calls are written in its text; without it a stream of plain text may have callouts, and the
    text of provider envelopes calls with a signature. What the stream raises, and what cannot be read in it, is an
    `Error` event, after which it is over.
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


def events_of_items(held: Any, dialect: str | None = None) -> list[Event]:
    """The events of a value that is there whole: a reply, messages, the items of a stream in a list, or one item.

    ``dialect`` is as for `played`. Raises `UsageError` for what is none of these, with the item that is not known.
    """
    is_whole = kind_of(held) is Kind.WHOLE
    if is_whole and dialect is None:
        return [*events_of(held)]
    listed = held if isinstance(held, list | tuple) and not is_whole else [held]
    if not listed:
        raise UsageError("An empty list holds nothing that can be read.")
    player = Player(dialect)
    events = [event for item in listed for event in player.take(item)]
    return [*events, *player.close()]


class Player:
    """From items to events: `take` each, then `close`, or `fail` with what was raised instead of the rest."""

    def __init__(self, dialect: str | None = None) -> None:
        self._reader = Reader()
        self._dialect = dialect
        self._calls: _CallsInText | None = None
        self._left_out: Counter[str] = Counter()

    def take(self, item: Any) -> list[Event]:
        """The events of one item. Raises `UsageError` for what is none."""
        if self._calls is None:
            self._calls = _CallsInText(self._dialect or _dialect_of(item))
        found = self._reader.take(item)
        unknown = [one for one in found if isinstance(one, ev.Diagnostic) and one.action == ev.LEFT_OUT]
        self._left_out.update(one.message for one in unknown)
        return self._noted(self._calls.of(found))

    def close(self) -> list[Event]:
        """The ends of what is open; of a stream without a single item, that it was one."""
        if self._calls is None:
            return [ev.Start(), ev.Error(_NOTHING), ev.Finish(finish_reason="error")]
        ends = self._noted([*self._calls.of(self._reader.close()), *self._calls.close()])
        return [*ends, *self._note()]

    def _noted(self, events: list[Event]) -> list[Event]:
        """The events with the note before the end of a message, if there is one among them."""
        place = next((n for n, event in enumerate(events) if isinstance(event, ev.Finish | ev.Abort)), None)
        return events if place is None else [*events[:place], *self._note(), *events[place:]]

    def _note(self) -> list[Event]:
        """What a person is told, once, of items that nothing here knows: how many, and which."""
        count = sum(self._left_out.values())
        if not count:
            return []
        left_out, self._left_out = self._left_out, Counter()
        first, *others = left_out
        what = "One item of the stream was" if count == 1 else f"{count:,} items of the stream were"
        text = f"{what} left out. {first if not others else f'The first: {first}'}"
        lines = [f"{message} ({times:,} times)" if times > 1 else message for message, times in left_out.items()]
        return [ev.Error(text, details="\n".join(lines) if others else None)]

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
