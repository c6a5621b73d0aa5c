"""Turns that fail: the answer says so, and `raises=True` raises it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from toolcall_nb.chat import Chat
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import ErrorPart, Message, TextPart
from toolcall_nb.errors import ModelError
from toolcall_nb.models import MockModel

SENDS = [
    lambda chat, **options: chat.send("?", **options),
    lambda chat, **options: asyncio.run(chat.asend("?", **options)),
]


def unreachable(messages: Any) -> str:
    raise ConnectionError("the network is down")


def look() -> str:
    """Looks."""
    return "seen"


@pytest.mark.parametrize("send", SENDS, ids=["send", "asend"])
def test_the_answer_of_a_failed_turn_says_why_and_raises_on_request(send: Callable[..., Message]) -> None:
    chat = Chat(unreachable, retries=0)
    answer = send(chat)
    assert (answer.text, answer.error) == (
        "",
        "No connection to the model 'unreachable' could be made. Check the network, and the base URL.",
    )
    for options in ({}, {"output": int}):
        with pytest.raises(ModelError, match="No connection") as raised:
            send(chat, raises=True, **options)
        assert raised.value.may_retry
        assert isinstance(raised.value.__cause__, ConnectionError)
    assert chat.transcript.messages[-1].error == answer.error


@pytest.mark.parametrize("send", SENDS, ids=["send", "asend"])
def test_an_error_that_a_model_sends_and_a_limit_raise_too(send: Callable[..., Message]) -> None:
    limited = Chat(MockModel(script=[[("look", {})]]), tools=[look], max_steps=1, speed=None)
    sent = Chat(lambda messages: iter([ev.Error("Overloaded.", details="529"), ev.Finish(finish_reason="error")]))
    for chat, words in ((limited, "after 1 steps"), (sent, "Overloaded.")):
        with pytest.raises(ModelError, match=words):
            send(chat, raises=True)


@pytest.mark.parametrize("send", SENDS, ids=["send", "asend"])
def test_a_turn_without_an_error_has_none_and_raises_nothing(send: Callable[..., Message]) -> None:
    chat = Chat(MockModel(script=[[("missing", {})], "Done."]), speed=None)
    answer = send(chat, raises=True)
    assert (answer.text, answer.error) == ("Done.", None)


def test_the_cause_of_an_earlier_turn_is_not_that_of_a_later_one() -> None:
    replies: Iterator[Any] = iter([ConnectionError("down"), [ev.Error("Overloaded.")]])

    def model(messages: Any) -> Any:
        reply = next(replies)
        if isinstance(reply, Exception):
            raise reply
        return iter(reply)

    chat = Chat(model, retries=0)
    chat.send("?")
    with pytest.raises(ModelError, match="Overloaded") as raised:
        chat.send("?", raises=True)
    assert raised.value.__cause__ is None


def test_the_error_of_a_message_is_its_last_one_or_that_its_reply_failed() -> None:
    assert Message("assistant", (TextPart("a"), ErrorPart("first"), ErrorPart("last"))).error == "last"
    assert Message("assistant", finish_reason="error").error == "The reply ended with an error that says nothing."
    assert Message("assistant", finish_reason="length").error is None
