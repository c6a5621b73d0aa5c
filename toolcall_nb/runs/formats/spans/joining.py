"""Joins the calls of a conversation: what a model asked for, what a tool's span recorded, what the next request told.

The same call appears up to four times in a trace. `CallRegister` finds it again by its id, else by its name and
arguments in order, since some instrumentations number the calls of each answer anew, or have no ids.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice

from msgspec import Struct, field

from toolcall_nb.core.calls import CallRecord
from toolcall_nb.core.events import MISSING, Json, Missing, Object
from toolcall_nb.core.json_text import json_text
from toolcall_nb.core.transcript import State, ToolCall
from toolcall_nb.runs.formats.spans.recorded_parts import AskedCall, CallResult
from toolcall_nb.runs.formats.spans.tool_runs import ToolRun

_MOST_OPEN = 64
"""The number of calls among which the call of a result without an id is looked for."""


class JoinedCall(Struct, eq=False):
    """One call, with all that the trace says of it.

    ``parent`` is the call that it ran inside of, and ``log`` the texts of a sub-agent that ran inside of it.
    """

    name: str
    id: str | None = None
    asked: AskedCall | None = None
    run: ToolRun | None = None
    told: CallResult | None = None
    parent: JoinedCall | None = None
    started: float | None = None
    seconds: float | None = None
    has_ended: bool = True
    log: list[str] = field(default_factory=list)
    extra: Object = field(default_factory=dict)
    final_id: str = ""
    part: ToolCall | None = None

    @property
    def input(self) -> Json | Missing:
        """The arguments: those that the model wrote, else those of the span."""
        if self.asked is not None and self.asked.input is not MISSING:
            return self.asked.input
        return MISSING if self.run is None else self.run.input

    def tool_call(self) -> ToolCall:
        """Returns the call as a part of a transcript, the same one each time. All must be known but the tokens."""
        if self.part is None:
            self.part = self._make_part()
        return self.part

    def _make_part(self) -> ToolCall:
        state, output, error = self._end()
        given = {} if self.input is MISSING and state is State.INPUT_AVAILABLE else self.input
        metadata: Object = {"parent": self.parent.final_id} if self.parent is not None else {}
        return ToolCall(
            id=self.final_id,
            name=self.name,
            state=state,
            input=given,
            output=output,
            error=error,
            log="\n\n".join(self.log),
            traceback=self.run.traceback if self.run is not None else None,
            provider_executed=True if self.asked is not None and self.asked.provider_executed else None,
            tool_metadata=metadata or None,
            extra=self.extra,
            record=CallRecord(started=self.started, seconds=self.seconds),
        )

    def _end(self) -> tuple[State, Json | Missing, str | None]:
        output = MISSING if self.run is None else self.run.output
        if output is MISSING and self.told is not None:
            output = self.told.output
        if self.run is not None and self.run.error is not None:
            return State.OUTPUT_ERROR, MISSING if output == self.run.error else output, self.run.error
        if self.told is not None and self.told.is_error:
            return State.OUTPUT_ERROR, MISSING, output if isinstance(output, str) else json_text(output)
        if output is not MISSING or (self.run is not None and self.has_ended):
            return State.OUTPUT_AVAILABLE, None if output is MISSING else output, None
        return State.INPUT_AVAILABLE, MISSING, None


class CallIndex:
    """Calls by a key, in order."""

    def __init__(self) -> None:
        self._calls: dict[Hashable, list[JoinedCall]] = {}
        self._next: dict[Hashable, int] = {}

    def add(self, key: Hashable, call: JoinedCall) -> None:
        """Adds a call."""
        self._calls.setdefault(key, []).append(call)

    def all(self, key: Hashable) -> list[JoinedCall]:
        """Returns the calls with this key."""
        return self._calls.get(key, [])

    def waiting(self, key: Hashable) -> JoinedCall | None:
        """Returns the first call that waits for its run."""
        calls, at = self.all(key), self._next.get(key, 0)
        while at < len(calls) and calls[at].run is not None:
            at += 1
        self._next[key] = at
        return calls[at] if at < len(calls) else None


class CallRegister:
    """The calls of one conversation. ``everywhere`` has those of all conversations, by id and name."""

    def __init__(self, everywhere: CallIndex) -> None:
        self.by_id, self.by_name = CallIndex(), CallIndex()
        self.everywhere = everywhere
        self._by_input = CallIndex()
        self._not_by_input: list[tuple[str, Json, JoinedCall]] = []

    @property
    def by_input(self) -> CallIndex:
        """The calls by name and arguments. Most traces have ids, so the arguments are written as keys only here."""
        for name, given, call in self._not_by_input:
            self._by_input.add(_input_key(name, given), call)
        self._not_by_input.clear()
        return self._by_input

    def ask(self, asked: AskedCall) -> JoinedCall:
        """Adds a call that an answer asks for. If its span came before, it is that call."""
        if asked.id and (found := self.by_id.all(asked.id)) and found[-1].asked is None:
            found[-1].asked = asked
            return found[-1]
        return self.add(JoinedCall(asked.name, asked.id, asked=asked))

    def run(self, run: ToolRun) -> JoinedCall | None:
        """Gives a tool's run to the call that asked for it; returns None if there is none."""
        call = self._waiting_for(run)
        if call is not None:
            call.run = run
            if run.id and run.id != call.id:
                self.by_id.add(run.id, call)
        return call

    def _waiting_for(self, run: ToolRun) -> JoinedCall | None:
        found = self.by_id.waiting(run.id) if run.id else None
        if found is None and run.input is not MISSING:
            found = self.by_input.waiting(_input_key(run.name, run.input))
        if found is not None:
            return found
        if run.id and (elsewhere := self.everywhere.waiting((run.id, run.name))) is not None:
            return elsewhere
        other = self.by_name.waiting(run.name)
        if other is None or (run.id and other.id and MISSING not in (run.input, other.input)):
            return None  # both say which call they are, and differ
        return other

    def add(self, call: JoinedCall) -> JoinedCall:
        """Adds a new call."""
        if call.id:
            self.by_id.add(call.id, call)
            self.everywhere.add((call.id, call.name), call)
        self.by_name.add(call.name, call)
        if (given := call.input) is not MISSING:
            self._not_by_input.append((call.name, given, call))
        return call


def is_same_value(a: Json | Missing, b: Json | Missing) -> bool:
    """Whether two values are the same, however deep they are."""
    return a is b or (MISSING not in (a, b) and json_text(a) == json_text(b))


def _input_key(name: str, given: Json) -> tuple[str, str]:
    return name, json_text(given)


class HistoryMatcher:
    """Finds the calls and results of one history among the known calls. Each call is in a history once."""

    def __init__(self, register: CallRegister) -> None:
        self._register = register
        self._told: set[int] = set()
        self._next: dict[tuple[int, Hashable], int] = {}
        self._open: dict[int, JoinedCall] = {}  # told in this history, without their results so far
        self._latest: dict[str, JoinedCall] = {}

    def call(self, asked: AskedCall) -> JoinedCall | None:
        """Returns the known call that a history tells of; None for a new one."""
        register = self._register
        found = self._untold(register.by_id, asked.id) if asked.id else None
        if found is None and asked.input is not MISSING:
            found = self._untold(register.by_input, _input_key(asked.name, asked.input))
        if found is None and asked.input is MISSING:
            found = self._untold(register.by_name, asked.name)
        if found is None and asked.id:
            same = register.everywhere.all((asked.id, asked.name))[-1:]
            is_told = any(id(call) in self._told or not is_same_value(call.input, asked.input) for call in same)
            found = same[0] if same and not is_told else None
        if found is not None:
            self.tell(found, asked)
        return found

    def _untold(self, index: CallIndex, key: Hashable) -> JoinedCall | None:
        calls, at = index.all(key), self._next.get((id(index), key), 0)
        while at < len(calls) and id(calls[at]) in self._told:
            at += 1
        self._next[id(index), key] = at
        return calls[at] if at < len(calls) else None

    def tell(self, call: JoinedCall, asked: AskedCall) -> None:
        """Notes that this history tells of the call."""
        call.asked = call.asked or asked
        self._told.add(id(call))
        self._open[id(call)] = call
        if asked.id:
            self._latest[asked.id] = call

    def result(self, result: CallResult) -> JoinedCall | None:
        """Gives a result to its call; returns None if the call is not known."""
        call = self._call_of(result)
        if call is not None:
            self._open.pop(id(call), None)
            call.told = call.told or result
        return call

    def _call_of(self, result: CallResult) -> JoinedCall | None:
        if result.id:
            known = self._register.by_id.all(result.id)
            if (found := self._latest.get(result.id) or (known[-1] if known else None)) is not None:
                return found
        waiting = list(islice(self._open.values(), _MOST_OPEN))
        if result.name or not result.id:
            return next((call for call in waiting if result.name in (None, call.name)), None)
        numbered = [call for call in waiting if result.id.startswith(call.name)]  # ADK's ids are names with a number
        return numbered[0] if numbered else None
