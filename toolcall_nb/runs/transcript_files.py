"""Reads and writes the files that hold a transcript: `read_file`, `read_transcript_file`, `read_events`, `write_file`.

The table `FILE_FORMATS` says which suffixes are read and written, and how. It serves `show`, ``%toolchat load``,
``replay`` and ``save``, and the command line. `toolcall_nb.adapters` recognises by its content what a JSON file holds:
a provider's reply, messages, chunks of a stream.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from toolcall_nb.core.events import Event, to_dict
from toolcall_nb.core.json_text import from_extended_json, json_text
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.errors import UsageError, WireError
from toolcall_nb.markdown.front_matter import FORMAT_VERSION, describe_newer_version, read_format_version
from toolcall_nb.wire import json_objects

__all__ = [
    *("FILE_FORMATS", "READABLE", "WRITABLE", "FileFormat", "check_writable", "has_known_suffix"),
    *("read_events", "read_file", "read_markdown", "read_transcript_file", "write_file"),
]

_Reader: TypeAlias = Callable[[str, str], Any]
"""Takes a file's text, and its name for messages. Returns a transcript, a JSON value or a list of JSON values."""
_Writer: TypeAlias = Callable[[Transcript], str]


class FileFormat(NamedTuple):
    """The functions that read and write files with one suffix; None if they are not read or not written."""

    read: _Reader | None
    write: _Writer | None


def read_file(path: Path) -> Any:
    """Reads a transcript from ``.md``, a JSON value from ``.json``, and a list of JSON values from other files.

    Raises `UsageError` for a file with an unknown suffix, and for one that cannot be read, with the place.
    """
    known = FILE_FORMATS.get(path.suffix.lower())
    if known is None or known.read is None:
        raise UsageError(f"{path} cannot be read as a transcript: the name must end with {_listed(READABLE)}.")
    try:
        return known.read(path.read_bytes().decode("utf-8-sig"), f"{path}")
    except UsageError:
        raise
    except (OSError, ValueError) as error:  # a ValueError: bytes that are not UTF-8, a NUL in the name
        raise UsageError(f"{path} cannot be read: {_reason(error)}") from None


def read_transcript_file(path: Path) -> Transcript:
    """Reads a file as a transcript. Raises `UsageError` as `read_file` does, and for JSON that holds nothing known."""
    content = read_file(path)
    return content if isinstance(content, Transcript) else Transcript.from_events(_events_of(content, path))


def read_events(path: Path) -> Iterable[Event]:
    """Reads a file as events: those of the stream that it holds, or of its transcript."""
    content = read_file(path)
    return content.events() if isinstance(content, Transcript) else _events_of(content, path)


def write_file(transcript: Transcript, path: Path) -> None:
    """Writes the transcript in the format of the suffix. Only ``.md`` keeps the transcript's own metadata.

    Raises `UsageError` for a suffix that is not written, for a file that a newer toolcall_nb wrote, and for a path that
    cannot be written.
    """
    write = check_writable(path)
    try:
        if path.exists() and (version := read_format_version(path.read_text("utf-8-sig", "replace"))) > FORMAT_VERSION:
            raise UsageError(
                f"{path} is of {describe_newer_version(version)}. It was left as it is: save under another name."
            )
        path.write_text(write(transcript), "utf-8", "replace")
    except UsageError:
        raise
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be written: {_reason(error)}") from None


def read_markdown(text: str, place: str) -> Transcript:
    """Reads a transcript. If a newer toolcall_nb wrote it, prints a line to standard error that names ``place``."""
    if (version := read_format_version(text)) > FORMAT_VERSION:
        print(f"toolcall_nb: {place} is of {describe_newer_version(version)}.", file=sys.stderr)
    return Transcript.from_markdown(text)


def check_writable(path: Path) -> _Writer:
    """Returns the function that writes such a file. Raises `UsageError`, with the suffixes, if there is none."""
    known = FILE_FORMATS.get(path.suffix.lower())
    if known is None or known.write is None:
        raise UsageError(f"{path} cannot be written as a transcript: the name must end with {_listed(WRITABLE)}.")
    return known.write


def has_known_suffix(name: str) -> bool:
    """Whether the name ends with a suffix that is read or written."""
    return Path(name).suffix.lower() in FILE_FORMATS


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _listed(suffixes: tuple[str, ...]) -> str:
    return f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"


def _events_of(content: Any, path: Path) -> list[Event]:
    from toolcall_nb.models.player import events_of_items  # not needed for Markdown, and not quick to import

    try:
        return events_of_items(content)
    except UsageError:
        raise UsageError(
            f"{path} holds no transcript: neither a reply, nor messages, nor a stream of a format that is known here."
        ) from None


# Reading ------------------------------------------------------------------------------------------------------


def _read_json(text: str, place: str) -> Any:
    try:
        return from_extended_json(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place} is no JSON: {error}") from None


def _read_json_lines(text: str, place: str) -> list[Any]:
    lines = enumerate(text.split("\n"), 1)
    return [_read_json(line, f"{place}, line {number},") for number, line in lines if line.strip()]


def _read_sse(text: str, place: str) -> list[Any]:
    """Reads the data of server-sent events, without the one that ends the stream."""
    try:
        return json_objects(text.encode())
    except WireError as error:
        raise UsageError(f"{place}, {error}") from None


# Writing ------------------------------------------------------------------------------------------------------


def _to_markdown(transcript: Transcript) -> str:
    return transcript.to_markdown(versioned=True)


def _to_json(transcript: Transcript) -> str:
    """Writes chunks of the AI SDK's UI message stream, which read back as the same messages."""
    chunks = json_text([to_dict(event) for event in transcript.events()])
    return msgspec.json.format(chunks, indent=2) + "\n"


def _to_json_lines(transcript: Transcript) -> str:
    """Writes the same chunks, one a line."""
    return "".join(f"{json_text(to_dict(event))}\n" for event in transcript.events())


def _to_html_page(transcript: Transcript) -> str:
    from toolcall_nb.render import to_html

    return to_html(transcript, page=True)


FILE_FORMATS: Mapping[str, FileFormat] = {
    ".md": FileFormat(read_markdown, _to_markdown),
    ".json": FileFormat(_read_json, _to_json),
    ".jsonl": FileFormat(_read_json_lines, _to_json_lines),
    ".sse": FileFormat(_read_sse, None),
    ".html": FileFormat(None, _to_html_page),
}
"""The formats by suffix, in lower case."""

READABLE = tuple(suffix for suffix, known in FILE_FORMATS.items() if known.read is not None)
WRITABLE = tuple(suffix for suffix, known in FILE_FORMATS.items() if known.write is not None)
