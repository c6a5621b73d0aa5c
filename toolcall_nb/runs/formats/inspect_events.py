"""Reads the events of a sample in a log of Inspect: `SampleEvents`."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from toolcall_nb.core.events import Object
from toolcall_nb.core.sdk_objects import as_mapping, get, nonempty
from toolcall_nb.runs.timestamps import parse_timestamp

_DETAILS = ("working_time", "truncated", "failed", "agent", "agent_result")
_MOST_EVENTS = 1_000_000


class ToolEvent(Struct):
    """A call as its event reports it. ``span`` is the span around it, ``parent`` the call that it ran inside of."""

    id: str
    name: str
    fields: Mapping[str, Any]
    began: float | None
    ended: float | None
    span: str | None
    parent: str | None

    @property
    def seconds(self) -> float | None:
        """The duration: the time until the call's end, or the time that it worked."""
        if self.began is not None and self.ended is not None:
            return max(0.0, round(self.ended - self.began, 6))
        worked = get(self.fields, "working_time", (int, float))
        return float(worked) if worked is not None and 0 <= worked < 1e12 else None

    @property
    def details(self) -> Object:
        """Further facts about the call."""
        return {name: self.fields[name] for name in _DETAILS if self.fields.get(name) is not None}


class ModelEvent(Struct):
    """A request to the model: its output message, its usage, its times, and the call that it ran inside of."""

    message: Mapping[str, Any]
    usage: Any
    model: str | None
    reason: str | None
    began: float | None
    ended: float | None
    span: str | None
    parent: str | None


class SampleEvents:
    """The events of a sample: calls by id, requests, both ``in_order``, times, and the names of agents by call.

    A call runs in a span of the type ``tool`` with its name, beside the event of the call; in older logs, its event
    contains the events of what ran inside it. Events of other types are counted in ``unread``.
    """

    def __init__(self, events: Sequence[Any]) -> None:
        self.tools: dict[str, ToolEvent] = {}
        self.in_order: list[ToolEvent | ModelEvent] = []
        self.agents: dict[str, str] = {}
        self.times: list[float] = []
        self.unread: Counter[str] = Counter()
        self._parents: dict[str, str | None] = {}  # of spans
        self._agent_spans: dict[str, str] = {}
        self._tool_spans: dict[tuple[Any, str], deque[str]] = defaultdict(deque)  # by the span around them and name
        self._call_of: dict[str, str] = {}  # the calls that tool spans belong to
        waiting: list[tuple[Any, str | None]] = [(event, None) for event in reversed(events)]
        for _ in range(_MOST_EVENTS):
            if not waiting:
                break
            event, parent = waiting.pop()
            call = self._take(as_mapping(event), parent)
            waiting += [(inner, call or parent) for inner in reversed(get(event, "events", list) or [])]
        self._join()

    def _take(self, event: Mapping[str, Any], parent: str | None) -> str | None:
        """Reads an event; returns the id of a call."""
        began, ended = parse_timestamp(event.get("timestamp")), parse_timestamp(event.get("completed"))
        self.times += [time for time in (began, ended) if time is not None]
        span = nonempty(event, "span_id")
        kind = nonempty(event, "event") or "unknown"
        call_id = nonempty(event, "id")
        if kind == "span_begin" and call_id:  # here, the id is that of the span
            if call_id not in self._parents:
                around = self._parents[call_id] = nonempty(event, "parent_id")
                if event.get("type") == "tool":
                    self._tool_spans[around, nonempty(event, "name") or ""].append(call_id)
                elif event.get("type") == "agent":
                    self._agent_spans[call_id] = nonempty(event, "name") or "agent"
        elif kind == "tool" and call_id:
            name = nonempty(event, "function") or "tool"
            if call_id not in self.tools:
                self.tools[call_id] = ToolEvent(call_id, name, event, began, ended, span, parent)
                self.in_order.append(self.tools[call_id])
                if agent := nonempty(event, "agent"):
                    self.agents[call_id] = agent
            return call_id
        elif kind == "model":
            output = as_mapping(event.get("output"))
            choices = get(output, "choices", list)
            message = as_mapping(get(choices[0], "message") if choices else None)
            model = nonempty(event, "model") or nonempty(output, "model")
            reason = nonempty(choices[0], "stop_reason") if choices else None
            usage = output.get("usage")
            self.in_order.append(ModelEvent(message, usage, model, reason, began, ended, span, parent))
        elif kind != "span_end":
            self.unread[f"{kind:.40}"] += 1
        return None

    def _join(self) -> None:
        """Finds the calls that tool spans belong to, and then what ran inside them."""
        for call_id, tool in self.tools.items():
            if spans := self._tool_spans.get((tool.span, tool.name)):
                self._call_of[spans.popleft()] = call_id
        callers: dict[str | None, str | None] = {None: None}
        for call_id, tool in self.tools.items():
            around = self._caller(tool.span, callers)
            tool.parent = tool.parent or (around if around != call_id else None)
        for model in self.models:
            model.parent = model.parent or self._caller(model.span, callers)
        for span, name in self._agent_spans.items():
            if (caller := self._caller(span, callers)) is not None:
                self.agents.setdefault(caller, name)

    @property
    def models(self) -> list[ModelEvent]:
        """The requests."""
        return [event for event in self.in_order if isinstance(event, ModelEvent)]

    def _caller(self, span: str | None, callers: dict[str | None, str | None]) -> str | None:
        """Returns the call that a span is in. Each span is looked at once; parents that form a loop have no call."""
        path: list[str] = []
        while span not in callers:
            assert span is not None
            path.append(span)
            callers[span] = None
            if span in self._call_of:
                callers[span] = self._call_of[span]
                break
            span = self._parents.get(span)
        caller = callers[span]
        callers.update(dict.fromkeys(path, caller))
        return caller
