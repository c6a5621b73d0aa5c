"""Limits of a turn in tokens, cost, seconds and calls, and what `chat.account` says was spent."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pytest
from IPython.core.interactiveshell import InteractiveShell
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from toolcall_nb.chat import Chat
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import DataPart, ErrorPart, Message, State, Transcript
from toolcall_nb.errors import UsageError
from toolcall_nb.models import MockModel
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


def test_a_reply_whose_cost_is_not_known_is_said_once_a_turn() -> None:
    chat, _ = chat_with(MockModel(script=[[("note", {"n": 1})], "Hello."]), max_cost=0.5)
    answer = chat.send("Hi")
    notices = [part.data for part in answer.parts if isinstance(part, DataPart) and part.name == "notice"]
    assert notices == [
        "The price of mock:script is not known, so max_cost=$0.50 does not limit what it costs. "
        "max_tokens (--max-tokens) needs no price."
    ]
    assert "Note: The price of mock:script is not known" in to_text(Transcript((answer,)))
    assert '<p class="tc-note">Note: The price' in to_html(Transcript((answer,)))


@pytest.mark.parametrize(
    "cost", [None, {"EUR": "0.10"}, {"USD": "no number"}, {}], ids=["none", "another currency", "no number", "empty"]
)
def test_a_cost_that_is_no_number_of_dollars_is_not_known(cost: Any) -> None:
    model = Priced(replies=1, cost=None)
    if cost is not None:
        model._metadata["cost"] = cost
    chat, _ = chat_with(model, max_cost=0.5)
    assert "does not limit what it costs" in to_text(Transcript((chat.send("Go"),)))


def test_a_reply_whose_cost_is_known_has_no_note() -> None:
    chat, _ = chat_with(Priced(replies=1, cost="0.10"), max_cost=0.5)
    assert "Note:" not in to_text(Transcript((chat.send("Go"),)))


def test_missing_token_counts_are_said_once() -> None:
    chat, _ = chat_with(MockModel(script=[[("note", {"n": 1})], "Done."]), max_tokens=10)
    answer = chat.send("Go")
    assert errors(answer) == []
    notices = [part.data for part in answer.parts if isinstance(part, DataPart)]
    assert notices == ["The model reports no tokens, so max_tokens=10 cannot be checked."]


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


_CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
_USAGE = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
_STREAM = [
    {**_CHUNK, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi."}, "finish_reason": None}]},
    {**_CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {**_CHUNK, "choices": [], "usage": _USAGE},
]


@pytest.mark.parametrize(
    ("url", "is_known"),
    [("https://api.openai.com/v1", True), ("https://proxy.example/v1", False)],
    ids=["own", "proxy"],
)
@pytest.mark.parametrize("gives_url", ["provider", "environment"])
def test_a_limit_of_cost_says_that_the_price_behind_a_base_url_is_not_known(
    url: str, is_known: bool, gives_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in _STREAM) + "data: [DONE]\n\n"
    answer_all = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=body)
    )
    client = httpx2.AsyncClient(transport=answer_all)
    if gives_url == "environment":
        monkeypatch.setenv("OPENAI_BASE_URL", url)
    provider = OpenAIProvider(
        base_url=None if gives_url == "environment" else url, api_key="no-key", http_client=client
    )
    chat = Chat(OpenAIChatModel("gpt-4o", provider=provider), tools=[], max_cost=0.5)
    text = to_text(Transcript((chat.send("Hi"),)))
    assert ("does not limit what it costs" not in text) is is_known
    assert (chat.account.cost is not None) is is_known
