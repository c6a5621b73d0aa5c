"""Reads anything that holds a run as a transcript: `read`. `recognise_run` says what an object is, for `show` too."""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, closing
from typing import Any

from msgspec import Struct

from toolcall_nb import dialects
from toolcall_nb.adapters import FORMATS, Recognised, SourceKind, recognise_source
from toolcall_nb.core.addresses import is_url
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message, ToolCall, Transcript
from toolcall_nb.errors import UsageError
from toolcall_nb.runs.paths import is_remote, suffix_of
from toolcall_nb.runs.recorded_file import read_markdown
from toolcall_nb.runs.transcript_files import FILE_FORMATS, READABLE, read_transcript_file
from toolcall_nb.sources.event_loop import iterate
from toolcall_nb.sources.http_exchange import displayed_url, fetch_events
from toolcall_nb.sources.http_responses import is_response, must_be_awaited
from toolcall_nb.sources.player import events_of_items, play_events, play_events_async
from toolcall_nb.tools.results.json_values import safe_repr

_NATIVE = "native"
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


def read(thing: Any, *, dialect: str | None = None) -> Transcript:
    """Reads everything that `toolcall_nb.show` takes, shows nothing, and returns the transcript.

    A stream is read to its end; an asynchronous one on an event loop in another thread. A file may have any known
    format, and its name may be a URL of fsspec (``s3://…``). Raises `UsageError` for a file that holds several runs,
    which `toolcall_nb.read_many` reads, and for what is not known, with the list of what is.
    """
    run = recognise_run(thing, dialect, "read")
    if isinstance(run, Transcript):
        return run
    stream = iterate(lambda: _closed_after(run)) if run.must_be_awaited else run.events()
    with closing(stream) as events:
        return Transcript.from_events(events)


def recognise_run(thing: Any, dialect: str | None = None, verb: str = "read") -> Transcript | RunStream:
    """Returns the transcript of a complete value or of a file, and for a stream, the stream; nothing of it is read yet.

    Raises `UsageError` for anything else; ``verb`` is the one for the message.
    """
    if dialect is not None and dialect != _NATIVE:
        dialects.detector(dialect)  # raises for an unknown name
    if isinstance(thing, str) and is_url(thing) and len(thing.split()) == 1:
        return RunStream(fetch_events(thing), displayed_url(thing), dialect)
    if isinstance(thing, os.PathLike) or (isinstance(thing, str) and _is_path(thing)):
        return read_transcript_file(os.path.expanduser(os.fsdecode(thing)), dialect)
    if (transcript := _value_transcript(thing, dialect, verb)) is not None:
        return transcript
    if is_response(thing):
        return RunStream(thing, _STREAM, dialect, must_be_awaited(thing))
    source = recognise_source(thing)
    whole = _whole(source, dialect, verb)
    return RunStream(source, _STREAM, dialect, _is_awaited(source)) if whole is None else whole


async def _closed_after(stream: RunStream) -> AsyncGenerator[Event, None]:
    async with aclosing(stream.events_async()) as events:
        async for event in events:
            yield event


def _is_path(text: str) -> bool:
    """Whether the text is one line that ends with a known suffix, names a file, or is a URL. Markdown rarely does."""
    if "\n" in text:
        return False
    if is_remote(text):
        return len(text.split()) == 1
    return suffix_of(text) in FILE_FORMATS or (bool(os.path.splitext(text)[1]) and os.path.isfile(text))


def _value_transcript(thing: Any, dialect: str | None, verb: str) -> Transcript | None:
    """Returns the transcript of a value of this package, or of text; None for anything else."""
    match thing:
        case Transcript():
            return thing
        case Message():
            return Transcript((thing,))
        case ToolCall():
            return Transcript((Message("assistant", (thing,)),))
        case list() | tuple() if thing and all(isinstance(each, Message) for each in thing):
            return Transcript(tuple(thing))
        case str():
            if dialect is None:
                return read_markdown(thing, "the text")
            return _read_whole(recognise_source(thing), dialect, verb)
    if not any(cls.__module__.startswith("toolcall_nb.") for cls in type(thing).__mro__):
        return None
    transcript = getattr(thing, "transcript", None)  # of a chat, a recorded run, or the handle of `toolcall_nb.show`
    return transcript if isinstance(transcript, Transcript) else None


def _whole(source: Recognised, dialect: str | None, verb: str) -> Transcript | None:
    """Returns the transcript of a complete value; None for a stream. Raises `UsageError` for anything else."""
    is_listed = isinstance(source.thing, list | tuple)
    if source.kind is SourceKind.WHOLE or (source.kind is SourceKind.STREAM and is_listed):
        return _read_whole(source, dialect, verb)
    if source.kind is not SourceKind.NOTHING or _is_awaited(source):
        return None
    if isinstance(source.thing, list | tuple | Mapping) and source.thing:  # a single chunk, or unknown items
        return _read_whole(source, dialect, verb)
    raise _unknown(source.thing, verb)


def _is_awaited(source: Recognised) -> bool:
    """Whether it is, or becomes, an asynchronous stream. Unknown context managers are not entered: clients are some."""
    if source.kind is SourceKind.NOTHING:
        return inspect.isawaitable(source.thing) or hasattr(type(source.thing), "__aiter__")
    return source.kind in (SourceKind.ASYNC_STREAM, SourceKind.ASYNC_MANAGER)


def _read_whole(source: Recognised, dialect: str | None, verb: str) -> Transcript:
    try:
        return Transcript.from_events(events_of_items(source, dialect))
    except UsageError:
        raise _unknown(source.thing, verb) from None


def _unknown(thing: Any, verb: str) -> UsageError:
    titles = "; ".join(dict.fromkeys(each.title for each in FORMATS))
    participle = "shown" if verb == "show" else "read"
    return UsageError(
        f"{safe_repr(thing):.100} ({type(thing).__qualname__}) cannot be {participle}. Give a transcript, a chat, "
        f"Markdown, a file ({', '.join(READABLE)}), an iterator of text, or a reply, messages or a stream of what is "
        f"known: {titles}."
    )
