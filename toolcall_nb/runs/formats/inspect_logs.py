"""Logs of Inspect: `INSPECT`.

A record is a log, ``{version, status, eval, samples: [...]}``; each sample is a run. An ``.eval`` file is a zip
archive, whose records are its members, ``{member, content}``: ``header.json``, and one for each sample. A sample's
``messages`` are the conversation; its ``events`` add times, usage, and the calls of agents that ran inside a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolcall_nb.core.events import LEFT_OUT, Diagnostic, Object
from toolcall_nb.core.sdk_objects import as_mapping, get, nonempty
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.runs.formats.base import RecordedRun, TraceFormat
from toolcall_nb.runs.formats.inspect_events import SampleEvents
from toolcall_nb.runs.formats.inspect_messages import SampleMessages, with_attachments
from toolcall_nb.runs.run_facts import assemble_all
from toolcall_nb.runs.timestamps import parse_timestamp

_HEADERS = ("header.json", "_journal/start.json")

_READ = frozenset({"messages", "events", "attachments", "transcript", "output", "message_pool", "call_pool"})
"""The fields of a sample that are read, or repeat what is read."""


def _recognises(records: Sequence[Any]) -> bool:
    return any(_is_log(record) or (_member(record) in _HEADERS and _is_log(record["content"])) for record in records)


def _is_log(record: Any) -> bool:
    about = get(record, "eval", Mapping)
    return about is not None and "task" in about and any(name in record for name in ("status", "plan", "samples"))


def _member(record: Any) -> str | None:
    """Returns the name of a member of an archive; None for other records."""
    return get(record, "member", str) if "content" in as_mapping(record) else None


def _read(records: Iterable[Any]) -> Iterator[RecordedRun]:
    header: Object = {}
    waits = False  # for a sample of the log whose header was read
    for record in records:
        member = _member(record)
        log = as_mapping(record["content"] if member is not None else record)
        if member is None or (member in _HEADERS and not header):
            if waits:
                yield _empty_run(header)
            header = {name: value for name, value in log.items() if name not in ("samples", "reductions")}
            samples = get(log, "samples", list) or []
            yield from (_run(as_mapping(sample), header) for sample in samples)
            waits = not samples
        elif member.startswith("samples/"):
            yield _run(log, header)
            waits = False
    if waits:
        yield _empty_run(header)


def _empty_run(header: Object) -> RecordedRun:
    told = Diagnostic("The log has no samples.", "Its header is in the run's `extra`.")
    transcript = Transcript(diagnostics=(told,))
    return RecordedRun(id=_log_id(header), transcript=transcript, title=_title(header), extra=header)


def _log_id(header: Mapping[str, Any]) -> str:
    about = as_mapping(header.get("eval"))
    return next((found for name in ("eval_id", "run_id", "task_id") if (found := nonempty(about, name))), "log")


def _title(header: Mapping[str, Any]) -> str:
    return nonempty(header.get("eval"), "task") or ""


def _run(sample: Mapping[str, Any], header: Object) -> RecordedRun:
    attachments = as_mapping(sample.get("attachments"))
    events = SampleEvents(with_attachments(_events_of(sample), attachments))
    messages = SampleMessages(events)
    given = get(sample, "messages", list)
    if given is None:
        text = sample.get("input")
        given = text if isinstance(text, list) else [{"role": "user", "content": text}] if text else []
    for message in given:
        messages.take(with_attachments(message, attachments))
    messages.finish(as_mapping(sample.get("model_usage")))
    if error := nonempty(sample.get("error"), "message"):
        messages.items.error(error, sample["error"])
    facts = messages.items.facts
    if events.unread:
        kinds = ", ".join(f"{kind} {count}" for kind, count in events.unread.most_common(20))
        facts.problem(f"{events.unread.total()} events have no place in a transcript ({kinds}).", LEFT_OUT)
    agents = messages.agents()
    transcript = assemble_all(messages.items.close(), facts, agents)
    total = get(sample, "total_time", (int, float))
    return RecordedRun(
        id=f"{sample.get('id', '')!s:.200}_epoch_{sample.get('epoch', 1)!s:.20}",
        transcript=transcript,
        title=_title(header),
        began=facts.began if (began := parse_timestamp(sample.get("started_at"))) is None else began,
        seconds=float(total) if total is not None and 0 <= total < 1e12 else facts.seconds,
        extra={**header, "sample": {name: value for name, value in sample.items() if name not in _READ}},
    )


def _events_of(sample: Mapping[str, Any]) -> list[Any]:
    """Returns the events; in the oldest logs, they are in ``transcript``."""
    return get(sample, "events", list) or get(sample.get("transcript"), "events", list) or []


INSPECT = TraceFormat("inspect", "logs of Inspect (.eval, .json)", _recognises, _read)
