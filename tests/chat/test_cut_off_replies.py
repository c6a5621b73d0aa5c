"""Replies that are cut off, and the calls in them: which run, and what the others are told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from toolcall_nb.adapters.openai.messages import to_openai
from toolcall_nb.chat import Chat
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message, State, Transcript
from toolcall_nb.dialects import DIALECTS
from toolcall_nb.sources.reply import Reply
from toolcall_nb.tools import Tool, as_tool

CUT_REASONS = ["length", "content-filter", "other", "error", None]
OPEN_CALLS = {
    "callout": "> [!tool remove c1]\n> input:\n>   path: /data/projects/old",
    "signature": '###: {"toolName": "remove", "parameters": {"path": "/data/projects/old"',
    "json": '```json\n{"tool": "remove", "params": {"path": "/data/projects/old"',
}
CLOSED_CALLS = {
    "callout": "> [!tool remove c1]\n> input:\n>   path: /data/projects/older\n\n",
    "signature": '###: {"toolName": "remove", "parameters": {"path": "/data/projects/older"}}\n\n',
    "json": '```json\n{"tool": "remove", "params": {"path": "/data/projects/older"}}\n```\n\n',
}


class Replies:
    """A model whose first reply is given, and whose later replies are a text. It keeps the requests."""

    name = "replies"

    def __init__(self, first: Sequence[Event | Exception]) -> None:
        self.first = first
        self.requests: list[Sequence[Message]] = []

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        self.requests.append(messages)
        for item in self.first if len(self.requests) == 1 else (*text("Done."), ev.Finish(finish_reason="stop")):
            if isinstance(item, Exception):
                raise item
            yield item


def text(words: str) -> list[Event]:
    return [ev.TextStart("1"), *(ev.TextDelta("1", letter) for letter in words), ev.TextEnd("1")]


def run(dialect: str, first: Sequence[Event | Exception], *, eager: bool = False) -> tuple[Chat, list[str], Replies]:
    removed: list[str] = []
    model = Replies(first)
    chat = Chat(model, tools=[remover(removed)], dialect=dialect, eager=eager)
    chat.send("Tidy up.")
    return chat, removed, model


def remover(removed: list[str]) -> Tool:
    def remove(path: str = "everything") -> str:
        """Removes a folder."""
        removed.append(path)
        return "removed"

    return as_tool(remove)


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("reason", CUT_REASONS)
def test_a_call_that_the_end_of_a_cut_off_reply_closed_never_runs(
    reason: str | None, dialect: str, eager: bool
) -> None:
    _, removed, _ = run(dialect, [*text(OPEN_CALLS[dialect]), ev.Finish(finish_reason=reason)], eager=eager)
    assert not removed


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("end", [[], [ev.Error("Lost.")], [ConnectionError("lost")]], ids=["no end", "event", "raised"])
def test_a_call_never_runs_if_its_reply_ended_in_it_with_an_error_or_without_an_end(
    end: list[Any], dialect: str, eager: bool
) -> None:
    for last in (text(OPEN_CALLS[dialect]), text(OPEN_CALLS[dialect])[:-1]):
        chat, removed, _ = run(dialect, [*last, *end], eager=eager)
        assert not removed
        assert all(call.is_final for call in chat.calls.values())


def test_the_card_of_a_cut_off_call_says_why_it_did_not_run_and_the_model_is_told() -> None:
    chat, _, model = run("callout", [*text(OPEN_CALLS["callout"]), ev.Finish(finish_reason="length")])
    call = chat.calls["c1"]
    assert call.state is State.OUTPUT_ERROR
    assert call.error == (
        "The call may be incomplete: the reply reached its length limit before the call was closed. "
        "It was not run. Write the whole call again, with an empty line after it."
    )
    assert call.error in model.requests[1][-1].text
    assert not chat.transcript.diagnostics
    assert to_openai(chat.transcript.messages)


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_that_its_own_text_closed_runs_also_in_a_cut_off_reply(dialect: str, eager: bool) -> None:
    words = CLOSED_CALLS[dialect] + OPEN_CALLS[dialect].replace("c1", "c2")
    _, removed, _ = run(dialect, [*text(words), ev.Finish(finish_reason="length")], eager=eager)
    assert removed == ["/data/projects/older"]


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("reason", ["stop", "tool-calls"])
def test_a_callout_at_the_end_of_a_complete_reply_runs(reason: str, eager: bool) -> None:
    _, removed, _ = run("callout", [*text(OPEN_CALLS["callout"]), ev.Finish(finish_reason=reason)], eager=eager)
    assert removed == ["/data/projects/old"]


def test_a_callout_runs_if_the_reply_goes_on_after_its_block_of_text() -> None:
    goes_on: list[Event] = [ev.ReasoningStart("2"), ev.ReasoningDelta("2", "Hm"), ev.ReasoningEnd("2")]
    _, removed, _ = run("callout", [*text(OPEN_CALLS["callout"]), *goes_on, ev.Finish(finish_reason="length")])
    assert removed == ["/data/projects/old"]


@pytest.mark.parametrize("reply", [OPEN_CALLS["callout"], iter([OPEN_CALLS["callout"]])], ids=["returned", "yielded"])
def test_a_callout_at_the_end_of_a_text_that_a_function_gives_runs(reply: Any) -> None:
    removed: list[str] = []
    replies = iter([reply, "Done."])
    Chat(lambda messages: next(replies), tools=[remover(removed)], dialect="callout").send("Tidy up.")
    assert removed == ["/data/projects/old"]


def test_a_shown_text_that_ends_in_a_call_says_only_that_the_call_was_made() -> None:
    reply = Reply("callout", set())
    events = [event for sent in text(OPEN_CALLS["callout"]) for event in reply.take(sent)]
    assert Transcript.from_events([*events, *reply.close()]).calls["c1"].state is State.INPUT_AVAILABLE


def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
    return {"object": "chat.completion.chunk", "id": "x", "choices": choices}


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize(("reason", "runs"), [("length", False), (None, False), ("tool_calls", True), ("stop", True)])
def test_a_native_call_whose_arguments_had_not_begun_runs_only_if_the_reply_is_complete(
    reason: str | None, runs: bool, eager: bool
) -> None:
    begun = {"index": 0, "id": "c1", "type": "function", "function": {"name": "remove", "arguments": ""}}
    replies: Iterator[list[Any]] = iter(
        [[chunk({"tool_calls": [begun]}), *([chunk({}, reason)] if reason else [])], ["Done."]]
    )
    removed: list[str] = []
    chat = Chat(lambda messages, tools: iter(next(replies)), tools=[remover(removed)], eager=eager)
    chat.send("Tidy up.")
    assert removed == (["everything"] if runs else [])
    assert chat.calls["c1"].state is (State.OUTPUT_AVAILABLE if runs else State.OUTPUT_ERROR)
