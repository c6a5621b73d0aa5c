"""Agent trajectories of Harbor in the Agent Trajectory Interchange Format: `ATIF`.

A record is a trajectory, ``{schema_version, session_id, agent, steps}``, or an object that holds several. A step of the
agent has its message, its calls, and the observation, whose results name their calls in ``source_call_id``. A result
that names none belongs to the only call of its step; beside several calls it is a message. A trajectory that a result
refers to, and that is in the same record, ran inside that call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolcall_nb.core.events import Object
from toolcall_nb.core.sdk_objects import as_json_text, as_json_value, as_mapping, get, nonempty
from toolcall_nb.runs.formats.base import RecordedRun, TraceFormat
from toolcall_nb.runs.formats.logged_items import LoggedItems
from toolcall_nb.runs.run_facts import Agents, assemble_all, usd_cost
from toolcall_nb.runs.timestamps import parse_timestamp

_USAGE: Mapping[str, Sequence[str]] = {
    "inputTokens": "prompt_tokens",
    "outputTokens": "completion_tokens",
    "cachedInputTokens": "cached_tokens",
}
_READ = frozenset({"source", "message", "reasoning_content", "tool_calls", "observation", "timestamp", "model_name"})
_READ_METRICS = frozenset({"prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd"})


def _recognises(records: Sequence[Any]) -> bool:
    return any(True for record in records for _ in _trajectories(record))


def _is_trajectory(record: Any) -> bool:
    version = nonempty(record, "schema_version") or ""
    return version.startswith("ATIF") and get(record, "steps", list) is not None


def _trajectories(record: Any) -> Iterator[Mapping[str, Any]]:
    """Yields the trajectories of a record, each before those that are embedded in it."""
    waiting = [record]
    while waiting:
        found = waiting.pop()
        if _is_trajectory(found):
            yield found
            waiting += reversed(get(found, "subagent_trajectories", list) or [])
        elif found is record:
            inner = found if isinstance(found, list) else list(as_mapping(found).values())
            waiting += [each for each in reversed(inner) if _is_trajectory(each)]


def _read(records: Iterable[Any]) -> Iterator[RecordedRun]:
    for record in records:
        yield from _Document([_Trajectory(found) for found in _trajectories(record)]).runs()


class _Document:
    """The trajectories of one record. Those that ran inside a call of another one are no runs of their own."""

    def __init__(self, trajectories: Sequence[_Trajectory]) -> None:
        self._trajectories = trajectories
        by_name = {name: one for one in reversed(trajectories) for name in one.names}
        self._agents: Agents = {}
        self._inner: set[int] = set()
        for one in trajectories:
            for call, name in one.refers:
                inner = by_name.get(name)
                if inner is not None and inner is not one and id(inner) not in self._inner:
                    self._inner.add(id(inner))
                    self._agents.setdefault(call, []).append((inner.items.close(), inner.items.facts))

    def runs(self) -> Iterator[RecordedRun]:
        """Yields the runs; the first one has what would otherwise belong to none."""
        outer = [one for one in self._trajectories if id(one) not in self._inner] or list(self._trajectories[:1])
        for one in outer:
            facts = one.items.facts
            own = one.calls & self._agents.keys() if one is not outer[-1] else set(self._agents)
            agents = {call: self._agents.pop(call) for call in own}
            yield RecordedRun(
                id=one.names[0] if one.names else "",
                transcript=assemble_all(one.items.close(), facts, agents),
                title=nonempty(one.fields.get("agent"), "name") or "",
                began=facts.began,
                seconds=facts.seconds,
                extra=one.extra,
            )


class _Trajectory:
    """Reads the steps of a trajectory."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields
        self.names = [found for name in ("trajectory_id", "session_id") if (found := nonempty(fields, name))]
        self.items = LoggedItems("atif")
        self.calls: set[str] = set()
        self.refers: list[tuple[str, str]] = []
        """The calls whose results refer to other trajectories, with the names of these."""
        about = {name: value for name, value in fields.items() if name not in ("steps", "subagent_trajectories")}
        self.extra: Object = about
        further: list[Any] = []
        for number, step in enumerate(get(fields, "steps", list) or [], 1):
            if rest := self._step(as_mapping(step)):
                further.append({"step": number, **rest})
        if further:
            self.extra = {**about, "steps": further}

    def _step(self, step: Mapping[str, Any]) -> Object:
        """Reads a step, and returns its fields that have no place in a transcript."""
        time = self.items.facts.see(parse_timestamp(step.get("timestamp")))
        results = [as_mapping(each) for each in get(step.get("observation"), "results", list) or []]
        role = step.get("source")
        metadata = {"isCopiedContext": True} if step.get("is_copied_context") is True else None
        if role == "agent":
            self._answer(step, results, time)
        else:
            self._prompt("system" if role == "system" else "user", step.get("message"), metadata)
            for result in results:
                self._prompt("user", result.get("content"), {"source": "observation"})
        metrics = as_mapping(step.get("metrics"))
        unread = {name: value for name, value in metrics.items() if name not in _READ_METRICS}
        rest = {name: value for name, value in step.items() if name not in (*_READ, "step_id", "metrics")}
        return rest | ({"metrics": unread} if unread else {})

    def _prompt(self, role: str, message: Any, metadata: Object | None) -> None:
        given = message if isinstance(message, list) else [message]
        parts = [_part(part) for part in given if part not in (None, "")]
        self.items.prompt(role, parts, metadata)

    def _answer(self, step: Mapping[str, Any], results: Sequence[Mapping[str, Any]], time: float | None) -> None:
        self.items.model = nonempty(step, "model_name") or nonempty(self.fields.get("agent"), "model_name")
        if reasoning := nonempty(step, "reasoning_content"):
            self.items.reasoning(reasoning)
        message = step.get("message")
        for part in message if isinstance(message, list) else [message]:
            if part not in (None, ""):
                self.items.take({"type": "message", "role": "assistant", "content": [_part(part)]}, time)
        own = [self._call(as_mapping(call), time) for call in get(step, "tool_calls", list) or []]
        metrics = as_mapping(step.get("metrics"))
        self.items.use(metrics, _USAGE, usd_cost(metrics.get("cost_usd")))
        for result in results:
            named = nonempty(result, "source_call_id")
            alone = own[0] if named is None and len(own) == len(results) == 1 else named
            if alone in own:
                self._result(alone, result)
            else:
                self._prompt("user", result.get("content"), {"source": "observation"})

    def _call(self, call: Mapping[str, Any], time: float | None) -> str:
        call_id = nonempty(call, "tool_call_id") or f"call-{len(self.calls) + 1}"
        self.calls.add(call_id)
        given = call.get("arguments")
        arguments = given if isinstance(given, str) else as_json_text({} if given is None else as_json_value(given))
        about = {"call_id": call_id, "name": nonempty(call, "function_name") or "tool", "arguments": arguments}
        self.items.take({"type": "function_call", **about}, time)
        if extra := call.get("extra"):
            self.items.facts.call(call_id).details = {"extra": as_json_value(extra)}
        return call_id

    def _result(self, call_id: str, result: Mapping[str, Any]) -> None:
        item = {"type": "function_call_output", "call_id": call_id, "output": as_json_value(result.get("content"))}
        self.items.take(item, None)
        facts = self.items.facts.call(call_id)
        further = {name: value for name, value in result.items() if name not in ("source_call_id", "content")}
        facts.details = {**facts.details, **({"result": as_json_value(further)} if further else {})}
        for reference in get(result, "subagent_trajectory_ref", list) or []:
            names = (nonempty(reference, name) for name in ("trajectory_id", "session_id"))
            self.refers += [(call_id, name) for name in names if name is not None and name not in self.names]


def _part(part: Any) -> Object:
    """Returns a part of a message as OpenAI's messages have it."""
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    source = as_mapping(get(part, "source"))
    if path := nonempty(source, "path"):
        return {"type": "input_image", "image_url": path}
    return dict(part) if isinstance(part, Mapping) else {"type": "input_text", "text": as_json_text(part)}


ATIF = TraceFormat("atif", "agent trajectories of Harbor (ATIF)", _recognises, _read)
