"""The steps and subagents of a run, both ways: `SubagentWriter` announces them, `RunStepReader` reads those of others.

A subagent is the agent inside a call: ``SUBAGENT_STARTED`` names it and the call, and each of its events has its
``subagentRunId``. A ``STEP_STARTED`` is not always one request to the model, and many agents send none. So
`RunStepReader` also begins a step with whatever follows the results of all calls of the step before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object
from toolcall_nb.wire.ag_ui.terms import NO_EVENT, extension, other_fields, text_field

Tag = Mapping[str, str]
"""The field of an event that says whose it is: ``subagentRunId``, or nothing for the agent itself."""


class _Subagent:
    """A subagent that is open: its tag, its name, and the name of its open step."""

    def __init__(self, run_id: str | None, name: str | None) -> None:
        self.tag: Tag = {} if run_id is None else {"subagentRunId": run_id}
        self.name = name
        self.step: str | None = None


class SubagentWriter:
    """Writes the steps, and the beginning and end of each subagent. Subagents are known by the calls they are in."""

    def __init__(self, ids: Iterator[str]) -> None:
        self._ids = ids
        self._open: dict[str | None, _Subagent] = {None: _Subagent(None, None)}
        self._steps = 0

    def tag(self, parent: str | None) -> Tag:
        """Returns the tag of what is inside the call, whose subagent is open."""
        return self._open[parent].tag

    def begin(self, parent: str | None, call: Object, name: str, agent: str | None = None) -> Iterator[Object]:
        """Announces the subagent inside the call, unless it is open. ``call`` has the fields that say which call."""
        subagent = self._open.get(parent)
        if subagent is not None and (agent is None or parent is None or agent == subagent.name):
            return
        yield from self.finish(parent)
        subagent = self._open[parent] = _Subagent(next(self._ids), agent or name)
        yield {"type": "SUBAGENT_STARTED", **subagent.tag, "name": agent or name, **call, **extension(NO_EVENT)}

    def finish(self, parent: str | None, more: Object | None = None) -> Iterator[Object]:
        """Ends the subagent inside the call, if there is one."""
        if parent is not None and parent in self._open:
            yield from self.end_step(parent, NO_EVENT)
            subagent = self._open.pop(parent)
            yield {"type": "SUBAGENT_FINISHED", **subagent.tag, **(more or {}), **extension(NO_EVENT)}

    def fail(self, event: ev.Error) -> Iterator[Object]:
        """Ends the subagent, which is open, with its error."""
        yield from self.end_step(event.parent, NO_EVENT)
        error = {"type": "SUBAGENT_ERROR", **self._open.pop(event.parent).tag, "message": event.error_text}
        yield {**error, **extension({"type": event.type, **other_fields(event, "errorText")})}

    def end_all(self, more: Object) -> Iterator[Object]:
        """Ends all steps and subagents, since the verifier requires it before the end of the run."""
        for parent in [*self._open]:
            yield from self.finish(parent, more)
        yield from self.end_step(None, NO_EVENT)

    def start_step(self, event: ev.StartStep) -> Iterator[Object]:
        """Begins a step. Its name is that of the agent, unless it had one."""
        yield from self.end_step(event.parent, NO_EVENT)
        self._steps += 1
        subagent, name = self._open[event.parent], event.extra.get("stepName")
        subagent.step = name if isinstance(name, str) else event.agent or f"step-{self._steps}"
        fields = {"type": event.type, **other_fields(event)}
        yield {"type": "STEP_STARTED", "stepName": subagent.step, **subagent.tag, **extension(fields)}

    def has_step(self, parent: str | None) -> bool:
        """Whether a step is open."""
        return parent in self._open and self._open[parent].step is not None

    def end_step(self, parent: str | None, more: Object) -> Iterator[Object]:
        """Ends the open step, if there is one."""
        subagent = self._open[parent]
        if subagent.step is not None:
            yield {"type": "STEP_FINISHED", "stepName": subagent.step, **subagent.tag, **extension(more)}
            subagent.step = None


class _Level:
    """The run itself, or that inside a call: who spoke last, and the calls of the step. ``waiting`` is a step that
    begins with what comes next."""

    def __init__(self) -> None:
        self.owner: str | None = None
        self.waiting: ev.StartStep | None = None
        self.name: Object = {}  # the field ``stepName`` of the step
        self.calls: set[str] = set()
        self.open_calls: set[str] = set()
        self.message: str | None = None  # that of the last call


class RunStepReader:
    """Reads the steps and subagents of a run of somebody else's. ``owner`` is a ``subagentRunId``, or None.

    ``call_id`` gives the id that a call of the wire has here.
    """

    def __init__(self, call_id: Callable[[str], str]) -> None:
        self._call_id = call_id
        self._agents: dict[str, tuple[str | None, str | None, Object]] = {}  # the call around it, its name, more
        self._levels: dict[str | None, _Level] = {None: _Level()}

    def begin_message(self) -> None:
        """Begins another message."""
        self._levels = {None: _Level()}

    def parent(self, owner: str | None) -> str | None:
        """Returns the id of the call that the subagent is in; None for the agent itself, and where it is not known."""
        return self._agents[owner][0] if owner in self._agents else None

    def subagent_started(self, event: Object) -> Iterator[Event]:
        """Keeps the subagent's name and call. Its first step begins with what it says."""
        run_id, name, call = (
            text_field(event, "subagentRunId"),
            text_field(event, "name"),
            event.get("parentToolCallId"),
        )
        parent = self._call_id(call) if isinstance(call, str) else self.parent(event.get("parentSubagentRunId"))
        read_names = ("type", "name", "parentToolCallId", "timestamp", "rawEvent")
        self._agents[run_id] = (parent, name, {key: value for key, value in event.items() if key not in read_names})
        return iter(())

    def subagent_finished(self, event: Object) -> Iterator[Event]:
        """Ends the subagent's last step, with its result."""
        owner = text_field(event, "subagentRunId")
        if self._level(owner).owner != owner:  # it said nothing
            yield from self.begin(owner)
        more = {name: event[name] for name in ("result", "outcome") if event.get(name) is not None}
        yield ev.FinishStep(parent=self.parent(owner), extra=more)

    def subagent_failed(self, event: Object) -> Iterator[Event]:
        """Yields the error of the subagent, which is not the run's."""
        owner, code = text_field(event, "subagentRunId"), event.get("code")
        yield from self.begin(owner)
        details = None if code is None else str(code)
        yield ev.Error(text_field(event, "message"), details, parent=self.parent(owner) or owner)

    def step_started(self, event: Object) -> Iterator[Event]:
        """Keeps the step, which begins with what comes next."""
        owner = event.get("subagentRunId")
        level = self._level(owner)
        level.name = {"stepName": text_field(event, "stepName")}
        level.waiting, level.owner = self._step(owner, level), owner
        return iter(())

    def step_finished(self, event: Object) -> Iterator[Event]:
        """Ends the step, unless nothing came in it."""
        owner = event.get("subagentRunId")
        level = self._level(owner)
        text_field(event, "stepName")
        if level.waiting is None:
            yield ev.FinishStep(parent=self.parent(owner))
        level.waiting, level.name = None, {}

    def begin(self, owner: str | None, message: str | None = None) -> Iterator[Event]:
        """Yields the beginning of a step, if one begins with this text or call, which belongs to ``message``."""
        level = self._level(owner)
        is_answered = bool(level.calls) and not level.open_calls and (message is None or message != level.message)
        if level.waiting is None and (level.owner != owner or is_answered):
            level.waiting = self._step(owner, level)
        level.owner = owner
        if level.waiting is not None:
            level.calls, level.open_calls = set(), set()
            yield level.waiting
            level.waiting = None

    def add_call(self, owner: str | None, call_id: str, message: str | None) -> None:
        """Notes a call of the step."""
        level = self._level(owner)
        level.calls.add(call_id)
        level.open_calls.add(call_id)
        level.message = message

    def answer_call(self, call_id: str) -> None:
        """Notes that the call has its result."""
        for level in self._levels.values():
            level.open_calls.discard(call_id)

    def _level(self, owner: str | None) -> _Level:
        parent = self.parent(owner)
        return self._levels.setdefault(parent, _Level())

    def _step(self, owner: str | None, level: _Level) -> ev.StartStep:
        parent, name, more = self._agents.get(
            owner or "", (None, None, {} if owner is None else {"subagentRunId": owner})
        )
        return ev.StartStep(parent=parent, agent=name, extra={**more, **level.name})
