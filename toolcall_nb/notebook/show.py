"""Displays any transcript, file, or reply or stream of an SDK in a cell: `show`."""

from __future__ import annotations

from typing import Any

from toolcall_nb.core.transcript import Transcript
from toolcall_nb.notebook.stream_display import ShowHandle, play, play_async, put
from toolcall_nb.runs.reading import recognise_run


def show(thing: Any, *, dialect: str | None = None) -> ShowHandle:
    """Displays something that holds a transcript. A stream is displayed as it comes, until it ends or is stopped.

    ``thing`` is one of these:

    - a transcript, a chat, a message or a tool call, Markdown;
    - a file of one run: a transcript (``.md``), messages, chunks or stages (``.json``, ``.jsonl``), a raw stream
      (``.sse``), a notebook (``.ipynb``), or the log or trace of another program;
    - a whole reply or a list of messages of any SDK that `toolcall_nb.adapters` knows, also as dictionaries;
    - an address (``http://…``) of a server's thread or stream, or a response of httpx, requests or urllib, in any wire;
    - a log of tool blocks with stages, or the events of a wire as mappings;
    - a stream of such an SDK, or the context manager that opens one, also asynchronous; an iterator of events or text.

    ``dialect`` says how calls are written in text (plain text: callouts; provider envelopes: with a signature). The
    running loop plays an asynchronous stream, also after the end of the cell; ``await show(stream)`` waits for its end.
    Raises `UsageError` for anything else. No SDK is imported.
    """
    found = recognise_run(thing, dialect, "show")
    if isinstance(found, Transcript):
        put(found)
        return ShowHandle(lambda: found)
    if found.must_be_awaited:
        return play_async(found.events_async(), found.name)
    return play(found.events(), found.name)
