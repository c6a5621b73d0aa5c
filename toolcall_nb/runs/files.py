"""The files that hold a transcript: one table says which suffix is read and written, and how.

`FORMATS` is that table; `read_file`, `read_transcript` and `write_file` serve `show`, ``%toolchat load``, ``replay``
and ``save``, and the command line. Which JSON it is (a provider's reply, messages, chunks of a stream) is told by its
content, in `toolcall_nb.adapters`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from toolcall_nb.core.events import Event, to_dict
from toolcall_nb.core.json_text import from_extended, json_text
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.errors import UsageError, WireError
from toolcall_nb.markdown.front_matter import FORMAT_VERSION, describe_newer_version, read_format_version
from toolcall_nb.wire import json_objects

__all__ = [
    *("FORMATS", "READABLE", "WRITABLE", "FileFormat", "check_readable", "check_writable"),
    *("has_known_suffix", "read_events", "read_file", "read_markdown", "read_transcript", "write_file"),
]

Reader: TypeAlias = Callable[[str, str], Any]
"""Takes a file's text and how messages name the file. Returns a transcript, a JSON value or a list of JSON values."""
Writer: TypeAlias = Callable[[Transcript], str]


class FileFormat(NamedTuple):
    """How files with one suffix are read and written; None where they are not."""

    read: Reader | None
    write: Writer | None


def read_file(path: Path) -> Any:
    """Reads what `show` takes: a transcript from ``.md``, a JSON value from ``.json``, else a list of JSON values.

    Raises `UsageError` for a file that is not of a known kind or cannot be read, with the place.
    """
    read = check_readable(path)
    try:
        return read(path.read_bytes().decode("utf-8-sig"), f"{path}")
    except (OSError, ValueError) as error:  # a ValueError: bytes that are not UTF-8, a NUL in the name
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{path} cannot be read: {_reason(error)}") from None


def read_transcript(path: Path) -> Transcript:
    """Reads the file as a transcript. Raises `UsageError` as `read_file`, and for JSON that holds nothing known."""
    held = read_file(path)
    return held if isinstance(held, Transcript) else Transcript.from_events(_events_of(held, path))


def read_events(path: Path) -> Iterable[Event]:
    """Reads the file as events: those of the stream that it holds, or those of its transcript."""
    held = read_file(path)
    return held.events() if isinstance(held, Transcript) else _events_of(held, path)


def write_file(transcript: Transcript, path: Path) -> None:
    """Writes the transcript as the suffix says. Only ``.md`` keeps the transcript's own metadata (front matter).

    Raises `UsageError` for a suffix that is not written, for a file of a newer toolcall_nb, and where the path cannot
    be written.
    """
    write = check_writable(path)
    try:
        if path.exists() and (version := read_format_version(path.read_text("utf-8-sig", "replace"))) > FORMAT_VERSION:
            raise UsageError(
                f"{path} is of {describe_newer_version(version)}. It was left as it is: save under another name."
            )
        path.write_text(write(transcript), "utf-8", "replace")
    except (OSError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{path} cannot be written: {_reason(error)}") from None


def read_markdown(text: str, place: str) -> Transcript:
    """The transcript; where a newer toolcall_nb wrote it, a line on standard error says so. ``place``: whose text."""
    if (version := read_format_version(text)) > FORMAT_VERSION:
        print(f"toolcall_nb: {place} is of {describe_newer_version(version)}.", file=sys.stderr)
    return Transcript.from_markdown(text)


def check_readable(path: Path) -> Reader:
    """Returns how the file is read; raises `UsageError` with the list of what is read."""
    known = FORMATS.get(path.suffix.lower())
    if known is None or known.read is None:
        raise UsageError(f"{path} cannot be read as a transcript: the name must end with {_listed(READABLE)}.")
    return known.read


def check_writable(path: Path) -> Writer:
    """Returns how the file is written; raises `UsageError` with the list of what is written."""
    known = FORMATS.get(path.suffix.lower())
    if known is None or known.write is None:
        raise UsageError(f"{path} cannot be written as a transcript: the name must end with {_listed(WRITABLE)}.")
    return known.write


def has_known_suffix(name: str) -> bool:
    """Whether the name ends as that of a file of the table does."""
    return Path(name).suffix.lower() in FORMATS


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _listed(suffixes: tuple[str, ...]) -> str:
    return f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"


def _events_of(held: Any, path: Path) -> list[Event]:
    from toolcall_nb.models.player import events_of_items  # not needed for Markdown, and not quick to import

    try:
        return events_of_items(held)
    except UsageError:
        raise UsageError(
            f"{path} holds no transcript: neither a reply, nor messages, nor a stream of a format that is known here."
        ) from None


# Reading ------------------------------------------------------------------------------------------------------


def _json(text: str, place: str) -> Any:
    return _parsed(text, place)


def _lines(text: str, place: str) -> list[Any]:
    lines = enumerate(text.split("\n"), 1)
    return [_parsed(line, f"{place}, line {number},") for number, line in lines if line.strip()]


def _events(text: str, place: str) -> list[Any]:
    """The data of server-sent events; one that ends the stream is none of them."""
    try:
        return json_objects(text.encode())
    except WireError as error:
        raise UsageError(f"{place}, {error}") from None


def _parsed(text: str, place: str) -> Any:
    try:
        return from_extended(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place} is no JSON: {error}") from None


# Writing ------------------------------------------------------------------------------------------------------


def _to_markdown(transcript: Transcript) -> str:
    return transcript.to_markdown(versioned=True)


def _to_json(transcript: Transcript) -> str:
    """Chunks of the AI SDK's UI message stream, which read back as the same messages."""
    chunks = json_text([to_dict(event) for event in transcript.events()])
    return msgspec.json.format(chunks, indent=2) + "\n"


def _to_lines(transcript: Transcript) -> str:
    """The same chunks, one a line."""
    return "".join(f"{json_text(to_dict(event))}\n" for event in transcript.events())


def _to_page(transcript: Transcript) -> str:
    from toolcall_nb.render import to_html

    return to_html(transcript, page=True)


FORMATS: Mapping[str, FileFormat] = {
    ".md": FileFormat(read_markdown, _to_markdown),
    ".json": FileFormat(_json, _to_json),
    ".jsonl": FileFormat(_lines, _to_lines),
    ".sse": FileFormat(_events, None),
    ".html": FileFormat(None, _to_page),
}
"""By suffix, in small letters."""

READABLE = tuple(suffix for suffix, known in FORMATS.items() if known.read is not None)
WRITABLE = tuple(suffix for suffix, known in FORMATS.items() if known.write is not None)
