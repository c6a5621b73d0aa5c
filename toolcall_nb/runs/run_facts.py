"""The facts about a run that its messages do not contain, `RunFacts`: times, usage, sub-agents, problems.

The reader of a format turns the messages of a log into events with `toolcall_nb.adapters`, and collects beside them
when each call began and ended, the usage of each request, and which agent ran inside which call. `assemble` joins the
two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from typing import Any, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.core.calls import CallRecord
from toolcall_nb.core.events import LEFT_OUT, Diagnostic, Event, Finish, Object
from toolcall_nb.core.transcript import Message, Part, ReasoningPart, TextPart, ToolCall, Transcript
from toolcall_nb.core.usage import RequestUsage, estimate_result_tokens, to_metadata

_TURN = "toolcall-turn"
"""The field of a message's metadata that holds the number of its turn, until `assemble` has replaced it."""

_MOST_DIAGNOSTICS = 50
_LARGEST_COST = 1_000_000


class CallFacts(Struct):
    """The times of a call, in seconds since 1970, and what its log says beside its message.

    ``seconds`` is the duration where the log has it; else it is the time from ``began`` to ``ended``. ``details`` go
    into the call's provider metadata, under the name of the format.
    """

    began: float | None = None
    ended: float | None = None
    seconds: float | None = None
    details: Object = field(default_factory=dict)
    log: str = ""


class RequestFacts(Struct):
    """The usage of one request to the model, and the ids of the calls that its reply contained."""

    usage: dict[str, int] = field(default_factory=dict)
    cost: dict[str, Decimal] | None = None
    model: str | None = None
    calls: list[str] = field(default_factory=list)


def usd_cost(amount: Any) -> dict[str, Decimal] | None:
    """Returns a number of dollars as a cost; None for anything that is no such number."""
    try:
        cost = Decimal(str(amount)) if isinstance(amount, int | float) else Decimal("NaN")
    except InvalidOperation:
        return None
    return {"USD": cost} if cost.is_finite() and 0 <= cost < _LARGEST_COST else None


class RunFacts:
    """Collects the facts of one conversation: of a run, or of one agent in it. ``name`` is that of the format."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: dict[str, CallFacts] = {}
        self.began: float | None = None
        self.ended: float | None = None
        self.turns: list[list[RequestFacts]] = []
        self._answers: dict[Any, list[Event]] = {}  # by the number of the turn
        self._kinds: Counter[str] = Counter()
        self._problems: list[Diagnostic] = []
        self._more = 0

    def see(self, time: float | None) -> float | None:
        """Counts a time towards the beginning and the end of the run, and returns it."""
        if time is not None:
            self.began = time if self.began is None else min(self.began, time)
            self.ended = time if self.ended is None else max(self.ended, time)
        return time

    @property
    def seconds(self) -> float | None:
        """The duration of the run."""
        return None if self.began is None or self.ended is None else round(self.ended - self.began, 6)

    def call(self, call_id: str) -> CallFacts:
        """Returns the facts of this call, which may be new."""
        return self.calls.setdefault(call_id, CallFacts())

    def begin_turn(self, message: Assembler) -> None:
        """Begins a turn of the assistant, which ``message`` assembles."""
        message.metadata[_TURN] = len(self.turns)
        self.turns.append([])

    def answer(self, message: Assembler, events: Iterable[Event]) -> None:
        """Adds the events that end calls of a turn. They are put before its end, however late they were logged.

        So the reducer finds each call in the open message, and need not search all messages for it.
        """
        self._answers.setdefault(message.metadata.get(_TURN), []).extend(events)

    def with_answers(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yields the events of all turns, with those that end calls in their places."""
        for event in events:
            if isinstance(event, Finish) and isinstance(event.message_metadata, dict):
                yield from self._answers.get(event.message_metadata.get(_TURN), ())
            yield event

    def request(self, request: RequestFacts) -> None:
        """Adds a request to the last turn."""
        if self.turns:
            self.turns[-1].append(request)

    def set_aside(self, kind: Any) -> None:
        """Counts a record that has no place in the transcript, and is in the run's ``extra``."""
        self._kinds[f"{kind:.60}" if isinstance(kind, str) else "without a type"] += 1

    def problem(self, message: str, action: str) -> None:
        """Adds a diagnostic. Of a great many, the last ones are only counted."""
        if len(self._problems) < _MOST_DIAGNOSTICS:
            self._problems.append(Diagnostic(message, action))
        else:
            self._more += 1

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Returns the problems, and one diagnostic for all records that were set aside."""
        diagnostics = list(self._problems)
        if self._more:
            more = f"There are {self._more} more problems of this sort."
            diagnostics.append(Diagnostic(more, "They were treated alike."))
        if total := self._kinds.total():
            kinds = ", ".join(f"{kind} {count}" for kind, count in self._kinds.most_common(20))
            are = "record has" if total == 1 else "records have"
            left_out = f"{total} {are} no place in a transcript ({kinds})."
            diagnostics.append(Diagnostic(left_out, "See the run's `extra`."))
        return tuple(diagnostics)


_Pair: TypeAlias = tuple[RequestFacts, "RequestFacts | None"]
"""A request, and the one that followed it in the same turn."""

Agents: TypeAlias = dict[str, list[tuple[Iterable[Event], RunFacts]]]
"""The conversations that ran inside a call, by the call's id."""


class _Agent(Struct):
    """The conversation of an agent that ran inside a call."""

    calls: list[ToolCall]
    log: str
    requests: list[_Pair]
    diagnostics: tuple[Diagnostic, ...]


def assemble(events: Iterable[Event], facts: RunFacts, agents: Agents | None = None) -> Transcript:
    """Builds the transcript of a run from its events and facts.

    ``agents`` are the conversations that ran inside a call, by the call's id. Their calls follow that call, with it as
    their parent; their texts are its log; their requests count with those of its message. Each is taken out of
    ``agents`` when it is added: those that remain belong to calls that are not in this run.
    """
    transcript = Transcript.from_events(facts.with_answers(events))
    nesting = _Nesting(facts, agents if agents is not None else {})
    messages = []
    for message in transcript.messages:
        requests = _requests(message, facts)
        parts = list(nesting.parts(message.parts, requests))
        messages.append(_with_usage(message, parts, requests))
    diagnostics = (*transcript.diagnostics, *facts.diagnostics(), *nesting.diagnostics)
    return replace(transcript, messages=tuple(messages), diagnostics=diagnostics)


def assemble_all(events: Iterable[Event], facts: RunFacts, agents: Agents) -> Transcript:
    """Builds the transcript as `assemble` does. Agents whose calls are inside each other follow at its end."""
    transcript = assemble(events, facts, agents)
    if not agents:
        return transcript
    messages, diagnostics = list(transcript.messages), list(transcript.diagnostics)
    diagnostics.append(Diagnostic("Some calls are inside each other.", "They were put at the end."))
    while agents:
        for inner_events, inner_facts in agents.pop(next(iter(agents))):
            inner = assemble(inner_events, inner_facts, agents)
            messages += inner.messages
            diagnostics += inner.diagnostics
    return replace(transcript, messages=tuple(messages), diagnostics=tuple(diagnostics))


class _Nesting:
    """Puts the calls of agents below the calls in which they ran."""

    def __init__(self, facts: RunFacts, agents: Agents) -> None:
        self._facts = facts
        self._agents = agents
        self._taken: dict[str, int] = {}  # the ids of calls, with the number of calls that had each
        self.diagnostics: list[Diagnostic] = []

    def parts(self, parts: Iterable[Part], requests: list[_Pair]) -> Iterator[Part]:
        """Yields the parts, and after each call those that ran inside it. Adds the agents' requests to ``requests``.

        An agent is placed once, below the first call with its id, so that no loop of parents is ever followed.
        """
        for part in parts:
            if not isinstance(part, ToolCall):
                yield part
                continue
            waiting = [(_with_facts(part, self._facts, self._facts.began), "")]
            while waiting:
                logged_call, parent = waiting.pop()
                agents = [_agent(*each, self._facts.began) for each in self._agents.pop(logged_call.id, ())]
                call = _with_unique_id(logged_call, self._taken)
                yield _below(call, parent, [agent.log for agent in agents])
                requests[:0] = [request for agent in agents for request in agent.requests]
                waiting += [(child, call.id) for agent in reversed(agents) for child in reversed(agent.calls)]
                self.diagnostics += [diagnostic for agent in agents for diagnostic in agent.diagnostics]


def _agent(events: Iterable[Event], facts: RunFacts, began: float | None) -> _Agent:
    transcript = Transcript.from_events(facts.with_answers(events))
    messages = [message for message in transcript.messages if message.role == "assistant"]
    parts = [part for message in messages for part in message.parts]
    calls = [_with_facts(part, facts, began) for part in parts if isinstance(part, ToolCall)]
    texts = [part.text for part in parts if isinstance(part, TextPart | ReasoningPart)]
    if others := len(parts) - len(calls) - len(texts):
        facts.problem(f"An agent's messages have {others} parts that are neither text nor calls.", LEFT_OUT)
    requests = [pair for message in messages for pair in _requests(message, facts)]
    diagnostics = (*transcript.diagnostics, *facts.diagnostics())
    return _Agent(calls, "\n\n".join(filter(None, texts)), requests, diagnostics)


def _requests(message: Message, facts: RunFacts) -> list[_Pair]:
    number = message.metadata.get(_TURN)
    requests = facts.turns[number] if isinstance(number, int) and number < len(facts.turns) else []
    return list(zip_longest(requests, requests[1:]))


def _with_unique_id(call: ToolCall, taken: dict[str, int]) -> ToolCall:
    """Gives a call another id where another call of the run has it, so that no call is hidden by another."""
    unique_id = call.id
    while unique_id in taken:
        taken[call.id] += 1
        unique_id = f"{call.id}-{taken[call.id]}"
    taken[unique_id] = 1
    return call if unique_id == call.id else replace(call, id=unique_id)


def _below(call: ToolCall, parent: str, logs: Sequence[str]) -> ToolCall:
    if not parent and not logs:
        return call
    metadata = {**(call.tool_metadata or {}), **({"parent": parent} if parent else {})}
    log = "\n\n".join(text for text in (call.log, *logs) if text)
    return replace(call, tool_metadata=metadata or None, log=log)


def _with_facts(call: ToolCall, facts: RunFacts, began: float | None) -> ToolCall:
    call_facts = facts.calls.get(call.id)
    if call_facts is None:
        return call
    seconds = call_facts.seconds
    if seconds is None and call_facts.began is not None and call_facts.ended is not None:
        seconds = max(0.0, round(call_facts.ended - call_facts.began, 6))
    started = None if call_facts.began is None or began is None else round(call_facts.began - began, 6)
    metadata = call.provider_metadata
    if call_facts.details:
        metadata = {**(metadata or {}), facts.name: call_facts.details}
    log = "\n\n".join(text for text in (call.log, call_facts.log) if text)
    record = CallRecord(started=started, seconds=seconds)
    return replace(call, provider_metadata=metadata, log=log, record=record)


def _with_usage(message: Message, parts: Sequence[Part], requests: Sequence[_Pair]) -> Message:
    """Returns the message with its parts, its usage in the metadata, and the calls with the tokens of their results."""
    metadata = {name: value for name, value in message.metadata.items() if name != _TURN}
    calls = {part.id: part for part in parts if isinstance(part, ToolCall)}
    added: dict[str, int] = {}
    usages = []
    for request, following in requests:
        requested = [calls[call_id] for call_id in request.calls if call_id in calls]
        tokens = estimate_result_tokens(requested, request.usage, following.usage) if following is not None else {}
        added.update(tokens)
        usages.append(RequestUsage(request.usage, request.cost, request.model, tokens))
    metadata |= to_metadata([usage for usage in usages if usage.usage])
    model = next((request.model for request, _ in reversed(requests) if request.model), None)
    metadata |= {"model": model} if model else {}
    counted_parts = []
    for part in parts:
        if isinstance(part, ToolCall) and part.id in added:
            record = CallRecord(started=part.record.started, seconds=part.record.seconds, tokens=added[part.id])
            part = replace(part, record=record)
        counted_parts.append(part)
    return replace(message, metadata=metadata, parts=tuple(counted_parts))
