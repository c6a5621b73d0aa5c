"""Event logs of NVIDIA's agent toolkit in the Agent Trajectory Observability Format: `ATOF`.

A scope, such as an agent, a request to a model, or a call of a tool, has an event at its start and one at its end. They
are read as the runs of LangSmith are, which have the same fields under other names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from toolcall_nb.core.events import Object
from toolcall_nb.core.sdk_objects import as_mapping, get, nonempty
from toolcall_nb.runs.formats.base import RecordedRun, TraceFormat
from toolcall_nb.runs.formats.langsmith import LANGSMITH

_KINDS = {"agent": "chain", "llm": "llm", "tool": "tool"}


def _recognises(records: Sequence[Any]) -> bool:
    return any(_is_scope(record) for record in records)


def _is_scope(record: Any) -> bool:
    return nonempty(record, "atof_version") is not None and nonempty(record, "uuid") is not None


def _read(records: Iterable[Any]) -> Iterator[RecordedRun]:
    return LANGSMITH.read(_run(record) if _is_scope(record) else record for record in records)


def _run(event: Any) -> Object:
    """Returns an event as the first or the last report of a run."""
    is_start = get(event, "scope_category") != "end"
    data, time = ("inputs", "start_time") if is_start else ("outputs", "end_time")
    profile = as_mapping(get(event, "category_profile"))
    category = nonempty(event, "category") or "scope"
    return {
        "id": event["uuid"],
        "parent_run_id": event.get("parent_uuid"),
        "name": event.get("name"),
        "run_type": _KINDS.get(category, category),
        data: event.get("data"),
        time: event.get("timestamp"),
        "extra": {"metadata": {**profile, "ls_model_name": profile.get("model_name")}},
    }


ATOF = TraceFormat("atof", "event logs of NVIDIA's agent toolkit (ATOF)", _recognises, _read)
