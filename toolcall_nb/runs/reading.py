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
from toolcall_nb.runs.places import is_remote
from toolcall_nb.runs.recorded_file import read_markdown
from toolcall_nb.runs.transcript_files import READABLE, has_known_suffix, read_transcript_file
from toolcall_nb.sources.event_loop import iterate
from toolcall_nb.sources.http_exchange import displayed_url, fetch_events
from toolcall_nb.sources.http_responses import is_response, must_be_awaited
from toolcall_nb.sources.player import events_of_items, play_events, play_events_async
from toolcall_nb.tools.results.json_values import safe_repr

_NATIVE = "native"


_STREAM = "stream"
"""The name of a stream whose model is not known: the name of a Python class would say nothing of the run."""


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
    found = recognise_run(thing, dialect, "read")
    if isinstance(found, Transcript):
        return found
    stream = iterate(lambda: _closed_after(found)) if found.must_be_awaited else found.events()
    with closing(stream) as events:
        return Transcript.from_events(events)


def recognise_run(thing: Any, dialect: str | None = None, verb: str = "read") -> Transcript | RunStream:
    """Returns the transcript of a complete value or of a file, and for a stream, the stream; nothing of it is read yet.

    Raises `UsageError` for anything else; ``verb`` is the one for the message.
    """
    if dialect is not None and dialect != _NATIVE:
        dialects.detector(dialect)  # raises for an unknown name
    if isinstance(thing, str) and _is_address(thing):
        return RunStream(fetch_events(thing), displayed_url(thing), dialect)
    if isinstance(thing, os.PathLike) or (isinstance(thing, str) and _is_path(thing)):
        return read_transcript_file(os.path.expanduser(os.fsdecode(thing)), dialect)
    if (own := _own_transcript(thing, dialect, verb)) is not None:
        return own
    if is_response(thing):
        return RunStream(thing, _STREAM, dialect, must_be_awaited(thing))
    source = recognise_source(thing)
    whole = _whole(source, dialect, verb)
    return RunStream(source, _STREAM, dialect, _is_awaited(source)) if whole is None else whole


async def _closed_after(stream: RunStream) -> AsyncGenerator[Event, None]:
    async with aclosing(stream.events_async()) as events:
        async for event in events:
            yield event


def _is_address(text: str) -> bool:
    """Whether the text is one word that begins as an address does."""
    return is_url(text) and len(text.split()) == 1


def _is_path(text: str) -> bool:
    """Whether the text is one line that ends with a known suffix, names a file, or is a URL. Markdown rarely does."""
    if "\n" in text:
        return False
    if is_remote(text):
        return len(text.split()) == 1
    return has_known_suffix(text) or (bool(os.path.splitext(text)[1]) and os.path.isfile(text))


def _own_transcript(thing: Any, dialect: str | None, verb: str) -> Transcript | None:
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
    return _held_transcript(thing)


def _held_transcript(thing: Any) -> Transcript | None:
    """Returns the transcript of a chat, of a recorded run, or of the handle of `toolcall_nb.show`."""
    if not any(cls.__module__.startswith("toolcall_nb.") for cls in type(thing).__mro__):
        return None
    held = getattr(thing, "transcript", None)
    return held if isinstance(held, Transcript) else None


def _whole(found: Recognised, dialect: str | None, verb: str) -> Transcript | None:
    """Returns the transcript of a complete value; None for a stream. Raises `UsageError` for anything else."""
    is_listed = isinstance(found.thing, list | tuple)
    if found.kind is SourceKind.WHOLE or (found.kind is SourceKind.STREAM and is_listed):
        return _read_whole(found, dialect, verb)
    if found.kind is not SourceKind.NOTHING or _is_awaited(found):
        return None
    if isinstance(found.thing, list | tuple | Mapping) and found.thing:  # a single chunk, or unknown items
        return _read_whole(found, dialect, verb)
    raise _unknown(found.thing, verb)


def _is_awaited(found: Recognised) -> bool:
    """Whether it is, or becomes, an asynchronous stream. Unknown context managers are not entered: clients are some."""
    if found.kind is SourceKind.NOTHING:
        return inspect.isawaitable(found.thing) or hasattr(type(found.thing), "__aiter__")
    return found.kind in (SourceKind.ASYNC_STREAM, SourceKind.ASYNC_MANAGER)


def _read_whole(found: Recognised, dialect: str | None, verb: str) -> Transcript:
    try:
        return Transcript.from_events(events_of_items(found, dialect))
    except UsageError:
        raise _unknown(found.thing, verb) from None


def _unknown(thing: Any, verb: str) -> UsageError:
    known = "; ".join(dict.fromkeys(known.title for known in FORMATS))
    what = f"{safe_repr(thing):.100} ({type(thing).__qualname__})"
    done = "shown" if verb == "show" else "read"
    return UsageError(
        f"{what} cannot be {done}. Give a transcript, a chat, Markdown, a file ({', '.join(READABLE)}), an iterator of "
        f"text, or a reply, messages or a stream of what is known: {known}."
    )
