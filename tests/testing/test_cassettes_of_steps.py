"""A replay has the steps of the recorded run and what was known of each, whatever the model is and goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from toolcall_nb import Chat
from toolcall_nb.approvals import Decision
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message
from toolcall_nb.models.base import ModelWrapper, with_faults
from toolcall_nb.testing import cassette, faults
from toolcall_nb.tools import Tool


def look(n: int) -> int:
    """Looks."""
    return n


def text(text: str) -> list[Event]:
    return [ev.TextStart(text), ev.TextDelta(text, text), ev.TextEnd(text)]


def known(number: int, **more: Any) -> list[Event]:
    state = {"provider": "openai", "endpoint": "abc"}
    usage = {"inputTokens": number}
    return [ev.FinishStep(response_id=f"r-{number}", provider_metadata=state, usage=usage, model=f"m-{number}", **more)]


class Model:
    """A model that calls twice: in each request it answers with what the last message asks for."""

    name = "steps"

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        made = len(messages[-1].calls) if messages[-1].role == "assistant" else 0
        if made < 2:
            yield ev.ToolInputAvailable(f"look:{made}", "look", {"n": made})
            yield from known(made + 1)
            yield ev.Finish(finish_reason="tool-calls")
        else:
            yield from [*text("Done."), *known(3), ev.Finish(finish_reason="length")]


class Agent:
    """An agent that runs a tool itself, with an agent inside of it, and lets the chat run another one."""

    name, may_run_calls = "agent", True

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        if messages[-1].role == "assistant":
            yield from [ev.StartStep(agent="writer"), *text("Done."), *known(3), ev.Finish(finish_reason="stop")]
            return
        yield from [ev.StartStep(agent="planner"), *text("I ask."), ev.ToolInputAvailable("ask:0", "ask", {})]
        yield ev.StartStep(parent="ask:0", agent="finder")
        yield ev.TextStart("i", parent="ask:0")
        yield ev.TextDelta("i", "Inside.", parent="ask:0")
        yield ev.TextEnd("i", parent="ask:0")
        yield ev.FinishStep(parent="ask:0", usage={"inputTokens": 7})
        yield ev.ToolOutputAvailable("ask:0", "asked")
        yield from [*known(1), ev.StartStep(), ev.ToolInputAvailable("look:0", "look", {"n": 1}), *known(2)]
        yield ev.Finish(finish_reason="tool-calls")


QUESTION: dict[str, Any] = {
    **{"title": "Look now?", "message": "It costs money.", "asked_by": "planner", "rule": "look*"},
    **{"response_schema": {"type": "boolean"}, "expires_at": "2031-01-02T03:04:05Z"},
}


class Asker(Agent):
    """An agent that asks before it looks."""

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        if messages[-1].role == "assistant":
            yield from [*text("Done."), ev.Finish(finish_reason="stop")]
            return
        yield ev.ToolInputAvailable("look:0", "look", {"n": 1})
        yield ev.ToolApprovalRequest("asked", "look:0", **QUESTION)
        yield ev.Finish(finish_reason="tool-calls")


ANSWERS: dict[str, Any] = {
    "unasked": None,
    "allowed": lambda request: Decision(True),
    "denied": lambda request: Decision(False, reason="no"),
    "edited": lambda request: Decision(True, input={"n": 5}),
}
FAULTS: dict[str, Any] = {
    "sound": lambda: (),
    "busy": lambda: [faults.on(request=2, status=429)],
    "cut": lambda: [faults.on(request=2, fault=faults.truncate(1))],
}


def run(model: Any, answer: str) -> Chat:
    chat = Chat(model, tools=[look], ask_approval=ANSWERS[answer], pause=lambda _: None)
    chat.send("First?")
    chat.send("Second?")
    return chat


@pytest.mark.parametrize(("kind", "answer", "fault"), [*product([Model, Agent], ANSWERS, FAULTS)])
def test_a_replay_has_the_same_steps_and_facts(
    tmp_path: Path, kind: Callable[[], ModelWrapper], answer: str, fault: str
) -> None:
    path = tmp_path / "steps.jsonl"
    with cassette(path, model=with_faults(kind(), *FAULTS[fault]()), record="all") as tape:
        recorded = run(tape, answer)
    with cassette(path) as tape:
        assert run(tape, answer).transcript == recorded.transcript
    assert [step.response_id for step in recorded.transcript[1].steps][:1] == ["r-1"]


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_replay_asks_what_the_agent_has_asked(tmp_path: Path, answer: str) -> None:
    path = tmp_path / "asked.jsonl"
    with cassette(path, model=Asker(), record="all") as tape:
        recorded = run(tape, answer)
    with cassette(path) as tape:
        replayed = run(tape, answer)
    assert replayed.transcript == recorded.transcript
    approval = next(iter(replayed.transcript.calls.values())).approval
    assert approval is not None
    assert {name: getattr(approval, name) for name in QUESTION} == QUESTION


@pytest.mark.parametrize(("kind", "answer"), [*product([Model, Agent], ANSWERS)])
def test_the_recording_of_a_chat_has_the_steps_and_facts_of_each_reply(
    tmp_path: Path, kind: Callable[[], Any], answer: str
) -> None:
    path = tmp_path / "chat.jsonl"
    recorded = run(kind(), answer)
    recorded.recording.write(path)
    with cassette(path) as tape:
        replayed = run(tape, answer)
    assert replayed.transcript == recorded.transcript


def test_a_request_with_other_steps_is_another_request(tmp_path: Path) -> None:
    class Parallel(Model):
        def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
            if messages[-1].role == "user":
                yield from (ev.ToolInputAvailable(f"look:{n}", "look", {"n": n}) for n in range(2))
            else:
                yield from text("Done.")

    bodies = []
    for number, model in enumerate([Model(), Parallel()]):
        path = tmp_path / f"{number}.jsonl"
        with cassette(path, model=model, record="all") as tape:
            Chat(tape, tools=[look]).send("First?")
        with cassette(path) as tape:
            bodies.append(tape._mode._body(-1, ())["messages"])
            Chat(tape, tools=[look]).send("First?")
    assert [[len(message["parts"]) for message in body] for body in bodies] == [[1, 1, 1], [1, 2]]
