"""Captures the request that follows recorded replies: as this package sends it, and as pydantic-ai alone does."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart, UserPromptPart

from tests.support.provider_replays import KEY, hello
from tests.support.replay_server import ReplayServer, Reply
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import Message, Transcript
from toolcall_nb.models import model
from toolcall_nb.models.config import Config
from toolcall_nb.models.providers.building import build, request_parameters, request_settings

__all__ = ["Target", "comparable_body", "our_bodies", "pydantic_ai_body"]

RESULT = "done"
GO_ON = "And now?"


@dataclass(frozen=True)
class Target:
    """A model's name, the path that its base URL adds to the server's address, and the settings of each request."""

    name: str
    suffix: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def config(self, server: ReplayServer) -> Config:
        """Returns the configuration for reaching the model at this server."""
        return Config(base_url=server.url + self.suffix, api_key=KEY, settings=self.settings)


def our_bodies(
    asked: Target, replies: Sequence[bytes], then: Target | None = None, *, moved: bool = False
) -> list[Any]:
    """Returns the body of this package's request after these replies, twice: from events, and from saved Markdown.

    ``then`` is another model for that request; ``moved`` sends it to the same model at another address.
    """
    with ReplayServer(Reply(replies[0])) as server, ReplayServer(Reply(b"")) as elsewhere:
        messages: tuple[Message, ...] = hello()
        for reply in replies:
            server.answers(Reply(reply))
            asking = model(asked.name, config=asked.config(server))
            events = list(asking.stream(messages, ()))
            messages = _with_results([*Transcript(messages).events(), *_going_on(messages, events)])
        loaded = Transcript.from_markdown(Transcript(messages).to_markdown()).messages
        last = elsewhere if moved or then is not None else server
        return [_sent(last, then or asked, [*history, *hello(GO_ON)]) for history in (messages, loaded)]


def _going_on(messages: Sequence[Message], events: Sequence[ev.Event]) -> Sequence[ev.Event]:
    """Returns the events of a further step, which continues the transcript's last message, as in a chat."""
    if messages[-1].role == "user":
        return events
    return [ev.StartStep(), *(event for event in events if not isinstance(event, ev.Start) or event.message_metadata)]


def _with_results(events: Sequence[ev.Event]) -> tuple[Message, ...]:
    """Returns the messages with a result for each call of the caller's tools; the last message stays open."""
    shown = [event for event in events if not isinstance(event, ev.Finish)]
    calls = Transcript.from_events(shown).calls.values()
    open_calls = [call.id for call in calls if not call.provider_executed and not call.is_final]
    return Transcript.from_events([*shown, *(ev.ToolOutputAvailable(call, RESULT) for call in open_calls)]).messages


def _sent(server: ReplayServer, asked: Target, messages: Sequence[Message]) -> Any:
    server.requests.clear()
    server.answers(Reply(b"{}", status=418, content_type="application/json"))
    try:
        list(model(asked.name, config=asked.config(server)).stream(messages, ()))
    except Exception:
        assert server.requests
    return server.requests[0].json


def pydantic_ai_body(
    asked: Target, replies: Sequence[bytes], then: Target | None = None, *, moved: bool = False
) -> Any:
    """Returns the body of the same request, built by pydantic-ai's direct requests from its own responses."""
    with ReplayServer(Reply(replies[0])) as server, ReplayServer(Reply(b"")) as elsewhere:
        history: list[ModelMessage] = [ModelRequest([UserPromptPart("Hello")])]
        for number, reply in enumerate(replies, 1):
            server.answers(Reply(reply))
            response = asyncio.run(_response(asked, server, history))
            calls = [part for part in response.parts if part.part_kind == "tool-call"]
            told: list[Any] = [ToolReturnPart(call.tool_name, RESULT, call.tool_call_id) for call in calls]
            told += [UserPromptPart(GO_ON)] if number == len(replies) else []
            history += [response, ModelRequest(told)]
        last = elsewhere if moved or then is not None else server
        last.requests.clear()
        last.answers(Reply(b"{}", status=418, content_type="application/json"))
        try:
            asyncio.run(_response(then or asked, last, history))
        except Exception:
            assert last.requests
        return last.requests[0].json


async def _response(asked: Target, server: ReplayServer, history: list[ModelMessage]) -> ModelResponse:
    config = asked.config(server)
    made = build(asked.name, config)
    request = model_request_stream(
        made,
        history,
        model_settings=request_settings(made, config.settings),  # type: ignore[arg-type]  # a TypedDict
        model_request_parameters=request_parameters((), config.settings),
        instrument=False,
    )
    async with made, request as stream:
        async for _ in stream:
            pass
        return stream.get()


def comparable_body(body: Any) -> Any:
    """Returns the body without intended differences: generated ids, and blank text blocks.

    Anthropic: "text content blocks must contain non-whitespace text".
    """
    text = re.sub(r"pyd_ai_[0-9a-f]+", "made-up", json.dumps(body))
    return _without_blanks(json.loads(text))


def _without_blanks(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_blanks(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_blanks(one) for one in value if not _is_blank(one)]
    return value


def _is_blank(block: Any) -> bool:
    return isinstance(block, dict) and block.keys() == {"text", "type"} and not block["text"].strip()
