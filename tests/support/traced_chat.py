"""A chat to be traced: two turns, the first with two calls, of which one fails. Runs in environments of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolcall_nb import Chat
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event

__all__ = ["run_traced_chat"]


class CountingModel:
    """A model with these replies, which reports its tokens."""

    name = "openai:gpt-test"

    def __init__(self, *replies: list[Event]) -> None:
        self._replies = iter(replies)

    def stream(self, messages: Any, tools: Any) -> Iterator[Event]:
        reply = next(self._replies)
        yield from reply
        calls = any(isinstance(event, ev.ToolInputAvailable) for event in reply)
        metadata = {"usage": {"inputTokens": 12, "outputTokens": 5}, "model": "gpt-test-2026"}
        yield ev.Finish(finish_reason="tool-calls" if calls else "stop", message_metadata=metadata)


def weather(city: str) -> dict[str, Any]:
    """The weather in a city."""
    return {"city": city, "sky": "clear"}


def fail(n: int) -> int:
    """Always fails."""
    raise LookupError(f"no {n}")


def said(text: str) -> list[Event]:
    return [ev.TextStart("1"), ev.TextDelta("1", text), ev.TextEnd("1")]


def run_traced_chat() -> Chat:
    """Runs the chat, and returns it."""
    calls = [
        ev.ToolInputAvailable("call-1", "weather", {"city": "Lyon"}),
        ev.ToolInputAvailable("call-2", "fail", {"n": 3}),
    ]
    model = CountingModel([*said("Let me look."), *calls], said("It is clear."), said("You are welcome."))
    chat = Chat(model, tools=[weather, fail], system="Be brief.", thread="trip")
    chat.send("How is Lyon?")
    chat.send("Thanks")
    return chat
