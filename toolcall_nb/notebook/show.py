"""Put what is held already into a cell: a transcript, what an SDK gave, a file."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolcall_nb import dialects
from toolcall_nb.adapters import FORMATS
from toolcall_nb.adapters.recognise import Kind, kind_of
from toolcall_nb.chat import Chat
from toolcall_nb.core.transcript import Message, ToolCall, Transcript
from toolcall_nb.errors import UsageError
from toolcall_nb.models.over_http.exchange import displayed_url, fetch_events, is_url
from toolcall_nb.models.over_http.responses import is_response, must_be_awaited
from toolcall_nb.models.player import events_of_items, played, played_async
from toolcall_nb.notebook.stream_display import ShowHandle, play, play_async
from toolcall_nb.runs.transcript_files import READABLE, has_known_suffix, read_file, read_markdown
from toolcall_nb.tools.results.json_values import safe_repr

__all__ = ["put", "show"]

_NATIVE = "native"


def show(thing: Any, *, dialect: str | None = None) -> ShowHandle:
    """Display what is held already; whole things at once, streams as they come, until they end or are stopped.

    - a transcript, a chat, a message or a call of one, Markdown;
    - a file: a transcript (``.md``), messages, chunks or stages (``.json``, ``.jsonl``), a raw stream (``.sse``);
    - a whole reply, or a list of messages, of any SDK that `toolcall_nb.adapters` knows, also as dictionaries;
    - an address (``http://…``) of a server's thread or stream, a response of httpx, requests or urllib: in any wire;
    - a log of tool blocks with stages, the events of a wire as mappings;
    - a stream of such an SDK, or what must be entered to get one, also asynchronous; an iterator of events or of text.

    Text may have calls in it: ``dialect`` says how they are written (plain text: callouts; provider envelopes: with a
    signature). An asynchronous stream is
    played by the loop that runs, also after the end of the cell; ``await show(stream)`` waits for its end. Raises
    `UsageError` for anything else. Nothing is imported for it that is not there already.
    """
    if dialect is not None and dialect != _NATIVE:
        dialects.detector(dialect)  # raises for a name that is none
    if isinstance(thing, str) and _is_address(thing):
        return play(played(fetch_events(thing), dialect), displayed_url(thing))
    if isinstance(thing, os.PathLike) or (isinstance(thing, str) and _is_path(thing)):
        thing = read_file(Path(thing).expanduser())
    whole = _whole(thing, dialect) if not is_response(thing) else None
    if whole is not None:
        put(whole)
        return ShowHandle(lambda: whole)
    name = type(thing).__qualname__
    awaits = must_be_awaited(thing) if is_response(thing) else _awaits(thing)
    return play_async(played_async(thing, dialect), name) if awaits else play(played(thing, dialect), name)


def _is_address(text: str) -> bool:
    """One word that begins as an address does."""
    return is_url(text) and len(text.split()) == 1


def _is_path(text: str) -> bool:
    """One line that ends as a file's name does, or names a file; Markdown that is to be shown rarely does."""
    return "\n" not in text and (has_known_suffix(text) or (bool(Path(text).suffix) and os.path.isfile(text)))


def _whole(thing: Any, dialect: str | None) -> Transcript | None:
    """The transcript of what is there whole; None for a stream. Raises `UsageError` for what is neither."""
    match thing:
        case Transcript():
            return thing
        case Chat():
            return thing.transcript
        case Message():
            return Transcript((thing,))
        case ToolCall():
            return Transcript((Message("assistant", (thing,)),))
        case str():
            return read_markdown(thing, "the text") if dialect is None else _read(thing, dialect)
    match kind_of(thing):
        case Kind.WHOLE:
            return _read(thing, dialect)
        case Kind.NOTHING if not _awaits(thing):
            return _listed(thing, dialect)
        case _:
            return _read(thing, dialect) if isinstance(thing, list | tuple) else None


def _awaits(thing: Any) -> bool:
    """Whether it is an asynchronous stream, or will be one. What is entered must be known: clients are too."""
    if kind_of(thing) in (Kind.ASYNC_STREAM, Kind.ASYNC_MANAGER):
        return True
    return kind_of(thing) is Kind.NOTHING and (inspect.isawaitable(thing) or hasattr(type(thing), "__aiter__"))


def _listed(thing: Any, dialect: str | None) -> Transcript:
    """Of our own values, and of a single chunk."""
    if isinstance(thing, list | tuple | Mapping) and thing:
        is_ours = not isinstance(thing, Mapping) and all(isinstance(each, Message) for each in thing)
        return Transcript(tuple(thing)) if is_ours else _read(thing, dialect)
    raise _cannot(thing)


def _read(held: Any, dialect: str | None) -> Transcript:
    try:
        return Transcript.from_events(events_of_items(held, dialect))
    except UsageError:
        raise _cannot(held) from None


def put(transcript: Transcript) -> None:
    """Display a transcript as it is saved; without IPython, print it."""
    from IPython.core.getipython import get_ipython
    from IPython.display import display

    from toolcall_nb.redaction.saved_output import saved_bundle

    if get_ipython() is None:
        print(saved_bundle(transcript, include={"text/plain"})["text/plain"])
    else:
        display(saved_bundle(transcript), raw=True)  # type: ignore[no-untyped-call]  # IPython has no types


def _cannot(thing: Any) -> UsageError:
    known = "; ".join(dict.fromkeys(known.title for known in FORMATS))
    what = f"{safe_repr(thing):.100} ({type(thing).__qualname__})"
    return UsageError(
        f"{what} cannot be shown. Give a transcript, a chat, Markdown, a file ({', '.join(READABLE)}), an iterator of "
        f"text, or a reply, messages or a stream of what is known: {known}."
    )
