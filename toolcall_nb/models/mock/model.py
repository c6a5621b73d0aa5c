"""The mock model: it needs no key and no network, and really calls the tools. `MockModel` is the entry point.

The same seed and messages give the same reply, word for word. `toolcall_nb.models.mock.scenarios` plans the replies,
or the script of a test, `toolcall_nb.models.mock.scripts`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from random import Random
from typing import Self

from toolcall_nb import dialects
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Missing
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall
from toolcall_nb.errors import UsageError
from toolcall_nb.models.base import Fault, faulty
from toolcall_nb.models.mock.arguments import arguments_for
from toolcall_nb.models.mock.scenarios import SCENARIOS, Call, Plan, Raise, Say, Situation, Think
from toolcall_nb.models.mock.scripts import Script, ScriptedReply
from toolcall_nb.models.mock.text_calls import with_calls
from toolcall_nb.models.pace import Pace, play_reply
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
        return [*thoughts, Call(answer.name, arguments_for(answer.parameters, prompt, about=answer.description))]


def _last_turn(messages: Sequence[Message]) -> tuple[str, list[ToolCall]]:
    """The last prompt, and the calls since then."""
    calls: list[ToolCall] = []
    for message in reversed(messages):
        if message.role == "user":
            return message.text, calls
        calls[:0] = message.calls
    return "", calls


def _native_events(plan: Plan, number: int) -> Iterator[Event]:
    for place, part in enumerate(plan, 1):
        match part:
            case Say():
                yield ev.TextStart(f"text-{place}")
                yield ev.TextDelta(f"text-{place}", part.text)
                yield ev.TextEnd(f"text-{place}")
            case Think():
                yield from _reasoning_events(part, place)
            case Call():
                yield ev.ToolInputAvailable(part.id or f"call_{number}", part.name, part.arguments)
                number += 1
            case Raise():
                raise part.error
    yield ev.Finish(finish_reason="tool-calls" if any(isinstance(part, Call) for part in plan) else "stop")


def _text_events(plan: Plan, number: int, dialect: str) -> Iterator[Event]:
    for place, part in enumerate(plan, 1):
        if isinstance(part, Think):
            yield from _reasoning_events(part, place)
    error = next((part.error for part in plan if isinstance(part, Raise)), None)
    parts = tuple(_parts_with_ids(plan, number))
    if parts or error is None:
        yield ev.TextStart("text-1")
        yield ev.TextDelta("text-1", dialects.find_text_dialect(dialect).write(Message("assistant", parts)))
        yield ev.TextEnd("text-1")
    if error is not None:
        raise error
    yield ev.Finish(finish_reason="stop")


def _parts_with_ids(plan: Plan, number: int) -> Iterator[TextPart | ToolCall]:
    for part in plan:
        if isinstance(part, Say):
            yield TextPart(part.text)
        elif isinstance(part, Call):
            state = State.INPUT_AVAILABLE
            yield ToolCall(id=part.id or f"call_{number}", name=part.name, state=state, input=part.arguments)
            number += 1


def _reasoning_events(part: Think, place: int) -> Iterator[Event]:
    yield ev.ReasoningStart(f"reasoning-{place}")
    yield ev.ReasoningDelta(f"reasoning-{place}", part.text)
    yield ev.ReasoningEnd(f"reasoning-{place}")
