"""A turn beside a running event loop: `Chat.asend` and `Chat.astream`."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

import pytest

from toolcall_nb.approvals import Decision
from toolcall_nb.chat import Chat
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message, State, ToolCall
from toolcall_nb.errors import UsageError
from toolcall_nb.models import MockModel
from toolcall_nb.tools import Tool

_T = TypeVar("_T")

WHERE: contextvars.ContextVar[str] = contextvars.ContextVar("where", default="nowhere")
LONG = 30.0
"""Seconds that no test waits for."""


def run(body: Callable[[], Awaitable[_T]]) -> _T:
    async def within() -> _T:
        async with asyncio.timeout(LONG):
            return await body()

    return asyncio.run(within())


def chat_with(*script: Any, tools: Sequence[Any] = (), **options: Any) -> Chat:
    return Chat(MockModel(script=script), tools=list(tools), **options)


async def everything(events: AsyncGenerator[Event, None]) -> list[Event]:
    return [event async for event in events]


class Endless:
    """A model that says one word, and then nothing until it is closed."""

    name = "endless"

    def __init__(self) -> None:
        self.has_begun = threading.Event()

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        yield ev.TextStart("1")
        yield ev.TextDelta("1", "So")
        self.has_begun.set()
        while True:
            threading.Event().wait(0.01)


def test_asend_returns_the_message_that_answers() -> None:
    def double(n: int) -> int:
        return 2 * n

    chat = chat_with([("double", {"n": 21})], "It is 42.", tools=[double])
    message = run(lambda: chat.asend("Double 21"))
    assert message == chat.transcript.messages[-1]
    assert message.text == "It is 42."
    assert message.calls[0].output == 42


def test_astream_yields_the_same_events_as_stream() -> None:
    def script() -> Chat:
        return chat_with([("f", {})], "Done.", tools=[f])

    def f() -> int:
        return 1

    assert run(lambda: everything(script().astream("Go"))) == [*script().stream("Go")]


def test_the_loop_goes_on_while_a_tool_blocks_its_thread() -> None:
    released = threading.Event()

    def wait() -> str:
        return "released" if released.wait(LONG) else "not released"

    async def body() -> Message:
        turn = asyncio.create_task(chat.asend("Wait"))
        await asyncio.sleep(0)
        released.set()  # only reached if the loop is free
        return await turn

    chat = chat_with([("wait", {})], "Done.", tools=[wait])
    assert run(body).calls[0].output == "released"


def test_what_a_tool_prints_comes_while_it_runs() -> None:
    seen = threading.Event()

    def speak() -> str:
        print("half")
        return "heard" if seen.wait(LONG) else "not heard"

    async def body() -> list[Event]:
        events = []
        async for event in chat.astream("Speak"):
            events.append(event)
            if isinstance(event, ev.ToolLog):
                seen.set()
        return events

    chat = chat_with([("speak", {})], "Done.", tools=[speak])
    assert any(isinstance(event, ev.ToolLog) for event in run(body))
    assert chat.calls[0].output == "heard"


def test_tools_see_the_context_variables_of_the_caller() -> None:
    def place() -> str:
        return WHERE.get()

    async def body() -> Message:
        WHERE.set("in the cell")
        return await chat.asend("Where?")

    chat = chat_with([("place", {})], "There.", tools=[place])
    assert run(body).calls[0].output == "in the cell"


def test_an_async_tool_runs() -> None:
    async def later(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    chat = chat_with([("later", {"n": 1})], "Two.", tools=[later])
    assert run(lambda: chat.asend("Go")).calls[0].output == 2


def test_a_person_is_asked_and_may_edit() -> None:
    def double(n: int) -> int:
        return 2 * n

    def ask(call: ToolCall) -> Decision:
        return Decision(True, input={"n": 4})

    chat = chat_with([("double", {"n": 3})], "Eight.", tools=[double], ask_approval=ask)
    message = run(lambda: chat.asend("Double 3"))
    assert (message.calls[0].output, message.calls[0].original_input) == (8, {"n": 3})


def test_cancelling_the_task_stops_the_turn() -> None:
    async def body() -> None:
        task = asyncio.create_task(chat.asend("Go"))
        await asyncio.to_thread(model.has_begun.wait, LONG)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    model = Endless()
    chat = Chat(model, tools=[])
    run(body)
    answer = chat.transcript.messages[-1]
    assert (answer.text, answer.aborted) == ("So", "stopped")


def test_cancelling_the_task_stops_a_tool_that_waits() -> None:
    has_begun = threading.Event()

    async def wait() -> None:
        has_begun.set()
        await asyncio.sleep(LONG)

    async def body() -> None:
        task = asyncio.create_task(chat.asend("Go"))
        await asyncio.to_thread(has_begun.wait, LONG)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    chat = chat_with([("wait", {})], "Done.", "And on.", tools=[wait])
    run(body)
    assert chat.calls[0].state is State.INTERRUPTED
    assert run(lambda: chat.asend("Go on")).text == "Done."


def test_a_reader_that_stops_reading_ends_the_turn() -> None:
    async def body() -> None:
        async with aclosing(chat.astream("Go")) as events:
            async for event in events:
                if isinstance(event, ev.TextDelta):
                    break

    chat = Chat(Endless(), tools=[])
    run(body)
    chat.model = MockModel(script=["Here."])
    assert chat.send("Again").text == "Here."  # the chat is free again


def test_a_turn_that_cannot_begin_is_refused_at_once() -> None:
    chat = chat_with("Hello.")
    with pytest.raises(UsageError, match="A prompt is text"):
        chat.astream(3)  # type: ignore[arg-type] # what is tested


def test_turns_of_several_chats_run_beside_each_other() -> None:
    both = threading.Barrier(2, timeout=LONG)

    def meet() -> int:
        return both.wait()

    async def body() -> list[Message]:
        chats = [chat_with([("meet", {})], "Met.", tools=[meet]) for _ in range(2)]
        return [*await asyncio.gather(*(chat.asend("Meet") for chat in chats))]

    assert {message.calls[0].output for message in run(body)} == {0, 1}
