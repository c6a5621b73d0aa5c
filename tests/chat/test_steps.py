"""The steps of a turn: what the loop says of each request, what it passes on from an agent, and how a turn ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from toolcall_nb import Chat, Transcript
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.run_outcome import RunState
from toolcall_nb.core.transcript import Message, Step
from toolcall_nb.core.usage import read_usage
from toolcall_nb.tools import Tool


class Scripted:
    """A model with scripted replies."""

    def __init__(self, *replies: Sequence[Event]) -> None:
        self._replies = iter(replies)

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        yield from next(self._replies)


class Agent(Scripted):
    """An agent, which runs tools of its own."""

    may_run_calls = True


def look(n: int) -> int:
    """Looks."""
    return n


def said(text: str) -> list[Event]:
    return [ev.TextStart(text), ev.TextDelta(text, text), ev.TextEnd(text)]


def called(call_id: str, n: int = 1) -> list[Event]:
    return [ev.ToolInputAvailable(call_id, "look", {"n": n})]


def took(tokens: int, reason: str = "stop", **more: Any) -> list[Event]:
    usage = {"inputTokens": tokens, "outputTokens": 1}
    return [ev.Finish(finish_reason=reason, message_metadata={"usage": usage, "model": "m-1", **more})]


def facts(step: Step) -> tuple[Any, ...]:
    tokens = (step.usage or {}).get("inputTokens")
    return (step.text, [call.id for call in step.calls], step.agent, step.model, tokens, step.response_id)


def chat_of(model: Any, **options: Any) -> Chat:
    return Chat(model, tools=options.pop("tools", [look]), **options)


def test_each_step_says_what_is_known_of_its_request() -> None:
    state = {"provider": "openai", "endpoint": "abc"}
    first = [*called("a"), *called("b"), ev.FinishStep(response_id="r-1", provider_metadata=state), *took(10)]
    second = [*called("c"), *took(20, cost={"USD": "0.5"})]
    chat = chat_of(Scripted(first, second, [*said("Done."), *took(30, "length", model="m-2", responseId="r-3")]))
    message = chat.send("?")
    assert [facts(step) for step in message.steps] == [
        ("", ["a", "b"], None, "m-1", 10, "r-1"),
        ("", ["c"], None, "m-1", 20, None),
        ("Done.", [], None, "m-2", 30, "r-3"),
    ]
    assert [step.finish_reason for step in message.steps] == ["tool-calls", "tool-calls", "length"]
    assert [(step.start.provider_metadata, step.start.cost) for step in message.steps] == [
        (state, None),
        (None, {"USD": "0.5"}),
        (None, None),
    ]
    assert message.metadata["usage"] == {"inputTokens": 60, "outputTokens": 3}
    assert Transcript.from_markdown(chat.transcript.to_markdown()).messages == chat.transcript.messages


def test_of_an_only_step_the_message_says_all_but_the_state() -> None:
    reply = [*said("Hi."), ev.FinishStep(response_id="r-1"), *took(10, responseId="r-1")]
    message = chat_of(Scripted(reply)).send("?")
    assert message.step_starts == ()
    assert facts(message.steps[0]) == ("Hi.", [], None, "m-1", 10, "r-1")
    with_state = [*said("Hi."), ev.FinishStep(provider_metadata={"endpoint": "abc"}), *took(10)]
    (start,) = chat_of(Scripted(with_state)).send("?").step_starts
    assert (start.provider_metadata, start.usage, start.model) == ({"endpoint": "abc"}, None, None)


def test_an_agent_keeps_its_steps_their_agents_and_what_ran_inside_of_its_calls() -> None:
    reply = [
        ev.StartStep(agent="planner"),
        *said("I ask."),
        ev.ToolInputAvailable("ask", "ask", {}),
        ev.StartStep(parent="ask", agent="finder"),
        ev.TextStart("i", parent="ask"),
        ev.TextDelta("i", "Found.", parent="ask"),
        ev.TextEnd("i", parent="ask"),
        ev.Error("It is slow.", parent="ask"),
        ev.FinishStep(parent="ask", usage={"inputTokens": 5}, model="m-0"),
        ev.ToolOutputAvailable("ask", "found"),
        ev.FinishStep(usage={"inputTokens": 1}, model="m-1", response_id="r-1"),
        ev.StartStep(agent="writer"),
        *said("It is there."),
        ev.FinishStep(usage={"inputTokens": 2}, model="m-2", response_id="r-2"),
        ev.Finish(finish_reason="stop", message_metadata={"usage": {"inputTokens": 99}}),
    ]
    message = chat_of(Agent(reply), max_tokens=100).send("?")
    assert [facts(step) for step in message.steps] == [
        ("I ask.", ["ask"], "planner", "m-1", 1, "r-1"),
        ("It is there.", [], "writer", "m-2", 2, "r-2"),
    ]
    nested = [start for start in message.step_starts if start.parent == "ask"]
    assert [(start.agent, start.model, start.usage) for start in nested] == [("finder", "m-0", {"inputTokens": 5})]
    assert message.text == "I ask.\n\nIt is there."
    assert message.error is None
    assert message.metadata["usage"] == {"inputTokens": 8} == read_usage([message]).usage


def test_text_after_a_result_of_the_same_reply_begins_a_step() -> None:
    reply = [*called("1"), ev.ToolOutputAvailable("1", 1), *said("One."), *took(3)]
    message = chat_of(Agent(reply)).send("?")
    assert [facts(step)[:2] for step in message.steps] == [("", ["1"]), ("One.", [])]
    search: list[Event] = [
        ev.ToolInputAvailable("p", "search", {}, provider_executed=True),
        ev.ToolOutputAvailable("p", 1),
    ]
    message = chat_of(Agent([*search, *said("One."), *took(3)])).send("?")
    assert [facts(step)[:2] for step in message.steps] == [("One.", ["p"])]


def test_one_id_in_two_steps_is_two_calls_that_keep_the_provider_s_id() -> None:
    step = [*called("look:0"), ev.ToolOutputAvailable("look:0", 1)]
    chat = chat_of(Agent([*step, ev.StartStep(), *step, *took(3)], [*step, *took(3)]))
    chat.send("?")
    chat.send("And now?")
    assert [(call.id, call.provider_id, call.output) for call in chat.calls.values()] == [
        ("look:0", None, 1),
        ("look:0-2", "look:0", 1),
        ("look:0-3", "look:0", 1),
    ]


def test_what_is_known_of_a_step_is_kept_when_its_calls_are_interrupted() -> None:
    def stop(n: int) -> int:
        """Is interrupted."""
        raise KeyboardInterrupt

    reply = [ev.ToolInputAvailable("1", "stop", {"n": 1}), ev.FinishStep(response_id="r-1"), *took(10)]
    chat = chat_of(Scripted(reply), tools=[stop])
    message = chat.send("?")
    assert message.aborted == "interrupted"
    assert facts(message.steps[0]) == ("", ["1"], None, "m-1", 10, "r-1")
    assert chat.transcript.outcome.state is RunState.INTERRUPTED


@pytest.mark.parametrize(
    "limit", [{"max_steps": 1}, {"max_tokens": 5}, {"max_cost": 0.01}, {"max_calls": 0}, {"max_seconds": 1}]
)
def test_a_limit_is_the_end_of_the_turn(limit: dict[str, Any]) -> None:
    times = iter(range(0, 1000, 2))
    model = Scripted([*called("1"), *took(10, cost={"USD": "0.02"})], said("Never."))
    chat = chat_of(model, clock=lambda: float(next(times)), **limit)
    message = chat.send("?")
    assert (message.finish_reason, chat.transcript.outcome.state) == ("limit", RunState.LIMIT)


def test_tokens_of_runs_inside_of_calls_count_for_the_limit() -> None:
    reply = [
        ev.ToolInputAvailable("ask", "ask", {}),
        ev.StartStep(parent="ask"),
        ev.FinishStep(parent="ask", usage={"inputTokens": 90}),
        ev.ToolOutputAvailable("ask", 1),
        *called("1"),
        ev.FinishStep(usage={"inputTokens": 20}),
    ]
    chat = chat_of(Agent(reply, said("Never.")), max_tokens=100)
    assert chat.send("?").finish_reason == "limit"
    assert chat.account.turn.tokens == 110
