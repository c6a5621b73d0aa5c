"""A failed request is repeated while nothing of its reply has come, and never after that."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

from tests.support.provider_clients import ask_openai
from tests.support.replay_server import ReplayServer, Reply
from toolcall_nb.chat import Chat
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import ErrorPart, Message, State, TextPart
from toolcall_nb.errors import ModelError, UsageError
from toolcall_nb.models import with_faults
from toolcall_nb.models.callable_models import CallableModel
from toolcall_nb.testing.faults import cut
from toolcall_nb.tools import Tool

BUSY = ModelError("Slow down. Try again in 4 s.", may_retry=True, retry_after=4, brief="Rate limited")


class Flaky:
    """A model that yields the events of one list at each request, and raises the exceptions among them."""

    name = "flaky"

    def __init__(self, *replies: Iterable[Event | BaseException]) -> None:
        self._replies = iter(replies)
        self.asked = 0

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        self.asked += 1
        for event in next(self._replies, ()):
            if isinstance(event, BaseException):
                raise event
            yield event


def text(words: str) -> list[Event]:
    return [ev.TextStart("1"), ev.TextDelta("1", words), ev.TextEnd("1")]


def chat_with(*replies: Iterable[Event | BaseException], **options: Any) -> tuple[Chat, list[float]]:
    """A chat that does not wait, and the list of its waiting times."""
    waits: list[float] = []
    return Chat(Flaky(*replies), **{"tools": [], "pause": waits.append, **options}), waits


def asked(chat: Chat) -> int:
    model = chat.model
    assert isinstance(model, Flaky)
    return model.asked


def statuses(events: Iterable[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, ev.Status)]


def test_a_temporary_failure_is_retried() -> None:
    chat, waits = chat_with([BUSY], [BUSY], text("Here."))
    said = statuses(chat.stream("?"))
    assert said == [
        *["Rate limited. Trying again in 4 s (1 of 2)", ""],
        *["Rate limited. Trying again in 4 s (2 of 2)", ""],
    ]
    message = chat.transcript.messages[-1]
    assert message.parts == (TextPart("Here."),)
    assert message.finish_reason is None
    assert (waits, asked(chat)) == ([4, 4], 3)


def test_the_final_error_says_how_often_it_was_tried() -> None:
    chat, waits = chat_with([BUSY], [BUSY], [BUSY], text("Too late."))
    message = chat.send("?")
    assert message.parts == (ErrorPart("Slow down. Try again in 4 s. It was tried 3 times."),)
    assert (message.finish_reason, len(waits), asked(chat)) == ("error", 2, 3)
    assert chat.send("again").text == "Too late."


@pytest.mark.parametrize(
    ("told", "waits"), [(None, [1, 2]), (0, [1, 1]), (2.5, [2.5, 2.5]), (60, [60, 60]), (60.1, []), (3600, [])]
)
def test_a_retry_waits_as_long_as_the_provider_says_up_to_a_limit(told: float | None, waits: list[float]) -> None:
    error = ModelError("Busy.", may_retry=True, retry_after=told)
    chat, waited = chat_with([error], [error], [error])
    chat.send("?")
    assert waited == waits


def test_a_long_wait_is_an_error_that_says_how_long() -> None:
    chat, _ = chat_with([ModelError("Busy.", may_retry=True, retry_after=125)])
    assert chat.send("?").parts == (ErrorPart("Busy. Try again in 2 min 5 s."),)


@pytest.mark.parametrize(
    "error", [ModelError("A wrong key."), RuntimeError("a bug"), ModelError("None left.", retry_after=1)]
)
def test_a_permanent_failure_is_not_retried(error: Exception) -> None:
    chat, waits = chat_with([error], text("x"))
    assert isinstance(chat.send("?").parts[-1], ErrorPart)
    assert (waits, asked(chat)) == ([], 1)


@pytest.mark.parametrize(
    "come",
    [
        text("Half an ans")[:2],
        [ev.ReasoningStart("r")],
        [ev.ToolInputStart("1", "f")],
        [ev.SourceUrl("s", "https://example.org")],
        [ev.TextStart("1")],
        [ev.Finish(finish_reason="stop")],
    ],
)
def test_after_the_first_event_nothing_is_retried_and_the_reply_is_kept(come: list[Event]) -> None:
    chat, waits = chat_with([*come, BUSY], text("again"))
    message = chat.send("?")
    assert (waits, asked(chat)) == ([], 1)
    assert message.parts[-1] == ErrorPart("Slow down. Try again in 4 s.")
    assert message.finish_reason == "error"
    assert chat.send("next").text == "again"


def test_opening_events_do_not_prevent_a_retry() -> None:
    opening: list[Event] = [ev.Start(message_metadata={"model": "m"}), ev.StartStep(), ev.Status("Warming up")]
    chat, waits = chat_with([*opening, BUSY], text("Here."))
    assert chat.send("?").parts == (TextPart("Here."),)
    assert waits == [4]


def test_a_later_request_of_a_turn_is_retried_but_no_tool_runs_twice() -> None:
    ran: list[int] = []

    def f(n: int) -> int:
        """A tool."""
        ran.append(n)
        return n

    called = [ev.ToolInputAvailable("1", "f", {"n": 7})]
    chat, waits = chat_with(called, [BUSY], text("Seven."), tools=[f])
    message = chat.send("?")
    assert (ran, waits, asked(chat)) == ([7], [4], 3)
    assert message.text == "Seven."


def test_a_broken_stream_keeps_its_text_and_runs_none_of_its_calls() -> None:
    ran: list[int] = []

    def f(n: int) -> int:
        """A tool."""
        ran.append(n)
        return n

    died = ConnectionResetError("gone")
    begun = [*text("Let me see."), ev.ToolInputAvailable("1", "f", {"n": 7}), ev.ToolInputStart("2", "f"), died]
    chat, waits = chat_with(begun, text("Better."), tools=[f])
    message = chat.send("?")
    assert (ran, waits) == ([], [])
    assert message.text == "Let me see."
    assert [call.state for call in message.calls] == [State.INTERRUPTED] * 2
    failure = message.parts[-1]
    assert isinstance(failure, ErrorPart)
    assert failure.text.startswith("The connection to the model 'flaky' was lost. Ask again")
    assert chat.send("again").text == "Better."


def test_stop_ends_the_wait_at_once() -> None:
    chat = Chat(Flaky([ModelError("Busy.", may_retry=True, retry_after=60)], text("Too late.")), tools=[])
    for event in chat.stream("?"):
        if isinstance(event, ev.Status) and event.text:
            threading.Timer(0.05, chat.stop).start()  # while it waits: a minute, if nothing ended that
    message = chat.transcript.messages[-1]
    assert (message.aborted, message.parts, asked(chat)) == ("stopped", (), 1)


def test_an_interrupt_ends_the_wait_at_once() -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    chat, _ = chat_with([BUSY], text("Next."), pause=interrupt)
    assert chat.send("?").aborted == "interrupted"
    assert chat.send("again").text == "Next."


def test_the_number_of_retries_can_be_set() -> None:
    chat, waits = chat_with([BUSY], text("x"), retries=0)
    assert chat.send("?").parts == (ErrorPart("Slow down. Try again in 4 s."),)
    assert waits == []
    with pytest.raises(UsageError, match="retries is at least 0, but is -1"):
        Chat("mock", retries=-1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_real_sdk_over_real_http_is_retried() -> None:
    class Sdk:
        name = "sdk"

        def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
            for chunk in ask_openai(server.url):
                yield ev.TextDelta("1", chunk.choices[0].delta.content)

    limit = Reply('{"error": {"message": "Slow down."}}', 429, "application/json", {"retry-after": "7"})
    chunk = '{"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Hi"}}]}'
    waits: list[float] = []
    with ReplayServer(limit, Reply(f"data: {chunk}\n\ndata: [DONE]\n\n")) as server:
        chat = Chat(Sdk(), tools=[], pause=waits.append)
        assert chat.send("?").text == "Hi"
        assert len(server.requests) == 2
    assert waits == [7]


def test_once_mode_shows_the_wait_too() -> None:
    chat, waits = chat_with([BUSY], text("Here."), once=True)
    assert statuses(chat.stream("?"))[0] == "Rate limited. Trying again in 4 s (1 of 2)"
    assert chat.transcript.messages[-1].text == "Here."
    assert waits == [4]


@pytest.mark.parametrize("kind", ["function", "wrapped function"])
def test_the_number_of_tries_says_that_a_models_own_package_may_have_repeated_each(kind: str) -> None:
    requests: list[int] = []

    def ask(messages: Any) -> str:
        for _ in range(3):  # as the clients of SDKs do, unseen
            requests.append(1)
        raise ConnectionError("no route")

    model: Any = CallableModel(ask) if kind == "function" else with_faults(CallableModel(ask), cut(1))
    answer = Chat(model, tools=[], pause=lambda _: None).send("Hi")
    assert len(requests) == 9
    (error,) = [part.text for part in answer.parts if isinstance(part, ErrorPart)]
    assert error.endswith("It was tried 3 times, and the model's own package may have repeated each try.")
