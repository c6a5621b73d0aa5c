"""Agents of the OpenAI Agents SDK with scripted replies, for the tests of several rooms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents import function_tool
from agents.testing import ScriptedModel, assistant_message, function_call


@function_tool
def weather(city: str) -> str:
    """Returns the weather of a city."""
    return f"sunny in {city}"


def script(*replies: Sequence[Any] | str) -> ScriptedModel:
    """A model with these replies; a text is a message."""
    steps: list[Any] = [[assistant_message(reply)] if isinstance(reply, str) else reply for reply in replies]
    return ScriptedModel(steps)


def call(name: str, call_id: str, **arguments: str) -> Any:
    return function_call(name, arguments, call_id=call_id)
