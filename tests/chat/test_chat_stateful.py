"""Whatever models send and users do: a call runs at most once, ends once, and the next turn works."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.support.profile import share_of
from toolcall_nb.approvals import Decision
from toolcall_nb.chat import Chat
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.reducer import TranscriptBuilder
from toolcall_nb.core.transcript import Message, State, ToolCall, Transcript
from toolcall_nb.dialects import DIALECTS
from toolcall_nb.errors import ModelError
from toolcall_nb.models import MockModel, with_faults
from toolcall_nb.models.mock.scenarios import SCENARIOS
from toolcall_nb.testing import faults
from toolcall_nb.tools import Registry, Tool

# What models send -------------------------------------------------------------------------------------------

IDS = st.sampled_from(["", "1", "2", "call_1", "tool-call-1"])
NAMES = st.sampled_from(["f", "raises", "interrupts", "beside", "yields", "nope", ""])
INPUTS: st.SearchStrategy[object] = st.sampled_from([{}, {"n": 1}, {"n": "x"}, None, [], "text"])
TEXTS = st.sampled_from(
    [
        "a",
        "\n\n",
        "> [!tool f 1]\n",
        "> input:\n>   n: 1\n",
        "> output: 2\n",
        "> [!tool f]\n",
        "> {",
        "\n###: {",
        '"toolName": "f", "parameters": {"n": 1}}',
        '"toolName": "beside"}',
        "\n```json\n",
        '{"tool": "f", "params": {"n": 1}}',
        '{"tool": "yields", "params": {',
        "}}\n```\n",
        "\ud83d",
        "\udc4d",
    ]
)

EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(ev.TextStart, IDS),
    st.builds(ev.TextDelta, IDS, TEXTS),
    st.builds(ev.TextDelta, st.just("1"), TEXTS),
    st.builds(ev.TextEnd, IDS),
    st.builds(ev.ReasoningDelta, IDS, TEXTS),
    st.builds(ev.ReasoningEnd, IDS),
    st.builds(ev.ToolInputStart, IDS, NAMES),
    st.builds(ev.ToolInputDelta, IDS, st.sampled_from(["{", '"n"', ": 1}"])),
    st.builds(ev.ToolInputAvailable, IDS, NAMES, INPUTS, provider_executed=st.sampled_from([None, None, None, True])),
    st.builds(ev.ToolInputError, IDS, NAMES, INPUTS, st.just("wrong")),
    st.builds(ev.ToolOutputAvailable, IDS, st.integers(), preliminary=st.sampled_from([None, True])),
    st.builds(ev.ToolOutputError, IDS, st.just("failed")),
    st.builds(ev.ToolRetracted, IDS, successor=st.none() | IDS),
    st.builds(ev.ToolApprovalRequest, st.just("approval"), IDS),
    st.builds(ev.ToolInterrupted, IDS),
    st.builds(ev.Finish, finish_reason=st.sampled_from([None, "stop", "length"])),
    st.sampled_from([ev.Start(), ev.StartStep(), ev.FinishStep(), ev.ResetStep(), ev.Error("e"), ev.Abort()]),
)
REPLIES = st.lists(st.lists(EVENTS, max_size=12), max_size=3)
FAULTS = st.lists(
    st.one_of(
        st.builds(faults.cut, st.integers(1, 9)),
        st.builds(faults.random_cuts, st.integers(0, 99)),
        st.sampled_from([faults.malformed_call(), faults.duplicate_id(), faults.missing_id()]),
        st.builds(faults.abort, st.integers(0, 40)),
        st.builds(faults.truncate, st.integers(0, 40)),
        st.builds(faults.disconnect, st.integers(0, 40)),
    ),
    max_size=3,
)
EVERY_DIALECT = st.sampled_from(["native", *DIALECTS])
ANSWERS = st.lists(
    st.sampled_from(
        [
            *[Decision(True), Decision(True), Decision(True, scope="chat"), Decision(False, "no"), Decision(False)],
            *[Decision(True, input={"n": 5}), Decision(True, input={"m": 5}), Decision(True, input={1, 2})],
            *[KeyboardInterrupt(), OSError("nobody")],
        ]
    ),
    min_size=1,
    max_size=4,
)


class Script:
    """A model that yields these replies and then fails."""

    def __init__(self, replies: Sequence[Sequence[Event]]) -> None:
        self._replies = iter(replies)

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        reply = next(self._replies, None)
        if reply is None:
            raise ModelError("Nothing more to say.")
        yield from reply


class Conversation(RuleBasedStateMachine):
    """Turns with working and failing models, read to the end or not."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[str] = []
        self.interrupted = 0
        tools = Registry([self.f, self.raises, self.interrupts, self.yields])
        tools.add(Tool.from_function(self.beside, parallel=True))
        self.answers: list[Any] = [Decision(True)]
        self.chat = Chat(tools=tools, max_steps=4, ask_approval=self.answer, approval_mode="ask")
        self.seen = TranscriptBuilder()
        self.whole = True  # every event so far was seen
        self.starts_early = False

    def f(self, n: int) -> int:
        """Count."""
        self.runs.append("f")
        return n

    def raises(self, n: int = 0) -> None:
        """Fail."""
        self.runs.append("raises")
        raise ValueError(n)

    def interrupts(self) -> None:
        """Be interrupted by the user."""
        self.interrupted += 1
        raise KeyboardInterrupt

    def yields(self, n: int = 2) -> Iterator[int]:
        """Count up."""
        self.runs.append("yields")
        print("counting")
        yield from range(min(n, 3) + 1)

    def beside(self, n: int = 0) -> int:
        """Run in parallel."""
        self.runs.append("beside")
        print("beside\r")
        return n

    def answer(self, call: ToolCall) -> Decision:
        """The answers of the approver, in order."""
        assert call.state is State.INPUT_AVAILABLE
        said = self.answers[len(self.chat.calls) % len(self.answers)]
        if isinstance(said, BaseException):
            raise said
        assert isinstance(said, Decision)
        return said

    def turn(self, model: Any, dialect: str, after: int | None, how: str) -> list[Event]:
        self.chat.model, self.chat.dialect = model, dialect
        self.chat.eager = self.starts_early and how == "read"  # otherwise a tool may be cut off in its thread
        stream = self.chat.stream("f of 12 and raises, twice")
        events = list(itertools.islice(stream, after))
        if how == "close":
            stream.close()
        elif how == "stop":
            self.chat.stop()
            events += stream
        else:
            events += stream
        for event in events:
            self.seen.apply(event)
        if how == "close":  # what was not seen is taken over
            self.seen = TranscriptBuilder(self.chat.transcript)
        return events

    @rule(scenario=st.sampled_from(list(SCENARIOS)), dialect=EVERY_DIALECT, these=FAULTS, seed=st.integers(0, 5))
    def a_mock_with_faults(self, scenario: str, dialect: str, these: list[faults.Fault], seed: int) -> None:
        model = MockModel(seed, scenario, dialect=dialect, speed=None)
        self.turn(with_faults(model, *these), dialect, None, "read")

    @rule(replies=REPLIES, dialect=EVERY_DIALECT)
    def a_model_that_sends_anything(self, replies: list[list[Event]], dialect: str) -> None:
        self.turn(Script(replies), dialect, None, "read")

    @rule(replies=REPLIES, dialect=EVERY_DIALECT, after=st.integers(0, 30), how=st.sampled_from(["stop", "close"]))
    def a_turn_that_is_ended_early(self, replies: list[list[Event]], dialect: str, after: int, how: str) -> None:
        self.turn(Script(replies), dialect, after, how)

    @rule(dialect=EVERY_DIALECT)
    def a_good_model_is_understood(self, dialect: str) -> None:
        before = len(self.chat.calls)
        self.answers = [Decision(True)]
        events = self.turn(MockModel(scenario="call", dialect=dialect, speed=None), dialect, None, "read")
        assert isinstance(events[-1], ev.Finish)
        assert len(self.chat.calls) == before + 1
        assert self.chat.transcript.messages[-1].text

    @rule(
        approve=st.sampled_from(["auto", "never", "ask", "ask"]),
        answers=ANSWERS,
        once=st.booleans(),
        eager=st.booleans(),
    )
    def settings_change(self, approve: Any, answers: list[Any], once: bool, eager: bool) -> None:
        self.chat.approval_mode, self.answers, self.chat.once, self.starts_early = approve, answers, once, eager
        self.chat.remembered_approvals.clear()

    @precondition(lambda self: self.chat.transcript.messages)
    @rule()
    def the_transcript_is_loaded_again(self) -> None:
        before = self.chat.transcript
        self.chat.load(before)
        assert self.chat.transcript == before
        self.seen = TranscriptBuilder(before)
        self.runs.clear()

    @invariant()
    def every_call_has_ended(self) -> None:
        assert all(call.is_final for call in self.chat.calls.values())

    @invariant()
    def no_two_calls_share_an_id(self) -> None:
        ids = [call.id for message in self.chat.transcript.messages for call in message.calls]
        assert len(ids) == len(set(ids))
        assert all(ids)

    @invariant()
    def every_call_ran_at_most_once(self) -> None:
        assert len(self.runs) == sum(not outcome.wrong_input for outcome in self.chat.outcomes.values())
        assert self.chat.outcomes.keys() <= self.chat.calls.keys()

    @invariant()
    def what_a_person_did_not_allow_did_not_run(self) -> None:
        denied = [call for call in self.chat.calls.values() if call.state is State.OUTPUT_DENIED]
        assert not self.chat.outcomes.keys() & {call.id for call in denied}

    @invariant()
    def what_was_seen_is_what_is_stored(self) -> None:
        assert self.seen.transcript == self.chat.transcript

    @invariant()
    def every_message_is_closed_and_every_prompt_kept(self) -> None:
        messages = self.chat.transcript.messages
        assert all(message.text.startswith("f of 12") for message in messages if message.role == "user")
        assert not any(message.calls for message in messages if message.role != "assistant")

    @invariant()
    def it_can_be_written_and_read_back(self) -> None:
        transcript = self.chat.transcript
        assert Transcript.from_markdown(transcript.to_markdown()) == transcript


Conversation.TestCase.settings = settings(max_examples=share_of(150), stateful_step_count=8)
TestConversation = Conversation.TestCase
