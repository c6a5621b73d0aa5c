"""Reads the runs of an index again, each file once: `read_entries`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolcall_nb.errors import UsageError
from toolcall_nb.runs.formats.base import RecordedRun
from toolcall_nb.runs.recorded_file import RecordedFile
from toolcall_nb.runs.run_index import RunEntry, is_entry_of


def read_entries(entries: Iterable[RunEntry]) -> Iterator[tuple[RunEntry, RecordedRun]]:
    """Yields the entries, in their order, each with its run. A file is read once for each stretch of its runs.

    Raises `UsageError` for a file that has changed since the entries were made.
    """
    for stretch in _stretches(entries):
        source, wanted = stretch[0].source, iter(stretch)
        entry = next(wanted, None)
        for number, run in enumerate(RecordedFile(source).runs()):
            if entry is not None and number == entry.number and is_entry_of(entry, run):
                yield entry, run
                entry = next(wanted, None)
            if entry is None:
                break
        if entry is not None:
            raise UsageError(f"{source} has changed since it was read. Call read_many again.")


def _stretches(entries: Iterable[RunEntry]) -> Iterator[list[RunEntry]]:
    """Yields the entries in pieces, each of runs that follow each other in one file."""
    stretch: list[RunEntry] = []
    for entry in entries:
        if stretch and (stretch[-1].source != entry.source or stretch[-1].number >= entry.number):
            yield stretch
            stretch = []
        stretch.append(entry)
    if stretch:
        yield stretch
