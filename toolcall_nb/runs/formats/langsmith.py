"""Exports of LangSmith, and event logs of NVIDIA's agent toolkit, which are like them: `LANGSMITH` and `ATOF`.

A record is a run of LangSmith (``run_type``, ``inputs``, ``outputs``), alone, in a list, with its ``child_runs``, or as
its SDK sends it: ``{post: [...], patch: [...]}``, or the bodies of ``POST /runs`` and ``PATCH /runs/ID``. All runs of a
trace are one run here. What the models and the tools did makes the conversation; other runs only group them.

In NVIDIA's Agent Trajectory Observability Format, a scope, such as an agent, a request to a model, or a call of a tool,
has an event at its start and one at its end. They are read as LangSmith's runs, whose fields have other names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolcall_nb.core.events import LEFT_OUT, Object
from toolcall_nb.core.sdk_objects import as_mapping, get, nonempty
from toolcall_nb.runs.formats.base import RecordedRun, TraceFormat
from toolcall_nb.runs.formats.langsmith_levels import Level, LoggedRun
from toolcall_nb.runs.run_facts import Agents, assemble_all

_LISTS = ("post", "patch", "runs", "child_runs")
_KEPT = ("session_name", "session_id", "tags", "extra", "status", "reference_example_id", "feedback_stats")
"""The fields of a trace's first run that are kept beside the conversation."""


def _recognises(records: Sequence[Any]) -> bool:
    return any(nonempty(each, "run_type") and nonempty(each, "id") for record in records for each in _some(record))


def _some(record: Any) -> Iterator[Any]:
    """Yields the first of the runs that a record may hold."""
    for each in record[:4] if isinstance(record, list) else [record]:
        yield each
        body = get(each, "body", Mapping)
        if body is not None and (get(each, "path", str) or "").startswith("/runs"):
            yield body
        for name in _LISTS:
            yield from (get(each, name, list) or [])[:4]


def _flattened(records: Iterable[Any]) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Yields the runs, each with the id of the run that contains it, and None with a record that holds none."""
    waiting: list[tuple[Any, str | None]] = [(record, None) for record in records]
    waiting.reverse()
    while waiting:
        record, around = waiting.pop()
        if isinstance(record, list):
            waiting += [(each, around) for each in reversed(record)]
            continue
        fields = as_mapping(record)
        patches = _unnamed_patches(fields)
        listed = [each for name in _LISTS for each in get(fields, name, list) or []]
        inner = [*(each for each in listed if not (patches and _has_no_id(each))), *patches]
        body = get(fields, "body", Mapping)
        run_id = nonempty(fields, "id")
        if run_id is not None:
            parent = {"parent_run_id": around} if around and not fields.get("parent_run_id") else {}
            yield {**{name: value for name, value in fields.items() if name != "child_runs"}, **parent}, None
        elif body is not None:
            path = get(fields, "path", str) or ""
            waiting.append(({"id": path.rpartition("/")[2], **body} if "id" not in body else body, None))
        elif not inner:
            yield {}, record
        waiting += [(each, run_id or around) for each in reversed(inner)]


def _unnamed_patches(fields: Mapping[str, Any]) -> list[Any]:
    """Returns patches without an id, with that of the run at the same index of ``post``."""
    both = zip(get(fields, "post", list) or [], get(fields, "patch", list) or [], strict=False)
    return [{"id": post["id"], **patch} for post, patch in both if nonempty(post, "id") and _has_no_id(patch)]


def _has_no_id(patch: Any) -> bool:
    return isinstance(patch, Mapping) and "id" not in patch


def _read(records: Iterable[Any]) -> Iterator[RecordedRun]:
    runs: dict[str, Object] = {}
    aside: list[Any] = []
    for fields, record in _flattened(records):
        if fields:
            run = runs.setdefault(str(fields["id"]), {})
            run |= {name: value for name, value in fields.items() if value not in (None, {}, []) or name not in run}
        else:
            aside.append(record)
    traces = _traces([LoggedRun(fields) for fields in runs.values()])
    for number, (trace, members) in enumerate(traces.items()):
        yield _Trace(members, aside if number == 0 else []).run(trace)


def _traces(runs: Sequence[LoggedRun]) -> dict[str, list[LoggedRun]]:
    """Groups the runs by trace: the one that they name, or the topmost run above them."""
    by_id = {run.id: run for run in runs}
    tops: dict[str, str] = {}
    groups: dict[str, list[LoggedRun]] = {}
    for run in runs:
        path: list[str] = []
        above: LoggedRun | None = run
        top = run.id
        while above is not None:
            if above.id in tops:  # also where parents form a loop
                top = tops[above.id]
                break
            top = tops[above.id] = above.trace or above.id
            path.append(above.id)
            above = None if above.trace else by_id.get(above.parent or "")
        tops.update(dict.fromkeys(path, top))
        groups.setdefault(top, []).append(run)
    return groups


class _Trace:
    """The runs of one trace, by the tool in which they ran."""

    def __init__(self, runs: Sequence[LoggedRun], aside: Sequence[Any]) -> None:
        far = float("inf")
        self._runs = sorted(runs, key=lambda run: (far if run.began is None else run.began, run.order))
        self._by_id = {run.id: run for run in self._runs}
        self._aside = list(aside)
        self._tools: dict[str | None, str | None] = {None: None}  # the tool run that a run is in

    def run(self, trace: str) -> RecordedRun:
        """Builds the run."""
        levels: dict[str | None, Level] = {None: Level()}
        others: Counter[str] = Counter()
        lost = 0
        for run in self._runs:
            lost += run.parent is not None and run.parent not in self._by_id
            tool = self._tool_around(run)
            level = levels.setdefault(tool, Level(is_nested=tool is not None))
            if not level.take(run):
                others[run.kind] += 1
                if tool is not None and run.parent == tool:
                    level.name_agent(run)
        main = levels.pop(None)
        root = next((run for run in self._runs if run.parent not in self._by_id), next(iter(self._runs), None))
        if root is not None:
            main.frame(root)
        facts = main.items.facts
        for run in self._runs:
            facts.see(run.began)
            facts.see(run.ended)
        if others:
            kinds = ", ".join(f"{kind:.40} {count}" for kind, count in others.most_common(20))
            facts.problem(f"Runs of these types have no place in a transcript: {kinds}.", LEFT_OUT)
        if lost:
            facts.problem(f"Runs whose parents are not in the file: {lost}.", "They were read as if they had none.")
        for record in self._aside:
            facts.set_aside(get(record, "type", str))
        names = {run: call for level in (main, *levels.values()) for run, call in level.names.items()}
        agents: Agents = {}
        for tool, level in levels.items():
            agents.setdefault(names.get(tool or "", ""), []).append((level.items.close(), level.items.facts))
        extra = {name: root.fields[name] for name in _KEPT if root is not None and root.fields.get(name)}
        return RecordedRun(
            id=trace,
            transcript=assemble_all(main.items.close(), facts, agents),
            title="" if root is None else root.name,
            began=facts.began,
            seconds=facts.seconds,
            extra={**extra, **({"records": self._aside} if self._aside else {})},
            is_unfinished=root is not None and root.fields.get("status") == "pending",
        )

    def _tool_around(self, run: LoggedRun) -> str | None:
        """Returns the id of the nearest tool run above this one. Each run is looked at once."""
        path: list[str] = []
        run_id = run.parent
        while run_id not in self._tools:
            assert run_id is not None
            self._tools[run_id] = None
            above = self._by_id.get(run_id)
            path.append(run_id)
            if above is None or above.kind == "tool":
                self._tools[run_id] = run_id if above is not None else None
                break
            run_id = above.parent
        tool = self._tools[run_id]
        self._tools.update(dict.fromkeys(path, tool))
        return tool if tool != run.id else None


LANGSMITH = TraceFormat(
    "langsmith", "exports of LangSmith: lists or trees of runs, or what its SDK sends", _recognises, _read
)


_KINDS = {"agent": "chain", "llm": "llm", "tool": "tool"}


def _recognises_atof(records: Sequence[Any]) -> bool:
    return any(_is_scope(record) for record in records)


def _is_scope(record: Any) -> bool:
    return nonempty(record, "atof_version") is not None and nonempty(record, "uuid") is not None


def _read_atof(records: Iterable[Any]) -> Iterator[RecordedRun]:
    return _read(_run_of_scope(record) if _is_scope(record) else record for record in records)


def _run_of_scope(event: Any) -> Object:
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


ATOF = TraceFormat("atof", "event logs of NVIDIA's agent toolkit (ATOF)", _recognises_atof, _read_atof)
