"""A server that speaks any of the wires, as a model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any
from uuid import uuid4

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message, ToolCall
from toolcall_nb.errors import UsageError
from toolcall_nb.models.callable_models import OneReply
from toolcall_nb.models.config import Config
from toolcall_nb.models.errors.translation import as_model_error
from toolcall_nb.models.event_loop import iterate
from toolcall_nb.models.over_http.address import shown_url
from toolcall_nb.models.over_http.bodies import WIRES, answered_calls, body_of
from toolcall_nb.models.over_http.exchange import Asked, Exchange
from toolcall_nb.tools import Tool

__all__ = ["THREAD", "HttpModel"]

THREAD = "threadId"
"""Under which the metadata of an answer holds the name of its conversation at the server."""


class HttpModel:
    """What answers at ``url``: a chat server in any of the wires of `toolcall_nb.wire`, a provider's raw stream, JSON.

    The request is one that the chat contract's servers and the AI SDK's both understand, or, with ``config.wire``,
    exactly that of ``chat``, ``ui`` or ``ag-ui``. What answers is told apart by what it says. ``config.api_key`` goes
    as a bearer token, to this host alone; ``config.settings`` go along as fields (``model``, ``toolIds``, …;
    ``extra_headers`` and ``timeout`` are the request's own).

    Calls that the server has run come with their outputs. Those without are the caller's to run, and the next request
    tells their results; a question of the server whether a call may run is asked here, and the next request tells the
    answer. The name of the conversation there stands in the metadata of its answers (``threadId``), so it goes on
    wherever the transcript is; ``conversation`` is the one to begin with, instead of a new name.

    Connections that are lost in the middle are replaced where the server keeps what it sends; ``pause`` lets the
    seconds between two of them pass. Raises `UsageError` for what is no address, and a wire that there is not.
    """

    asks_permission = True

    def __init__(
        self,
        url: str,
        config: Config | None = None,
        *,
        dialect: str = "native",
        conversation: str | None = None,
        pause: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self._config = config if config is not None else Config()
        self._url, self.name = url, shown_url(url)
        self._dialect = dialect
        self._conversation = conversation
        self._pause = pause
        if self._config.wire not in (None, *WIRES):
            raise UsageError(
                f"A server is asked in one of the wires {', '.join(WIRES)}, not {self._config.wire!r:.100}."
            )

    def __repr__(self) -> str:
        return f"<HttpModel {self.name}>"

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        """One reply. Raises `ModelError`, with a sentence for a person, for whatever goes wrong.

        What came before a stream that breaks is kept. Once the server has taken the request it is not sent again.
        """
        known = _conversation_of(messages)
        conversation = known or self._conversation or uuid4().hex
        waiting = {call.id: call for call in answered_calls(messages)}
        exchange: Exchange | None = None
        try:
            exchange = Exchange(self._asked(messages, tools, conversation), self._pause)
            if known is None:
                yield ev.Start(message_metadata={THREAD: conversation})
            with closing(self._reply(exchange)) as events:
                yield from _ending(events, waiting)
            return
        except Exception as error:
            key = self._config.api_key
            secrets = [key.reveal()] if key is not None else []
            failure = as_model_error(error, self.name, base_url=self._url, secrets=secrets)
        failure.may_retry = failure.may_retry and not (exchange is not None and exchange.has_begun)
        yield from (ev.ToolInterrupted(call_id) for call_id in waiting)
        raise failure  # not from the other, which holds the request

    def _asked(self, messages: Sequence[Message], tools: Sequence[Tool], conversation: str) -> Asked:
        settings, key = self._config.settings, self._config.api_key
        told = tools if self._dialect == "native" else ()
        headers, timeout = settings.get("extra_headers"), settings.get("timeout")
        return Asked(
            url=self._url,
            body=body_of(self._config.wire, messages, told, conversation, uuid4().hex, settings),
            conversation=conversation,
            headers={**headers} if isinstance(headers, dict) else {},
            key=key.reveal() if key is not None else None,
            timeout=float(timeout) if isinstance(timeout, int | float) else 600.0,
        )

    @staticmethod
    def _reply(exchange: Exchange) -> Generator[Event, None, None]:
        reply = OneReply()
        with closing(iterate(exchange.events)) as batches:
            for events in batches:
                yield from reply.events_of(events)


_ENDS = (ev.ToolOutputAvailable, ev.ToolOutputError, ev.ToolOutputDenied, ev.ToolInterrupted)


def _ending(events: Iterator[Event], waiting: dict[str, ToolCall]) -> Iterator[Event]:
    """The events, and the ends of calls that waited for an answer and of which nothing came after it.

    What is told anew of these calls, their input (as it was edited here) and the answer itself, is left out.
    """
    finish: Event | None = None
    asked = frozenset(waiting)
    for event in (told for event in events if (told := _anew(event, asked)) is not None):
        if isinstance(event, ev.Finish | ev.Abort):
            finish = event
            continue
        if isinstance(event, _ENDS) and not getattr(event, "preliminary", None):
            waiting.pop(event.tool_call_id, None)
        yield event
    for call in waiting.values():
        is_allowed = call.approval is not None and call.approval.approved
        yield ev.ToolOutputError(call.id, _NO_RESULT) if is_allowed else ev.ToolOutputDenied(call.id)
    waiting.clear()
    if finish is not None:
        yield finish


def _anew(event: Event, asked: Container[str]) -> Event | None:
    """The event, or None where it tells again of a call what was told before the question."""
    if getattr(event, "tool_call_id", None) in asked:
        if isinstance(event, ev.ToolInputError):
            return ev.ToolOutputError(event.tool_call_id, event.error_text)
        return None if isinstance(event, _INPUT) else event
    is_answer = isinstance(event, ev.ToolApprovalResponse) and bool(asked)
    return None if is_answer else event


_INPUT = (ev.ToolInputStart, ev.ToolInputDelta, ev.ToolInputAvailable, ev.ToolApprovalRequest)
_NO_RESULT = "The server allowed this call to run, and did not tell what it gave."


def _conversation_of(messages: Sequence[Message]) -> str | None:
    """The name that the server has for what was said before."""
    answers = (message.metadata.get(THREAD) for message in reversed(messages) if message.role == "assistant")
    return next((name for name in answers if isinstance(name, str) and name), None)
