"""Displays any transcript, file, or reply or stream of an SDK in a cell: `show`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolcall_nb import dialects
from toolcall_nb.adapters import FORMATS, Recognised, SourceKind, recognise_source
from toolcall_nb.chat import Chat
from toolcall_nb.core.transcript import Message, ToolCall, Transcript
from toolcall_nb.errors import UsageError
from toolcall_nb.models.over_http.exchange import displayed_url, fetch_events, is_url
from toolcall_nb.models.over_http.responses import is_response, must_be_awaited
from toolcall_nb.models.player import events_of_items, play_events, play_events_async
from toolcall_nb.notebook.stream_display import ShowHandle, play, play_async, put
from toolcall_nb.runs.transcript_files import READABLE, has_known_suffix, read_file, read_markdown
from toolcall_nb.tools.results.json_values import safe_repr

__all__ = ["show"]

_NATIVE = "native"


def show(thing: Any, *, dialect: str | None = None) -> ShowHandle:
    """Displays something that holds a transcript. A stream is displayed as it comes, until it ends or is stopped.

    ``thing`` is one of these:

    - a transcript, a chat, a message or a tool call, Markdown;
    - a file: a transcript (``.md``), messages, chunks or stages (``.json``, ``.jsonl``), a raw stream (``.sse``);
    - a whole reply or a list of messages of any SDK that `toolcall_nb.adapters` knows, also as dictionaries;
    - an address (``http://…``) of a server's thread or stream, or a response of httpx, requests or urllib, in any wire;
    - a log of tool blocks with stages, or the events of a wire as mappings;
    - a stream of such an SDK, or the context manager that opens one, also asynchronous; an iterator of events or text.

    ``dialect`` says how calls are written in text (plain text: callouts; provider envelopes: with a signature). The
    running loop plays an asynchronous stream, also after the end of the cell; ``await show(stream)`` waits for its end.
    Raises `UsageError` for anything else. No SDK is imported.
    """
    if dialect is not None and dialect != _NATIVE:
        dialects.detector(dialect)  # raises for an unknown name
    if isinstance(thing, str) and _is_address(thing):
        return play(play_events(fetch_events(thing), dialect), displayed_url(thing))
    if isinstance(thing, os.PathLike) or (isinstance(thing, str) and _is_path(thing)):
        thing = read_file(Path(thing).expanduser())
    source: Any = thing
    whole = _own_transcript(thing, dialect)
    if whole is None and not is_response(thing):
        source = recognise_source(thing)
        whole = _whole(source, dialect)
    if whole is not None:
        put(whole)
        return ShowHandle(lambda: whole)
    name = type(thing).__qualname__
    awaits = must_be_awaited(thing) if is_response(thing) else _is_awaited(source)
    return play_async(play_events_async(source, dialect), name) if awaits else play(play_events(source, dialect), name)


def _is_address(text: str) -> bool:
    """Whether the text is one word that begins as an address does."""
    return is_url(text) and len(text.split()) == 1


def _is_path(text: str) -> bool:
    """Whether the text is one line that ends with a known suffix, or names a file. Markdown rarely does."""
    return "\n" not in text and (has_known_suffix(text) or (bool(Path(text).suffix) and os.path.isfile(text)))


def _own_transcript(thing: Any, dialect: str | None) -> Transcript | None:
    """Returns the transcript of a value of this package, or of text; None for anything else."""
    match thing:
        case Transcript():
            return thing
        case Chat():
            return thing.transcript
        case Message():
            return Transcript((thing,))
        case ToolCall():
            return Transcript((Message("assistant", (thing,)),))
        case list() | tuple() if thing and all(isinstance(each, Message) for each in thing):
            return Transcript(tuple(thing))
        case str():
            return read_markdown(thing, "the text") if dialect is None else _read(recognise_source(thing), dialect)
    return None


def _whole(found: Recognised, dialect: str | None) -> Transcript | None:
    """Returns the transcript of a complete value; None for a stream. Raises `UsageError` for anything else."""
    is_listed = isinstance(found.thing, list | tuple)
    if found.kind is SourceKind.WHOLE or (found.kind is SourceKind.STREAM and is_listed):
        return _read(found, dialect)
    if found.kind is not SourceKind.NOTHING or _is_awaited(found):
        return None
    if isinstance(found.thing, list | tuple | Mapping) and found.thing:  # a single chunk, or unknown items
        return _read(found, dialect)
    raise _cannot_show(found.thing)


def _is_awaited(found: Recognised) -> bool:
    """Whether it is, or becomes, an asynchronous stream. Unknown context managers are not entered: clients are some."""
    if found.kind is SourceKind.NOTHING:
        return inspect.isawaitable(found.thing) or hasattr(type(found.thing), "__aiter__")
    return found.kind in (SourceKind.ASYNC_STREAM, SourceKind.ASYNC_MANAGER)


def _read(found: Recognised, dialect: str | None) -> Transcript:
    try:
        return Transcript.from_events(events_of_items(found, dialect))
    except UsageError:
        raise _cannot_show(found.thing) from None


def _cannot_show(thing: Any) -> UsageError:
    known = "; ".join(dict.fromkeys(known.title for known in FORMATS))
    what = f"{safe_repr(thing):.100} ({type(thing).__qualname__})"
    return UsageError(
        f"{what} cannot be shown. Give a transcript, a chat, Markdown, a file ({', '.join(READABLE)}), an iterator of "
        f"text, or a reply, messages or a stream of what is known: {known}."
    )
