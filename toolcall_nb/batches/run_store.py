"""Files in which the runs of a batch are kept: `FolderStore`, a file each, or `FileStore`, one file for all.

Both hold recordings as `toolcall_nb.core.recording` describes them, without secrets. The header of each says which run
it is: its key, and how it ended. So a later batch finds the runs that were made (``finished``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from toolcall_nb.batches.run_jobs import RunJob
from toolcall_nb.core.events import Object
from toolcall_nb.core.files import check_regular, open_regular, replaced_file
from toolcall_nb.core.json_text import read_json
from toolcall_nb.core.recording import Recording, is_recording_header
from toolcall_nb.errors import UsageError
from toolcall_nb.redaction.masked_recording import masked_recording
from toolcall_nb.redaction.registered_secrets import saved_text
from toolcall_nb.runs.paths import describe_error
from toolcall_nb.runs.recorded_file import RecordedFile
from toolcall_nb.runs.run_index import RunEntry, entry_of
from toolcall_nb.threads.file_lock import FileLock

_SUFFIX = ".jsonl"
_DONE = "done"
_HEADER = b'{"t":0.0,"type":"data-recording",'
"""The beginning of each run in a file."""
_NO_WORD = re.compile(r"[^A-Za-z0-9]+")


class FolderStore:
    """A folder with a file for each run. A file appears when it is complete. Only one thread uses a store."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder).expanduser()
        self._entries: dict[str, RunEntry] = {}
        self._paths: dict[str, Path] = {}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"The folder {self._folder} cannot be made: {error}.") from None

    def finished(self, keys: Collection[str]) -> dict[str, RunEntry]:
        """Returns the runs with these keys that have an answer. Runs that failed are not among them."""
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            try:
                with open_regular(path) as file:
                    header = _run_header(file.readline())
            except OSError:
                continue
            key = f"{header.get('id')}"
            if key in keys:
                self._paths[key] = path
                if header.get("state") == _DONE:
                    self._entries[key] = entry_of(str(path), 0, next(RecordedFile(str(path)).runs()))
        return dict(self._entries)

    def write(self, job: RunJob, recording: Recording, error: str) -> RunEntry:
        """Writes a run, in the place of an earlier one with the same key. Raises `UsageError` if it cannot."""
        path = self._paths.get(job.key) or self._folder / _file_name(job)
        try:
            with replaced_file(path) as file:  # a crash leaves the whole file, or none
                file.write(_run_lines(job, recording, error))
        except OSError as problem:
            raise UsageError(f"{path} cannot be written: {problem}.") from None
        self._paths[job.key] = path
        entry = entry_of(str(path), 0, next(RecordedFile(str(path)).runs()))
        self._entries[job.key] = entry
        return entry

    def close(self, keys: Sequence[str]) -> dict[str, RunEntry]:
        """Returns all runs with these keys that there are, in this order."""
        return {key: self._entries[key] for key in keys if key in self._entries}

    def release(self) -> None:
        """Does nothing: each run has a file of its own, and batches can share the folder."""


class _Stretch(NamedTuple):
    """The bytes of a run in the file."""

    start: int
    end: int


class FileStore:
    """One file with all runs, one after the other. `close` puts them into the order of the batch.

    A run whose writing was cut off is removed. The runs of other batches stay, behind those of this one. A collection
    that was read before `close` changed the order says so when it is read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).expanduser()
        if self._path.suffix != _SUFFIX:
            raise UsageError(
                f"The file of run_many is JSON lines, so its name ends with {_SUFFIX}, but is {path!s:.200}."
            )
        self._stretches: dict[str, _Stretch] = {}
        self._entries: dict[str, RunEntry] = {}
        self._is_done: dict[str, bool] = {}
        self._size = 0
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(
                self._path,
                f"{self._path} is in use by another run_many, which would lose runs. Wait until that has ended, or "
                "give another file.",
            )
            try:
                self._scan()
            except (OSError, UsageError):
                self._lock.release()
                raise
        except OSError as error:
            raise UsageError(f"{self._path} cannot be used: {describe_error(error)}.") from None

    def finished(self, keys: Collection[str]) -> dict[str, RunEntry]:
        """Returns the runs with these keys that have an answer. Runs that failed are not among them."""
        if not self._stretches:
            return {}
        by_start = {stretch.start: key for key, stretch in self._stretches.items()}
        starts = sorted(self._starts)
        for number, run in enumerate(RecordedFile(str(self._path)).runs()):
            key = by_start.get(starts[number], "")
            if key in keys and self._is_done[key]:
                self._entries[key] = entry_of(str(self._path), number, run)
        return dict(self._entries)

    def write(self, job: RunJob, recording: Recording, error: str) -> RunEntry:
        """Adds a run to the end of the file. Raises `UsageError` if it cannot be written."""
        content = _run_lines(job, recording, error)
        try:
            with self._path.open("ab") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as problem:
            with suppress(OSError):  # a disk that is full has taken a part
                os.truncate(self._path, self._size)
            raise UsageError(f"{self._path} cannot be written: {problem}.") from None
        self._starts.append(self._size)
        self._stretches[job.key] = _Stretch(self._size, self._size + len(content))
        self._size += len(content)
        run = replace(_read_run(content), path=str(self._path))
        entry = entry_of(str(self._path), len(self._starts) - 1, run)
        self._entries[job.key] = entry
        return entry

    def close(self, keys: Sequence[str]) -> dict[str, RunEntry]:
        """Writes the file in the order of ``keys`` if it has another, and returns these runs."""
        ordered = [key for key in keys if key in self._stretches]
        others = [key for key in self._stretches if key not in {*keys}]
        wanted = [self._stretches[key].start for key in (*ordered, *others)]
        if wanted != self._starts:
            try:
                with self._path.open("rb") as file, replaced_file(self._path) as new:
                    for key in (*ordered, *others):
                        start, end = self._stretches[key]
                        file.seek(start)
                        new.write(file.read(end - start))
            except OSError as problem:
                raise UsageError(f"{self._path} cannot be written: {problem}.") from None
        return {
            key: replace(self._entries[key], number=number)
            for number, key in enumerate(ordered)
            if key in self._entries
        }

    def release(self) -> None:
        """Lets other batches use the file."""
        self._lock.release()

    def _scan(self) -> None:
        """Finds the runs of the file, and removes one at its end whose writing was cut off."""
        self._starts: list[int] = []
        if not self._path.exists():
            return
        check_regular(self._path)
        for stretch, header, is_whole in self._runs():
            if not is_whole:
                break
            key = str(header.get("id"))
            self._starts.append(stretch.start)
            self._stretches[key] = stretch  # a later run with the same key counts
            self._is_done[key] = header.get("state") == _DONE
            self._size = stretch.end
        if self._size < self._path.stat().st_size:
            os.truncate(self._path, self._size)

    def _runs(self) -> Iterator[tuple[_Stretch, Object, bool]]:
        """Yields the bytes of each run, its header, and whether all of its lines are there."""
        start = position = count = 0
        header: Object = {}
        with self._path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n") and (position or line[: len(_HEADER)] == _HEADER[: len(line)]):
                    break  # its writing was cut off
                next_header = _run_header(line)
                if next_header:
                    if header:
                        yield _Stretch(start, position), header, True
                    start, count, header = position, 0, next_header
                else:
                    count += 1
                    if not header or count > header.get("lines", count):
                        raise self._foreign()
                position += len(line)
        if header:
            yield _Stretch(start, position), header, count == header.get("lines")

    def _foreign(self) -> UsageError:
        return UsageError(f"{self._path} holds something else than the runs of a batch. Give another file.")


def _run_lines(job: RunJob, recording: Recording, error: str) -> bytes:
    """Returns the lines of the recording without secrets, with a header that says which run it is."""
    recording.run = {
        "id": job.key,
        "title": f"{job.title} · {job.model_name} · {job.number}",
        "model": job.model_name,
        "number": job.number,
        "state": "error" if error else _DONE,
        **({"error": error} if error else {}),
    }
    kept, _ = masked_recording(recording)
    _, *lines = kept.lines()
    lines = [line for line in lines if not _run_header(line.encode("utf-8", "replace"))]  # a model may imitate a header
    kept.run = {**kept.run, "id": job.key, "lines": len(lines)}
    return "".join([next(kept.lines()), *lines]).encode("utf-8", "replace")


def _read_run(content: bytes) -> Any:
    from toolcall_nb.runs.formats.recordings import RECORDINGS

    return next(RECORDINGS.read(map(_read_line, content.splitlines())))


def _read_line(line: bytes) -> Any:
    """Reads a line of a recording, in which a delta may end with half a character."""
    return read_json(line.decode("utf-8", "replace"))


def _run_header(line: bytes) -> Object:
    """Returns the fields of a run's header; nothing for any other line."""
    if b'"data-recording"' not in line:
        return {}
    try:
        record = _read_line(line)
    except (ValueError, RecursionError):
        return {}
    header = record["data"].get("run") if is_recording_header(record) else None
    return header if isinstance(header, dict) else {}


def _file_name(job: RunJob) -> str:
    words = [saved_text(job.title)[:40], saved_text(job.model_name)[:30], f"{job.number}", job.key[:8]]
    return "-".join(filter(None, (_NO_WORD.sub("-", word).strip("-") for word in words))) + _SUFFIX
