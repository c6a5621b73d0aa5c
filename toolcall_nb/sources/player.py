"""Plays streams and replies of any SDK: yields their events, with the calls in their text and failures as errors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from typing import Any

from toolcall_nb.adapters import ENVELOPES, Format, SourceKind, events_of, recognise_source
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.errors import UsageError
from toolcall_nb.sources.provider_errors.translation import as_model_error
from toolcall_nb.sources.reply import Reply
from toolcall_nb.sources.sdk_streams import ItemReader, items, items_async

_STREAM = "stream"
_NAMED = re.compile(rf"([Tt])he model '{_STREAM}'")
"""Errors name the model; of a stream, only the stream is known."""

_NOTHING = "The stream gave nothing. Perhaps it was read before: that can be done once, so ask again for a new one."


def play_events(source: Any, dialect: str | None = None) -> Generator[Event, None, None]:
    """Yields the events of a stream or a complete reply.

    ``dialect`` tells how calls are written in its text. Without it, plain text may contain callouts, and the text of
    provider envelopes calls with a signature. An exception of the stream, or an item that cannot be read, gives an
    `Error` event and ends the playing. ``source`` may be a `Recognised`.
    """
    player = Player(dialect)
    try:
        for item in items(source):
            yield from player.take(item)
    except Exception as error:
        yield from player.fail(error)
        return
    yield from player.close()


async def play_events_async(source: Any, dialect: str | None = None) -> AsyncGenerator[Event, None]:
    """Yields the events of an asynchronous source, as `play_events` does."""
    player = Player(dialect)
    try:
        async for item in items_async(source):
            for event in player.take(item):
                yield event
    except Exception as error:
        for event in player.fail(error):
            yield event
        return
    for event in player.close():
        yield event


def events_of_items(source: Any, dialect: str | None = None) -> list[Event]:
    """Returns the events of a complete value: a reply, messages, the items of a stream in a list, or one item.

    ``dialect`` is that of `play_events`. Raises `UsageError` for anything else, with the item that is unknown.
    """
    recognised = recognise_source(source)
    is_whole = recognised.kind is SourceKind.WHOLE
    if is_whole and dialect is None:
        return [*events_of(recognised)]
    listed = recognised.thing if isinstance(recognised.thing, list | tuple) and not is_whole else [recognised.thing]
    if not listed:
        raise UsageError("An empty list cannot be read. Pass messages, or the items of a stream.")
    player = Player(dialect, None if is_whole else recognised.format)
    events = [event for item in listed for event in player.take(item)]
    return [*events, *player.close()]


class Player:
    """Turns items into events: `take` each item, then `close`, or `fail` with the exception that ended the stream.

    ``format`` is that of the items, if they were recognised before.
    """

    def __init__(self, dialect: str | None = None, format: Format | None = None) -> None:
        self._reader = ItemReader(format)
        self._dialect = dialect
        self._has_begun = False
        self._calls: _CallsInText | None = None
        self._left_out: Counter[str] = Counter()
        self._last_error = ""

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one item. Raises `UsageError` if it is of no known kind."""
        self._has_begun = True
        events = self._reader.take(item)
        if self._calls is None and not self._reader.is_empty:
            usual = "signature" if self._reader.format is ENVELOPES else "native"
            self._calls = _CallsInText(self._dialect or ("callout" if isinstance(item, str) else usual))
        unknown = [one for one in events if isinstance(one, ev.Diagnostic) and one.action == ev.LEFT_OUT]
        self._left_out.update(one.message for one in unknown)
        self._last_error = next((one.error_text for one in events if isinstance(one, ev.Error)), self._last_error)
        return self._noted(events if self._calls is None else self._calls.of(events))

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open; for a stream without items, an error."""
        if not self._has_begun:
            return [ev.Start(), ev.Error(_NOTHING), ev.Finish(finish_reason="error")]
        ends = self._reader.close()
        if self._calls is not None:
            ends = [*self._calls.of(ends), *self._calls.close()]
        return [*self._noted(ends), *self._note()]

    def _noted(self, events: list[Event]) -> list[Event]:
        """Inserts the note before the end of the message, if that is among the events."""
        end = next((n for n, event in enumerate(events) if isinstance(event, ev.Finish | ev.Abort)), None)
        return events if end is None else [*events[:end], *self._note(), *events[end:]]

    def _note(self) -> list[Event]:
        """Returns an error, once, that names the unknown items and their number."""
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
        """Returns the closing events with the error before the end of the message."""
        ends = self.close() if self._has_begun else [ev.Start()]
        if ends and isinstance(ends[-1], ev.Finish):
            ends.pop()
        if f"{type(error).__name__}: {error}" in self._last_error:  # an item of the stream said so, as LangGraph's do
            return [*ends, ev.Finish(finish_reason="error")]
        failure = as_model_error(error, _STREAM)
        text = _NAMED.sub(r"\1he stream", str(failure))
        return [*ends, ev.Error(text, details=failure.details), ev.Finish(finish_reason="error")]


class _CallsInText:
    """Finds the calls in the text of each assistant message; the dialect ``native`` leaves the text as it is."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._used: set[str] = set()
        self._reply: Reply | None = None

    def of(self, events: list[Event]) -> list[Event]:
        if self._dialect == "native":
            return events
        return [read for event in events for read in self._look(event)]

    def close(self) -> list[Event]:
        reply, self._reply = self._reply, None
        if reply is None:
            return []
        ends = reply.close()
        self._used.update(reply.calls)
        return ends

    def _look(self, event: Event) -> list[Event]:
        match event:
            case ev.Start():
                ends = self.close()
                self._reply = Reply(self._dialect, self._used) if event.role in (None, "assistant") else None
                return [*ends, event]
            case ev.Finish() | ev.Abort() | ev.StartStep() | ev.FinishStep() | ev.Error():
                return [*(self._reply.close() if self._reply is not None else ()), event]
            case _:
                return [*self._reply.take(event)] if self._reply is not None else [event]
