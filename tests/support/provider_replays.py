"""Recorded bodies, read by the providers' real packages over real HTTP."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from tests.support.profile import IS_SEARCH
from tests.support.recordings import Recording
from tests.support.replay_server import ReplayServer, Reply
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message, TextPart, Transcript
from toolcall_nb.errors import ModelError
from toolcall_nb.models import Model, model
from toolcall_nb.models.config import Config
from toolcall_nb.tools import Tool

__all__ = [
    "KEY",
    "REPLAYED",
    "Got",
    "ask",
    "assert_losses_are_told",
    "hello",
    "model_at",
    "name_for",
    "one_ssl_context",
    "places_in",
    "read",
    "told",
]

KEY = "sk-sentinel-0123456789"
"""The key of all these tests; nothing may ever show it."""

_HOSTS = {
    "api.groq.com": ("groq:openai/gpt-oss-120b", ""),
    "api.mistral.ai": ("mistral:mistral-large-latest", ""),
    "openrouter.ai": ("openrouter:minimax/minimax-m2", "/v1"),
    "api.deepseek.com": ("deepseek:deepseek-reasoner", ""),
    "api.z.ai": ("zai:glm-4.7", ""),
}
_WIRES = {
    "openai_chat": ("openai-chat:gpt-4o", "/v1"),
    "openai_responses": ("openai:gpt-5", "/v1"),
    "anthropic": ("anthropic:claude-sonnet-5", ""),
    "google": ("google:gemini-2.5-flash", ""),
}
REPLAYED = frozenset(name.partition(":")[0] for name, _ in (*_HOSTS.values(), *_WIRES.values()))
"""The providers, as models are named, whose recorded replies are said again."""


@pytest.fixture(autouse=True, scope="session")
def one_ssl_context() -> Iterator[None]:
    """Every client makes an SSL context, which takes longer than all else here, and nothing here is encrypted."""
    make = cache(ssl.create_default_context)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", lambda *args, **named: make())
        yield


def name_for(recording: Recording) -> tuple[str, str]:
    """The name of a model whose package reads this recording, and what follows the server's address in its base URL."""
    hosted = (named for host, named in _HOSTS.items() if host in recording.uri and recording.wire == "openai_chat")
    return next(hosted, _WIRES[recording.wire])


def model_at(server: ReplayServer, name: str, suffix: str = "", **settings: Any) -> Model:
    """The model of this name, at the server."""
    return model(name, config=Config(base_url=server.url + suffix, api_key=KEY, settings=settings))


def hello(text: str = "Hello") -> tuple[Message, ...]:
    """A conversation that has just begun."""
    return (Message("user", (TextPart(text),)),)


@dataclass
class Got:
    """What a request gave: events, and the error that ended them."""

    events: list[Event]
    error: ModelError | None

    @property
    def transcript(self) -> Transcript:
        """What the events amount to."""
        return Transcript.from_events(self.events)

    @property
    def text(self) -> str:
        """All text, reasoning apart."""
        return "".join(event.delta for event in self.events if isinstance(event, ev.TextDelta))

    @property
    def said(self) -> str:
        """All text and all reasoning, in order."""
        return "".join(event.delta for event in self.events if isinstance(event, ev.TextDelta | ev.ReasoningDelta))

    @property
    def calls(self) -> list[tuple[str, str, Any]]:
        """The calls of the caller's tools: id, name, input."""
        messages = (message for message in self.transcript.messages if message.role == "assistant")
        calls = (call for message in messages for call in message.calls)
        return [(call.id, call.name, call.input) for call in calls if not call.provider_executed]


def ask(recording: Recording, reply: Reply, tools: Sequence[Tool] = ()) -> Got:
    """One request to the model that reads this recording, answered with ``reply``. Raises what is no `ModelError`."""
    name, suffix = name_for(recording)
    events: list[Event] = []
    with ReplayServer(reply) as server:
        try:
            for event in model_at(server, name, suffix).stream(hello(), tools):
                events.append(event)
        except ModelError as error:
            return Got(events, error)
    return Got(events, None)


def read(model: Model) -> tuple[list[Event], ModelError | None]:
    """The events of a reply, and the error that ended them."""
    events: list[Event] = []
    try:
        for event in model.stream(hello(), ()):
            events.append(event)
    except ModelError as error:
        return events, error
    return events, None


def places_in(body: bytes) -> list[int]:
    """Every byte of a short body, and of any with HYPOTHESIS_PROFILE=search; else some places, in every event."""
    return [*range(0, len(body), 1 if IS_SEARCH or len(body) <= 200 else len(body) // 60), len(body) - 1]


def assert_losses_are_told(name: str, suffix: str, body: bytes) -> None:
    """Wherever the connection is lost, what came is kept, and an error says so; or all has come."""
    with ReplayServer(Reply(body)) as server:
        model = model_at(server, name, suffix)
        whole, error = read(model)
        assert error is None
        for place in places_in(body):
            server.answers(Reply(body, lost_after=place, reset=place % 5 == 0))
            _assert_lost(*read(model), whole, place)


def _assert_lost(events: list[Event], error: ModelError | None, whole: list[Event], place: int) -> None:
    """Either all has come, or an error was told, and all that came is the beginning of the whole."""
    if error is None:
        assert told(events) == told(whole), place
        return
    assert error.may_retry, place
    assert "lost" in str(error) or "connection" in str(error).lower() or "closed" in str(error), (place, str(error))
    assert told(whole)[: len(told(events))] == told(events), place
    texts = "".join(event.delta for event in events if isinstance(event, ev.TextDelta))
    assert "".join(event.delta for event in whole if isinstance(event, ev.TextDelta)).startswith(texts), place


def told(events: list[Event]) -> list[object]:
    """What the events say of calls that are complete."""
    return [(event.tool_name, event.input) for event in events if isinstance(event, ev.ToolInputAvailable)]
