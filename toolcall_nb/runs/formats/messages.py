"""Files whose records are messages: `MESSAGES`.

A record is a conversation, or an object that contains one: the body of a request (``messages``, ``contents``,
``input``), a request with its response, a line for fine-tuning, a history (``traj``, ``conversations``). Each of them
is a run. Records that are single messages, calls or results make one run together. The messages are those of any
provider that `toolcall_nb.adapters` reads, or ShareGPT's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from toolcall_nb.adapters import format_of_whole
from toolcall_nb.core.events import Diagnostic
from toolcall_nb.core.sdk_objects import get
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.runs.formats.base import RecordedRun, TraceFormat
from toolcall_nb.runs.formats.message_bodies import has_conversation, read_conversation
from toolcall_nb.runs.formats.message_lines import is_message_line, read_lines

_IDS = ("id", "custom_id", "trace_id", "thread_id", "session_id", "conversation_id", "task_id", "index")
_REPLIES = (
    *("anthropic", "bedrock", "cohere", "google", "google-interactions", "mistral", "ollama", "openai-chat"),
    "openai-responses",
)
"""The names of the formats of which a whole thing is a reply."""
_LOOK_AT = 4


def _recognises(records: Sequence[Any]) -> bool:
    return any(
        is_message_line(record) or (_is_conversation(record) and not _is_chunk(record))
        for record in _flattened(records)
    )


def _is_chunk(record: Any) -> bool:
    """Whether the record is a reply that is also a chunk of a stream, as Google's are."""
    provider = format_of_whole(record)
    return provider is not None and provider.is_item(record) and not has_conversation(record)


def _is_conversation(record: Any) -> bool:
    return has_conversation(record) or format_of_whole(record) is not None


def _is_reply(record: Any) -> bool:
    """Whether the record is a provider's whole reply, not one of the messages of a conversation."""
    provider = format_of_whole(record)
    return provider is not None and provider.name in _REPLIES and not is_message_line(record)


def _flattened(records: Iterable[Any]) -> Iterator[Any]:
    """Yields the records; for a list of conversations or of replies, each of them."""
    for record in records:
        first = record[:_LOOK_AT] if isinstance(record, list) else []
        are_bodies = any(has_conversation(item) and not is_message_line(item) for item in first)
        if are_bodies or any(isinstance(item, list) for item in first) or (first and all(map(_is_reply, first))):
            yield from record
        else:
            yield record


def _read(records: Iterable[Any]) -> Iterator[RecordedRun]:
    waiting: RecordedRun | None = None  # until it is known that it is not the last one
    before: list[Any] = []
    aside: list[Any] = []
    for run, record in _runs(records):
        if run is None:
            aside.append(record)
            continue
        if waiting is not None:
            yield _with_records(waiting, before)
        waiting, before, aside = run, aside, []
    if waiting is None and aside:
        waiting = RecordedRun(id="1", transcript=Transcript())
    if waiting is not None:
        yield _with_records(waiting, [*before, *aside])


def _with_records(run: RecordedRun, records: list[Any]) -> RecordedRun:
    """Returns the run with the records of the file that are no conversation."""
    if not records:
        return run
    what = "1 record of the file holds" if len(records) == 1 else f"{len(records)} records of the file hold"
    diagnostic = Diagnostic(f"{what} no messages.", "See the run's `extra`.")
    transcript = replace(run.transcript, diagnostics=(*run.transcript.diagnostics, diagnostic))
    return replace(run, transcript=transcript, extra={**run.extra, "records": records})


def _runs(records: Iterable[Any]) -> Iterator[tuple[RecordedRun | None, Any]]:
    """Yields runs, and None with each record that holds no messages."""
    lines: list[Any] = []
    run_ids = _RunIds()
    for record in _flattened(records):
        if is_message_line(record):
            lines.append(record)
        elif _is_conversation(record):
            if lines:
                yield run_ids.put(read_lines(lines), {}), None
                lines = []
            transcript, extra = read_conversation(record)
            yield run_ids.put(RecordedRun(id="", transcript=transcript, extra=extra), record), None
        else:
            yield None, record
    if lines:
        yield run_ids.put(read_lines(lines), {}), None


class _RunIds:
    """Gives each run of a file an id of its own: the record's, or the number of the run."""

    def __init__(self) -> None:
        self._number = 0
        self._taken: dict[str, int] = {}

    def put(self, run: RecordedRun, record: Any) -> RecordedRun:
        """Returns the run with its id, and with its title if the record has one."""
        self._number += 1
        fields = record if isinstance(record, Mapping) else {}
        ids = (fields.get(name) for name in _IDS)
        run_id = next((str(each) for each in ids if isinstance(each, str | int) and each != ""), str(self._number))
        count = self._taken[run_id] = self._taken.get(run_id, 0) + 1
        return replace(run, id=run_id if count == 1 else f"{run_id}-{count}", title=get(fields, "title", str) or "")


MESSAGES = TraceFormat(
    "messages", "lists of messages: requests, histories, fine-tuning data (JSON or JSON lines)", _recognises, _read
)
