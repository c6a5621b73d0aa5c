"""Limits of a turn in tokens, cost, seconds and calls, and what `chat.account` says was spent."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from toolcall_nb.chat import Chat
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import DataPart, ErrorPart, Message, State, Transcript
from toolcall_nb.errors import UsageError
from toolcall_nb.models import MockModel, model
from toolcall_nb.render import to_html, to_text
from toolcall_nb.tools import Tool


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Priced:
    """A model that calls a tool in each reply, and reports what the reply cost."""

    name = "priced"
    has_price = True

    def __init__(self, *, tokens: int = 100, cost: str | None = "0.10", replies: int = 5) -> None:
        self.requests = 0
        self._replies = replies
        self._metadata: dict[str, Any] = {"usage": {"inputTokens": tokens - 10, "outputTokens": 10}}
        if cost is not None:
            self._metadata["cost"] = {"USD": cost}

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        self.requests += 1
        if self.requests < self._replies:
            yield ev.ToolInputAvailable(f"call_{self.requests}", "note", {"n": self.requests})
        else:
            yield from (ev.TextStart("1"), ev.TextDelta("1", "Done."), ev.TextEnd("1"))
        yield ev.Finish(message_metadata=self._metadata)


def chat_with(model: Any, **options: Any) -> tuple[Chat, list[int]]:
    """A chat whose tool notes its calls."""
    noted: list[int] = []

    def note(n: int) -> int:
        noted.append(n)
        return n

    return Chat(model, tools=[note], **options), noted


def errors(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, ErrorPart)]


def test_the_turn_ends_at_the_limit_of_tokens_and_says_how_to_go_on() -> None:
    model = Priced(tokens=100)
    chat, noted = chat_with(model, max_tokens=200, clock=Clock())
    answer = chat.send("Go")
    assert (model.requests, noted) == (2, [1])
    assert (answer.calls[-1].state, answer.calls[-1].error) == (State.INTERRUPTED, None)
    assert errors(answer) == [
        "The turn ended: the limit of 200 tokens is reached. It has spent 200 tokens, $0.20, 1 call. "
        "Ask again to go on, or raise max_tokens (--max-tokens)."
    ]


def test_the_next_turn_has_the_whole_limit_again() -> None:
    chat, noted = chat_with(Priced(tokens=100, replies=4), max_tokens=200)
    chat.send("Go")
    answer = chat.send("Go on")
    assert answer.text == "Done."
    assert noted == [1, 3]


def test_the_turn_ends_at_the_limit_of_cost() -> None:
    chat, noted = chat_with(Priced(cost="0.20"), max_cost=0.50)
    answer = chat.send("Go")
    assert noted == [1, 2]
    assert "the limit of $0.50 is reached" in errors(answer)[0]
    assert "raise max_cost (--max-cost)" in errors(answer)[0]
    assert chat.account.cost == {"USD": Decimal("0.60")}


def test_an_answer_that_is_complete_is_no_error_even_above_the_limit() -> None:
    chat, _ = chat_with(Priced(tokens=100, replies=1), max_tokens=50, max_cost=0.01)
    answer = chat.send("Go")
    assert (answer.text, errors(answer)) == ("Done.", [])


def test_calls_over_the_limit_are_not_run_and_are_interrupted() -> None:
    replies = [[("note", {"n": n}) for n in range(4)], "Never said."]
    chat, noted = chat_with(MockModel(script=replies), max_calls=2)
    answer = chat.send("Go")
    assert noted == [0, 1]
    assert [call.state for call in answer.calls[2:]] == [State.INTERRUPTED] * 2
    assert chat.account.calls == 2
    assert "The turn ended: the limit of 2 calls is reached." in errors(answer)[0]


@pytest.mark.parametrize("limit", [{"max_calls": 1}, {"max_tokens": 50}, {"max_cost": 0.1}, {"max_steps": 1}], ids=str)
@pytest.mark.parametrize("eager", [False, True])
def test_a_limit_that_was_reached_is_said_once(limit: dict[str, Any], eager: bool) -> None:
    chat, _ = chat_with(Priced(tokens=100), eager=eager, **limit)
    (sentence,) = errors(chat.send("Go"))
    html, text = to_html(chat.transcript), to_text(chat.transcript)
    for written in (text, re.sub("<[^>]+>", " ", html)):
        assert written.count("limit") == sentence.count("limit")
        assert "Ended early" not in written
    assert chat.send("Go on").calls


def test_the_model_may_answer_after_the_last_call_that_is_allowed() -> None:
    chat, noted = chat_with(MockModel(script=[[("note", {"n": 1})], "Done."]), max_calls=1)
    answer = chat.send("Go")
    assert (answer.text, noted, errors(answer)) == ("Done.", [1], [])


def test_no_call_at_all_can_be_allowed() -> None:
    chat, noted = chat_with(MockModel(script=[[("note", {"n": 1})]]), max_calls=0)
    chat.send("Go")
    assert noted == []


def test_a_typed_answer_counts_as_no_call() -> None:
    chat, _ = chat_with(MockModel(script=[[("final_answer", {"answer": 3})]]), max_calls=0)
    assert chat.send("How many?", output=int).output == 3


def test_the_time_is_checked_before_each_call() -> None:
    clock = Clock()

    def slow() -> str:
        clock.now += 6
        return "done"

    chat = Chat(
        MockModel(script=[[("slow", {}), ("slow", {}), ("slow", {})]]), tools=[slow], max_seconds=10, clock=clock
    )
    answer = chat.send("Go")
    assert [call.state for call in answer.calls] == [State.OUTPUT_AVAILABLE, State.OUTPUT_AVAILABLE, State.INTERRUPTED]
    assert "the limit of 10 s is reached. It has spent 0 tokens, 12.0 s, 2 calls" in errors(answer)[0]
    assert chat.account.seconds == 12


def test_a_reply_that_streams_too_long_is_cut() -> None:
    clock = Clock()
    was_closed = threading.Event()

    class Talking:
        def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
            try:
                yield ev.TextStart("1")
                while True:
                    clock.now += 1
                    yield ev.TextDelta("1", "la ")
            finally:
                was_closed.set()

    chat = Chat(Talking(), tools=[], max_seconds=3, clock=clock)
    answer = chat.send("Sing")
    assert answer.text == "la la la "
    assert "the limit of 3 s is reached" in errors(answer)[0]
    assert was_closed.is_set()


def test_a_model_that_says_nothing_is_cut_too() -> None:
    clock = Clock()

    async def silent(messages: Any) -> AsyncIterator[str]:
        yield "One moment."
        await asyncio.sleep(60)

    chat = Chat(silent, tools=[], max_seconds=5, clock=clock)
    for event in chat.stream("Hello"):
        if isinstance(event, ev.TextDelta) and event.delta == "One moment.":
            clock.now = 100.0
    answer = chat.transcript.messages[-1]
    assert answer.text == "One moment."
    assert "the limit of 5 s is reached" in errors(answer)[0]


def test_an_unknown_price_is_said_at_the_start() -> None:
    answer = Chat(MockModel(script=["Hello."]), tools=[], max_cost=0.5).send("Hi")
    first, *_ = answer.parts
    assert isinstance(first, DataPart)
    assert (first.name, first.data) == (
        "notice",
        "The price of mock:script is not known, so max_cost=$0.50 counts only what the model reports itself. "
        "max_tokens (--max-tokens) needs no price.",
    )
    assert to_text(Transcript((answer,))).startswith("AI\n  Note: The price of mock:script is not known")
    assert '<p class="tc-note">Note: The price' in to_html(Transcript((answer,)))


def test_missing_token_counts_are_said_once() -> None:
    chat, _ = chat_with(MockModel(script=[[("note", {"n": 1})], "Done."]), max_tokens=10)
    answer = chat.send("Go")
    assert errors(answer) == []
    notices = [part.data for part in answer.parts if isinstance(part, DataPart)]
    assert notices == ["The model reports no tokens, so max_tokens=10 cannot be checked."]


@pytest.mark.parametrize(
    ("name", "has_price"), [("openai:gpt-4o", True), ("anthropic:claude-sonnet-4-5", True), ("openai:no-such", False)]
)
def test_the_price_of_a_providers_model_is_known_before_it_is_asked(name: str, has_price: bool) -> None:
    assert getattr(model(name), "has_price", None) is has_price


@pytest.mark.parametrize(
    "limits",
    [{"max_tokens": 0}, {"max_tokens": 1.5}, {"max_cost": -1}, {"max_cost": float("nan")}, {"max_seconds": "5"}],
    ids=str,
)
def test_a_limit_is_a_positive_number(limits: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(limits))):
        Chat(tools=[], **limits)


def test_the_account_sums_the_turns() -> None:
    clock = Clock()

    def slow() -> str:
        clock.now += 2
        return "done"

    chat = Chat(MockModel(script=[[("slow", {})], "One.", [("slow", {})], "Two."]), tools=[slow], clock=clock)
    chat.send("One")
    chat.send("Two")
    account = chat.account
    assert (account.seconds, account.calls) == (4, 2)
    assert (account.turn.seconds, account.turn.calls, str(account.turn)) == (2, 1, "0 tokens, 2.0 s, 1 call")


def test_a_fork_keeps_the_limits() -> None:
    fork = Chat(tools=[], max_calls=3, max_cost=0.5).fork()
    assert (fork.max_calls, fork.max_cost) == (3, 0.5)


def test_a_cell_sets_limits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    make: Any = InteractiveShell
    shell = make()
    shell.run_line_magic("load_ext", "toolcall_nb")
    try:
        shell.run_cell("def note(n: int) -> int:\n    return n")
        cell = "%%toolchat --tools note --speed 0 --max-calls 0 --max-seconds 60 --max-tokens 9 --max-cost 0.5\nNote 1"
        shell.run_cell(cell).raise_error()
        assert "The turn ended: the limit of 0 calls is reached." in capsys.readouterr().out
        chat = shell.user_ns["chat"]
        assert (chat.max_seconds, chat.max_tokens, chat.max_cost) == (60, 9, 0.5)
        shell.run_cell("%%toolchat --max-cost 0\nNote 1")
        assert "max_cost is a number above 0, or None, but is 0.0" in capsys.readouterr().err
    finally:
        shell.run_line_magic("unload_ext", "toolcall_nb")
        shell.restore_sys_module_state()
