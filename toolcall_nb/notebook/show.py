"""Put a transcript that is there already into a cell."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from toolcall_nb.chat import Chat
from toolcall_nb.errors import UsageError
from toolcall_nb.events import Event
from toolcall_nb.render import mime_bundle
from toolcall_nb.transcript import Transcript

__all__ = ["show"]


def show(thing: Any) -> None:
    """Display a transcript, a chat, its Markdown, the path of a ``.md`` file, or the events of a stream.

    Raises `UsageError` for anything else.
    """
    from IPython.display import display

    bundle = mime_bundle(_transcript_of(thing))
    display(bundle, raw=True)  # type: ignore[no-untyped-call]  # IPython has no types


def _transcript_of(thing: Any) -> Transcript:
    match thing:
        case Transcript():
            return thing
        case Chat():
            return thing.transcript
        case os.PathLike():
            return _read(Path(thing))
        case str() if _is_path(thing):
            return _read(Path(thing).expanduser())
        case str():
            return Transcript.from_markdown(thing)
        case Iterable():
            return Transcript.from_events(_event(item) for item in thing)
    raise _cannot(thing)


def _is_path(text: str) -> bool:
    """One line that ends in ``.md``; Markdown that is to be shown rarely is."""
    return "\n" not in text and text.endswith(".md")


def _read(path: Path) -> Transcript:
    try:
        return Transcript.from_markdown(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def _event(item: Any) -> Event:
    if not isinstance(item, Event):
        raise _cannot(item)
    return item


def _cannot(thing: Any) -> UsageError:
    return UsageError(
        f"{thing!r:.100} cannot be shown. Give a transcript, a chat, Markdown, the path of a .md file, or the events "
        "of a stream."
    )
