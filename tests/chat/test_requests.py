"""Requests are what happened: each is the beginning of the next, whoever writes it and whatever the turn was."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from copy import deepcopy
from itertools import pairwise
from operator import is_
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from tests.support.call_counts import counted
from toolcall_nb import Chat, dialects
from toolcall_nb.adapters.anthropic.request_messages import to_anthropic
from toolcall_nb.adapters.openai.messages import to_openai
from toolcall_nb.agents.openai_agent import responses_input
from toolcall_nb.approvals import Decision
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message, Transcript
from toolcall_nb.errors import ModelError
from toolcall_nb.models.providers.history import history_of
from toolcall_nb.testing.request_bodies import message_bodies, message_groups
from toolcall_nb.tools import Tool


def look(n: int) -> int:
    """Looks."""
    return n


def fail(n: int) -> int:
    """Fails."""
    raise ValueError(f"no {n}")


TOOLS = [Tool.from_function(look, parallel=True), Tool.from_function(fail)]


def provider_history(provider: str) -> Callable[[Sequence[Message]], list[Any]]:
    """The parts of requests and responses: neighbours of one kind are joined. Without the times of their making.

    A request ends with a message of the user. Where there is none, "Go on." stands there, which the next does not have.
    """

    def write(messages: Sequence[Message]) -> list[Any]:
        written: Any = ModelMessagesTypeAdapter.dump_python(history_of(messages, provider), mode="json")
        parts = [(message["kind"], without_times(part)) for message in written for part in message["parts"]]
        return parts[:-1] if parts[-1][1]["content"] == "Go on." else parts

    return write


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(item) for name, item in value.items() if name != "timestamp"}
    return [*map(without_times, value)] if isinstance(value, list) else value


def text_dialect(name: str) -> Callable[[Sequence[Message]], list[Any]]:
    def write(messages: Sequence[Message]) -> list[Any]:
        return [(one.role, one.text) for one in dialects.find_dialect(name).write_history(messages, ("look", "fail"))]

    return write


WRITERS: dict[str, Callable[[Sequence[Message]], list[Any]]] = {
    "openai": to_openai,
    "anthropic": lambda messages: to_anthropic(messages)["messages"],
    "openai agents": responses_input,
    "cassette": lambda messages: message_bodies(message_groups(messages)),
    **{f"provider {name}": provider_history(name) for name in ("openai", "anthropic", "mistral")},
    **{f"dialect {name}": text_dialect(name) for name in ("callout", "signature", "json")},
}


class Scripted:
    """A model with scripted replies, which keeps the messages of each request."""

    def __init__(self, *replies: Sequence[Event | Exception]) -> None:
        self._replies = iter(replies)
        self.requests: list[tuple[Message, ...]] = []

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        reply = next(self._replies, said("Enough."))
        if not isinstance(reply[0], Exception):
            self.requests.append(tuple(messages))
        for event in reply:
            if isinstance(event, Exception):
                raise event
            yield event


def said(text: str) -> list[Event]:
    return [ev.TextStart(text), ev.TextDelta(text, text), ev.TextEnd(text)]


def thought(text: str) -> list[Event]:
    return [ev.ReasoningStart(text), ev.ReasoningDelta(text, text), ev.ReasoningEnd(text)]


def called(call_id: str, name: str = "look", **more: Any) -> list[Event]:
    return [ev.ToolInputAvailable(call_id, name, {"n": 1}, **more)]


def provider_ran(call_id: str) -> list[Event]:
    return [*called(call_id, "search", provider_executed=True), ev.ToolOutputAvailable(call_id, "found")]


def with_inner_run(call_id: str) -> list[Event]:
    """A call of an agent's own tool, with what ran inside of it, and its result."""
    inner = {"parent": call_id}
    return [
        *called(call_id, "ask"),
        ev.StartStep(parent=call_id, agent="inner"),
        ev.TextStart("i", parent=call_id),
        ev.TextDelta("i", "Inside.", parent=call_id),
        ev.TextEnd("i", parent=call_id),
        *called(f"{call_id}/1", tool_metadata=inner),
        ev.ToolOutputAvailable(f"{call_id}/1", 1),
        ev.FinishStep(parent=call_id),
        ev.ToolOutputAvailable(call_id, "asked"),
    ]


CONTENTS = st.one_of(
    st.sampled_from(["Well.", "So.", "Then."]).map(said),
    st.just("Hm.").map(thought),
    st.sampled_from(["a", "b"]).map(called),
    st.sampled_from(["a", "b"]).map(lambda call_id: called(call_id, "fail")),
    st.just("a").map(lambda call_id: called(call_id, "unknown")),
    st.just("p").map(provider_ran),
    st.just("s").map(with_inner_run),
)
REPLIES = st.lists(CONTENTS, min_size=1, max_size=4).map(lambda contents: [event for one in contents for event in one])
FAILURES = st.just([ModelError("Busy.", may_retry=True)])


@pytest.mark.parametrize("writer", WRITERS)
@settings(max_examples=10)
@given(turns=st.lists(st.lists(REPLIES | FAILURES, min_size=1, max_size=4), min_size=1, max_size=2), data=st.data())
def test_each_request_is_the_beginning_of_the_next(writer: str, turns: list[Any], data: st.DataObject) -> None:
    def decide(request: Any) -> Decision:
        return data.draw(st.sampled_from([Decision(True), Decision(False), Decision(True, input={"n": 2})]))

    model = Scripted(*(reply for turn in turns for reply in (*turn, said("Done."))))
    chat = Chat(model, tools=TOOLS, ask_approval=decide, pause=lambda _: None, max_steps=9)
    for number in range(len(turns)):
        chat.send(f"Question {number}")
    write = WRITERS[writer]
    requests = [write(messages) for messages in model.requests]
    for before, after in pairwise(requests):
        assert after[: len(before)] == before
    loaded = Transcript.from_markdown(chat.transcript.to_markdown())
    assert write(loaded.messages) == write(chat.transcript.messages)


def look_once(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Answers as OpenAI does: with a call, and then with a text."""
    call = {"id": f"c{len(messages)}", "type": "function", "function": {"name": "look", "arguments": '{"n": 1}'}}
    calls = [] if messages[-1]["role"] == "tool" else [call]
    message = {"role": "assistant", "content": "Well.", "tool_calls": calls}
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


async def look_once_streamed(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str | dict[int, Any]]:
    """Answers as a provider of pydantic-ai does: with a call, and then with a text."""
    is_told = messages[-1].parts[-1].part_kind == "tool-return"
    yield "Well." if is_told else {0: DeltaToolCall("look", '{"n": 1}', tool_call_id=f"c{len(messages)}")}


LOOK_UPS = {"Value.once", "_History.ask", "_History.answer", "RequestCallIds.next_id"}
"""The functions that put a provider's request together from what each message was converted to."""


@pytest.mark.parametrize(
    ("model", "per_message"),
    [
        (look_once, set[str]()),
        (Scripted(), set[str]()),
        (FunctionModel(stream_function=look_once_streamed), LOOK_UPS),
    ],
    ids=["function", "class", "provider"],
)
def test_a_late_turn_enters_the_same_functions_as_an_early_one(model: Any, per_message: set[str]) -> None:
    """So what was converted for one request is not converted again for the next."""
    chat = Chat(model, tools=TOOLS)
    turns = []
    for number in range(7):
        with counted() as calls:
            chat.send(f"Question {number}")
        turns.append({name: n for (_, name), n in calls.items() if name.partition(".<locals>")[0] not in per_message})
    assert turns[-1] == turns[3]


class NotComparable:
    """A value such as an array, of which `==` is no truth value."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("content", ["Changed.", NotComparable()])
def test_a_function_may_change_what_it_gets_and_the_next_request_is_as_before(content: Any) -> None:
    requests: list[Any] = []

    def changing(messages: list[dict[str, Any]]) -> Any:
        requests.append(deepcopy(messages))
        reply = look_once(messages)
        for message in messages:
            message["content"] = content
            for call in message.get("tool_calls", ()):
                call["function"]["arguments"] = "Changed."
        messages.clear()
        return reply

    chat = Chat(changing, tools=TOOLS)
    chat.send("One")
    chat.send("Two")
    for before, after in pairwise(requests):
        assert after[: len(before)] == before
    assert requests[-1] == to_openai(chat.transcript.messages)[:-1]


def test_a_function_gets_the_same_dicts_in_each_request_as_long_as_it_does_not_change_them() -> None:
    requests: list[list[dict[str, Any]]] = []

    def keeping(messages: list[dict[str, Any]]) -> Any:
        requests.append(messages)
        return look_once(messages)

    chat = Chat(keeping, tools=TOOLS)
    chat.send("One")
    chat.send("Two")
    for before, after in pairwise(requests):
        assert all(map(is_, before, after))
