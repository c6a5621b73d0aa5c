"""Files that can be shown: transcripts, messages and chunks as JSON, and raw streams of a provider."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from toolcall_nb.errors import UsageError, WireError
from toolcall_nb.markdown.front_matter import VERSION, newer, version_of
from toolcall_nb.transcript import Transcript
from toolcall_nb.wire import json_objects

__all__ = ["SUFFIXES", "read_file", "read_markdown", "write_markdown"]


def read_file(path: Path) -> Any:
    """What the file holds, for `show`: a transcript of ``.md``; else a JSON value, or a list of the lines' values.

    Raises `UsageError` for a file that cannot be read, with the place.
    """
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise UsageError(f"{path} cannot be shown: a file is {', '.join(SUFFIXES)}.")
    try:
        return read(path.read_bytes().decode("utf-8-sig"), path)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def read_markdown(text: str, place: str) -> Transcript:
    """The transcript; where a newer toolcall_nb wrote it, a line on standard error says so. ``place``: whose text."""
    if (version := version_of(text)) > VERSION:
        print(f"toolcall_nb: {place} is of {newer(version)}.", file=sys.stderr)
    return Transcript.from_markdown(text)


def write_markdown(transcript: Transcript, path: Path) -> None:
    """Save it as a file. Raises `UsageError` where there is one that a newer toolcall_nb wrote, or no way to write."""
    try:
        if path.exists() and (version := version_of(path.read_text("utf-8-sig", "replace"))) > VERSION:
            raise UsageError(f"{path} is of {newer(version)}. It was left as it is: save under another name.")
        path.write_text(transcript.to_markdown(versioned=True), "utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}") from None


def _json(text: str, path: Path) -> Any:
    return _parsed(text, f"{path}")


def _lines(text: str, path: Path) -> list[Any]:
    lines = enumerate(text.split("\n"), 1)
    return [_parsed(line, f"{path}, line {number},") for number, line in lines if line.strip()]


def _events(text: str, path: Path) -> list[Any]:
    """The data of server-sent events; one that ends the stream is none of them."""
    try:
        return json_objects(text.encode())
    except WireError as error:
        raise UsageError(f"{path}, {error}") from None


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place} is no JSON: {error}") from None


_READERS: Mapping[str, Callable[[str, Path], Any]] = {
    ".md": lambda text, path: read_markdown(text, f"{path}"),
    ".json": _json,
    ".jsonl": _lines,
    ".sse": _events,
}

SUFFIXES = tuple(_READERS)
"""How the names of such files end."""
