"""The strict providers that tests use detect each fault that they are made for."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.models.strict_turns import GO_ON, TOOLS, call_of
from tests.support.strict_providers import PROVIDERS, body_of, complaints
from toolcall_nb.core.transcript import Message, TextPart

GOOD = [GO_ON, Message("assistant", (TextPart("I look."), call_of("D681PevKs"), TextPart("So."))), GO_ON]
PLACES = {"openai": "input", "google": "contents"}


def spoiled(provider: str, spoil: Callable[[list[Any]], object]) -> list[str]:
    """The provider's answer to a valid body with one change in its messages."""
    body = copy.deepcopy(body_of(provider, GOOD, TOOLS))
    assert complaints(provider, body) == []
    spoil(body[PLACES.get(provider, "messages")])
    return complaints(provider, body)


def result_place(messages: list[Any]) -> int:
    """The place of the call's result."""
    marks = ("'tool'", "function_call_output", "tool_result", "functionResponse")
    return next(n for n, message in enumerate(messages) if any(mark in repr(message) for mark in marks))


SPOILS: dict[str, Callable[[list[Any]], object]] = {
    "a result is missing": lambda messages: messages.pop(result_place(messages)),
    "a call is missing": lambda messages: messages.pop(result_place(messages) - 1),
    "something stands between a call and its result": lambda messages: messages.insert(
        result_place(messages), copy.deepcopy(messages[0])
    ),
    "a result is given twice": lambda messages: messages.insert(
        result_place(messages), copy.deepcopy(messages[result_place(messages)])
    ),
    "there is a key that nobody knows": lambda messages: messages[0].update(more=1),
    "a key is missing": lambda messages: messages[-1].pop("parts" if "parts" in messages[-1] else "content"),
    "the last word is the model's": lambda messages: messages.pop(),
    "there is nothing": lambda messages: messages.clear(),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", SPOILS)
def test_the_judges_see_each_fault(provider: str, fault: str) -> None:
    assert spoiled(provider, SPOILS[fault])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_judges_read_what_is_in_a_call(provider: str) -> None:
    texts = {"openai-chat": "arguments", "groq": "arguments", "mistral": "arguments", "openai": "arguments"}
    good = body_of(provider, GOOD, TOOLS)
    for old, new in [("weather", "we ather"), ("weather", "w" * 65)]:
        assert complaints(provider, _replaced(good, old, new)), (provider, new)
    if provider in texts:
        assert complaints(provider, _replaced(good, '{"city":"Paris"}', "[1]"))
    if provider not in ("google", "groq"):
        assert complaints(provider, _replaced(good, "D681PevKs", "x" * 80 if provider != "anthropic" else "a.b"))


def _replaced(value: Any, old: str, new: str) -> Any:
    """A JSON value in which a text is replaced, at any depth."""
    if isinstance(value, dict):
        return {name: _replaced(each, old, new) for name, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, old, new) for each in value]
    return new if value == old else value
