"""Reads the runs of one file of any known format, one after the other: `RecordedFile`."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from msgspec.structs import replace

from toolcall_nb.adapters import FORMATS
from toolcall_nb.core.escaping import visible_line
from toolcall_nb.core.events import Diagnostic, Event
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.errors import UnknownFormatError, UsageError
from toolcall_nb.markdown.front_matter import FORMAT_VERSION, describe_newer_version, read_format_version
from toolcall_nb.runs.file_records import FileRecords
from toolcall_nb.runs.formats import TRACE_FORMATS
from toolcall_nb.runs.formats.base import RecordedRun, TraceFormat
from toolcall_nb.runs.parquet_files import PARQUET, parquet_runs
from toolcall_nb.runs.places import describe_error, open_place, suffix_of
from toolcall_nb.runs.recorded_replies import split_replies

MARKDOWN = ".md"
"""The suffix of portable Markdown."""

_SSE = ".sse"


class RecordedFile:
    """A file of runs. It is read anew each time, record by record, and never kept.

    ``dialect`` says how calls are written in a text, as `toolcall_nb.show` takes it. ``with_extra`` is false for a
    reader who does not need the ``extra`` of the runs, which may then be empty. ``problems`` are those of the last
    reading: lines and members of the file that cannot be read.
    """

    def __init__(self, place: str, dialect: str | None = None, *, with_extra: bool = True) -> None:
        self.place = place
        self._with_extra = with_extra
        self.problems: list[Diagnostic] = []
        self._dialect = dialect

    def runs(self) -> Iterator[RecordedRun]:
        """Yields the runs, with the problems of the file among the diagnostics of the run that they come before.

        Raises `UsageError` for a file that cannot be read and for one that holds nothing known, with the known formats.
        """
        with open_place(self.place) as file:
            try:
                yield from _uncollected(self._with_problems(self._runs(file)))
            except (OSError, UnicodeError) as error:
                raise UsageError(f"{self.place} cannot be read: {describe_error(error)}") from None

    def events(self) -> list[Event] | None:
        """Returns the events of the stream or the messages that the file holds.

        Returns None if it is of another format, and if it holds several streams.
        """
        if suffix_of(self.place) in (MARKDOWN, PARQUET):
            return None
        with open_place(self.place) as file:
            try:
                records = FileRecords(file, self.place, suffix_of(self.place))
                self.problems = records.problems
                replies = [] if _format_of(records) is not None else self._replies_in(records)
                return replies[0] if len(replies) == 1 else None
            except OSError as error:
                raise UsageError(f"{self.place} cannot be read: {describe_error(error)}") from None

    def _runs(self, file: IO[bytes]) -> Iterator[RecordedRun]:
        suffix = suffix_of(self.place)
        if suffix == MARKDOWN:
            yield RecordedRun(id="1", transcript=read_markdown(file.read().decode("utf-8-sig"), self.place))
            return
        if suffix == PARQUET:
            yield from parquet_runs(file, self.place)
            return
        records = FileRecords(file, self.place, suffix)
        self.problems = records.problems
        known = _format_of(records)
        if known is None:
            for number, events in enumerate(self._replies_in(records), 1):
                yield RecordedRun(id=f"{number}", transcript=Transcript.from_events(events))
        else:
            read = known.read if self._with_extra else known.read_transcripts or known.read
            yield from read(records)

    def _with_problems(self, runs: Iterator[RecordedRun]) -> Iterator[RecordedRun]:
        """Sets the path of each run, and adds the problems. One run is held back, for those of the file's end."""
        last, told = None, 0
        for run in runs:
            if last is not None:
                yield last
            last = replace(run, path=run.path or self.place, transcript=_noted(run.transcript, self.problems[told:]))
            told = len(self.problems)
        if last is not None:
            yield replace(last, transcript=_noted(last.transcript, self.problems[told:]))

    def _replies_in(self, records: FileRecords) -> list[list[Event]]:
        """Returns the events of each reply, of messages or of a stream. Raises `UsageError` for anything else."""
        from toolcall_nb.sources.player import events_of_items  # not needed for Markdown, and not quick to import

        listed = [*records]
        content = listed if records.is_list else listed[0]
        with suppress(UsageError):
            are_several = isinstance(content, list) and suffix_of(self.place) != _SSE  # that is one stream
            replies = split_replies(content) if are_several else [content]
            return [events_of_items(reply, self._dialect) for reply in replies]
        broken = f"{self.place}, {self.problems[0].message}. " if self.problems else ""
        raise UnknownFormatError(
            f"{broken}{self.place} holds no transcript: neither a reply, nor messages, nor a stream of a known format.",
            known_formats(),
        )


def read_markdown(text: str, place: str) -> Transcript:
    """Reads a transcript. If a newer toolcall_nb wrote it, prints a line to standard error that names ``place``."""
    if (version := read_format_version(text)) > FORMAT_VERSION:
        print(f"toolcall_nb: {visible_line(place)} is of {describe_newer_version(version)}.", file=sys.stderr)
    return Transcript.from_markdown(text)


def known_formats() -> list[str]:
    """Returns the titles of all formats that are read."""
    titles = [*(known.title for known in TRACE_FORMATS), *(known.title for known in FORMATS)]
    return list(dict.fromkeys(titles))


def _uncollected(runs: Iterator[RecordedRun]) -> Iterator[RecordedRun]:
    """Yields the runs, and collects no garbage while one is read.

    What is read stays, in very many small objects. The collector would go through all of them again and again, and
    that takes as long as the reading.
    """
    while True:
        with _collection_paused():
            run = next(runs, None)
        if run is None:
            return
        yield run


@contextmanager
def _collection_paused() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _format_of(records: FileRecords) -> TraceFormat | None:
    return next((known for known in TRACE_FORMATS if known.recognises(records.first)), None)


def _noted(transcript: Transcript, problems: list[Diagnostic]) -> Transcript:
    return replace(transcript, diagnostics=(*transcript.diagnostics, *problems)) if problems else transcript
