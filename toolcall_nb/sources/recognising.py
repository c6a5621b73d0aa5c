"""Recognises what holds a run in memory or at an address: `recognise_source_of_run`."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Generator, Mapping
from typing import Any

from msgspec import Struct

from toolcall_nb.adapters import Recognised, SourceKind, recognise_source
from toolcall_nb.core.addresses import is_url
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message, ToolCall, Transcript
from toolcall_nb.errors import UsageError
from toolcall_nb.sources.http_exchange import displayed_url, fetch_events
from toolcall_nb.sources.http_responses import is_response, must_be_awaited
from toolcall_nb.sources.player import events_of_items, play_events, play_events_async

_STREAM = "stream"
"""The name of a stream whose model is unknown: the name of a Python class would say nothing about the run."""


class RunStream(Struct, frozen=True):
    """A stream whose events are still to come; ``name`` is its address, or "stream".

    `events` plays it, and `events_async` plays one that ``must_be_awaited``. It can be played once.
    """

    source: Any
    name: str
    dialect: str | None = None
    must_be_awaited: bool = False

    def events(self) -> Generator[Event, None, None]:
        """Yields the events. An exception of the stream becomes an `Error` event."""
        return play_events(self.source, self.dialect)

    def events_async(self) -> AsyncGenerator[Event, None]:
        """Yields the events of a stream that must be awaited."""
        return play_events_async(self.source, self.dialect)


def is_address(thing: Any) -> bool:
    """Whether it is the URL of an answer over HTTP."""
    return isinstance(thing, str) and is_url(thing) and len(thing.split()) == 1


def recognise_source_of_run(thing: Any, dialect: str | None = None) -> Transcript | RunStream | None:
    """Returns the transcript of a complete value, and for an address or a stream, the stream; None for anything else.

    Nothing of a stream is read yet. Text is read as a reply in the dialect.
    """
    if is_address(thing):
        return RunStream(fetch_events(thing), displayed_url(thing), dialect)
    if (transcript := _value_transcript(thing)) is not None:
        return transcript
    if is_response(thing):
        return RunStream(thing, _STREAM, dialect, must_be_awaited(thing))
    source = recognise_source(thing)
    is_listed = isinstance(source.thing, list | tuple)
    is_single = isinstance(source.thing, Mapping) or is_listed  # a single chunk, or unknown items
    if isinstance(thing, str) or source.kind is SourceKind.WHOLE or (source.kind is SourceKind.STREAM and is_listed):
        return _read_whole(source, dialect)
    if source.kind is not SourceKind.NOTHING or _is_awaited(source):
        return RunStream(source, _STREAM, dialect, _is_awaited(source))
    return _read_whole(source, dialect) if is_single and source.thing else None


def _value_transcript(thing: Any) -> Transcript | None:
    """Returns the transcript of a value of this package; None for anything else."""
    match thing:
        case Transcript():
            return thing
        case Message():
            return Transcript((thing,))
        case ToolCall():
            return Transcript((Message("assistant", (thing,)),))
        case list() | tuple() if thing and all(isinstance(each, Message) for each in thing):
            return Transcript(tuple(thing))
    if not any(cls.__module__.startswith("toolcall_nb.") for cls in type(thing).__mro__):
        return None
    transcript = getattr(thing, "transcript", None)  # of a chat, a recorded run, or the handle of `toolcall_nb.show`
    return transcript if isinstance(transcript, Transcript) else None


def _is_awaited(source: Recognised) -> bool:
    """Whether it is, or becomes, an asynchronous stream. Unknown context managers are not entered: clients are some."""
    if source.kind is SourceKind.NOTHING:
        return inspect.isawaitable(source.thing) or hasattr(type(source.thing), "__aiter__")
    return source.kind in (SourceKind.ASYNC_STREAM, SourceKind.ASYNC_MANAGER)


def _read_whole(source: Recognised, dialect: str | None) -> Transcript | None:
    try:
        return Transcript.from_events(events_of_items(source, dialect))
    except UsageError:
        return None
