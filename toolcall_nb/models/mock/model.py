"""The mock model: it needs no key and no network, and really calls the tools. `MockModel` is the entry point.

The same seed and messages give the same reply, word for word. `toolcall_nb.models.mock.scenarios` plans the replies,
or a `Script`, which a test writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from random import Random
from typing import Any, Self, TypeAlias

from toolcall_nb import dialects
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Missing
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall
from toolcall_nb.errors import ModelError, UsageError
from toolcall_nb.models.base import Fault, faulty
from toolcall_nb.models.mock.arguments import arguments_for
from toolcall_nb.models.mock.scenarios import SCENARIOS, Call, Plan, Raise, Say, Situation, Think
from toolcall_nb.models.mock.text_calls import with_calls
from toolcall_nb.models.replay import Pace, play_reply
from toolcall_nb.tools import Tool
from toolcall_nb.tools.answer_tool import ANSWER_TOOL


class MockModel:
    """A model that plays a scenario, or the replies of a script.

    In a scenario it makes the arguments of its calls from the schemas and the prompt. With a ``script`` the n-th
    request gets the n-th reply, and one request too many fails. Each reply is a text, a call ``(name, arguments)`` or
    ``(name, arguments, id)``, an exception to raise, a list of these, or a function that gets the messages and returns
    one of these::

        MockModel(script=[[("sql", {"q": "select 1"})], "One row."])

    In the ``dialect`` ``native`` its calls are events, in any other text. ``speed`` 1 is that of a usual model; None
    never waits, and is the default with a script. ``faults`` are put into the stream, for tests of its readers.
    """

    def __init__(
        self,
        seed: int = 0,
        scenario: str = "auto",
        *,
        script: Iterable[ScriptedReply] | None = None,
        dialect: str = "native",
        speed: float | Missing | None = MISSING,
        faults: Sequence[Fault] = (),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if scenario not in SCENARIOS:
            raise UsageError(f"The mock model knows no scenario {scenario!r}. There are: {', '.join(SCENARIOS)}.")
        if dialect != "native":
            dialects.detector(dialect)  # raises for a name that is none
        self.seed, self.scenario, self.dialect, self.faults = seed, scenario, dialect, tuple(faults)
        self.script = None if script is None else Script(script)
        usual = 1.0 if script is None else None
        self._pace = Pace(usual if isinstance(speed, Missing) else speed, sleep)

    @property
    def name(self) -> str:
        """``mock``, ``mock:<scenario>``, or ``mock:script``."""
        variant = "script" if self.script is not None else self.scenario
        return "mock" if variant == "auto" else f"mock:{variant}"

    def __repr__(self) -> str:
        return f"<MockModel {self.name}, seed {self.seed}>"

    def fresh(self) -> Self:
        """Returns a model with the same settings whose script begins with its first reply."""
        made = copy(self)
        made.script = None if self.script is None else self.script.fresh()
        return made

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        """Streams one reply to the last prompt, or to the tool results since then."""
        return faulty(play_reply(self._events(messages, tools), self._pace), self.faults)

    def _events(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        """Plans when the first event is asked for: a request that a fault refuses takes no reply of the script."""
        messages = with_calls(self.dialect, messages)
        plan = self._planned(messages, tools) if self.script is None else self.script.next_plan(messages)
        number = 1 + sum(len(message.calls) for message in messages)
        yield from (
            _native_events(plan, number) if self.dialect == "native" else _text_events(plan, number, self.dialect)
        )

    def _planned(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Plan:
        prompt, calls = _last_turn(messages)
        answer = next((tool for tool in tools if tool.name == ANSWER_TOOL), None)
        others = [tool for tool in tools if tool is not answer]
        calls = [call for call in calls if call.name != ANSWER_TOOL]
        random = Random(f"{self.seed}\0{prompt}\0{len(calls)}")
        plan = SCENARIOS[self.scenario](Situation(prompt, others, calls, random))
        if answer is None or any(isinstance(part, Call) for part in plan):
            return plan
        thoughts = [part for part in plan if isinstance(part, Think)]
        return [*thoughts, Call(answer.name, arguments_for(answer.parameters, prompt, tool=answer.description))]


def _last_turn(messages: Sequence[Message]) -> tuple[str, list[ToolCall]]:
    """The last prompt, and the calls since then."""
    calls: list[ToolCall] = []
    for message in reversed(messages):
        if message.role == "user":
            return message.text, calls
        calls[:0] = message.calls
    return "", calls


def _native_events(plan: Plan, number: int) -> Iterator[Event]:
    for position, part in enumerate(plan, 1):
        match part:
            case Say():
                yield ev.TextStart(f"text-{position}")
                yield ev.TextDelta(f"text-{position}", part.text)
                yield ev.TextEnd(f"text-{position}")
            case Think():
                yield from _reasoning_events(part, position)
            case Call():
                yield ev.ToolInputAvailable(part.id or f"call_{number}", part.name, part.arguments)
                number += 1
            case Raise():
                raise part.error
    yield ev.Finish(finish_reason="tool-calls" if any(isinstance(part, Call) for part in plan) else "stop")


def _text_events(plan: Plan, number: int, dialect: str) -> Iterator[Event]:
    parts: list[TextPart | ToolCall] = []
    error: BaseException | None = None
    for position, part in enumerate(plan, 1):
        match part:
            case Think():
                yield from _reasoning_events(part, position)
            case Say():
                parts.append(TextPart(part.text))
            case Call():
                call_id, state = part.id or f"call_{number}", State.INPUT_AVAILABLE
                parts.append(ToolCall(id=call_id, name=part.name, state=state, input=part.arguments))
                number += 1
            case Raise():
                error = part.error
    if parts or error is None:
        yield ev.TextStart("text-1")
        yield ev.TextDelta("text-1", dialects.find_text_dialect(dialect).write(Message("assistant", tuple(parts))))
        yield ev.TextEnd("text-1")
    if error is not None:
        raise error
    yield ev.Finish(finish_reason="stop")


def _reasoning_events(part: Think, position: int) -> Iterator[Event]:
    yield ev.ReasoningStart(f"reasoning-{position}")
    yield ev.ReasoningDelta(f"reasoning-{position}", part.text)
    yield ev.ReasoningEnd(f"reasoning-{position}")


# Scripts ----------------------------------------------------------------------------------------------------

ScriptedReply: TypeAlias = (
    str
    | tuple[Any, ...]
    | Sequence[Any]
    | BaseException
    | type[BaseException]
    | Callable[[Sequence[Message]], "ScriptedReply"]
)
"""One reply: a text, a call ``(name, arguments)`` or ``(name, arguments, id)``, an exception, `Think`, a list of
these, or a function that gets the messages and returns one of these."""

_EXPECTED = (
    "A reply is a text, a call as a tuple (name, arguments) or (name, arguments, id), an exception, "
    "a list of these, or a function of the messages."
)


class Script:
    """The replies of a mock model, in order: the n-th request gets the n-th reply.

    A request that is repeated after an error is a request of its own. Raises `UsageError`, with the position, for a
    reply that is none.
    """

    def __init__(self, replies: Iterable[ScriptedReply]) -> None:
        if isinstance(replies, str | Mapping) or not isinstance(replies, Iterable):
            raise UsageError(f"A script is a list of replies, but got {replies!r:.100}. {_EXPECTED}")
        self._plans = [_planner(reply, number) for number, reply in enumerate(replies, 1)]
        self._used = 0

    def __len__(self) -> int:
        return len(self._plans)

    @property
    def left(self) -> int:
        """The number of replies that no request has got."""
        return len(self._plans) - self._used

    def fresh(self) -> Script:
        """Returns a script with the same replies, of which none is used."""
        made = copy(self)
        made._used = 0
        return made

    def next_plan(self, messages: Sequence[Message]) -> Plan:
        """Returns the plan for the next request. Raises `ModelError` if the script has ended."""
        if not self.left:
            raise ModelError(self._ended(messages))
        self._used += 1
        return self._plans[self._used - 1](messages)

    def _ended(self, messages: Sequence[Message]) -> str:
        count = f"{len(self)} {'reply' if len(self) == 1 else 'replies'}"
        last = messages[-1] if messages else Message("user")
        content = f"results of {', '.join(call.name for call in last.calls)}" if last.calls else repr(last.text[:80])
        return (
            f"The script of the mock model has {count}, and this is request {self._used + 1}. The last message is of "
            f"the {last.role}: {content}. Add a reply to the script, or see why the model is asked once more."
        )


def _planner(reply: Any, number: int) -> Callable[[Sequence[Message]], Plan]:
    """The function that plans a reply. A reply that is no function is checked at once."""
    if callable(reply) and not isinstance(reply, type):
        return lambda messages: _plan(reply(messages), f"The function that is reply {number} of the script")
    plan = _plan(reply, f"Reply {number} of the script")
    return lambda messages: plan


def _plan(reply: Any, name: str) -> Plan:
    """The plan of a reply; ``name`` is what an error calls a reply that is none."""
    steps = [_step(item, name) for item in reply] if isinstance(reply, list) else [_step(reply, name)]
    end = next((number for number, step in enumerate(steps, 1) if isinstance(step, Raise)), len(steps))
    if end < len(steps):
        raise UsageError(f"{name} goes on after an exception, which ends a reply. Put the exception at its end.")
    return steps


def _step(item: Any, reply_name: str) -> Say | Think | Call | Raise:
    match item:
        case str():
            return Say(item)
        case Say() | Think() | Call() | Raise():
            return item
        case BaseException():
            return Raise(item)
        case (str(name), Mapping() as arguments):
            return Call(name, dict(arguments))
        case (str(name), Mapping() as arguments, str(call_id)):
            return Call(name, dict(arguments), call_id)
    if isinstance(item, type) and issubclass(item, BaseException):
        return Raise(item())
    raise UsageError(f"{reply_name} has {item!r:.100}, which is neither a text nor a call. {_EXPECTED}")
