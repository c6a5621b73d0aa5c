"""Uses a server that speaks any of the wires as a model: `HttpModel`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any
from uuid import uuid4

from toolcall_nb.core import events as ev
from toolcall_nb.core.call_states import CALL_ENDS
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message, ToolCall
from toolcall_nb.errors import UsageError
from toolcall_nb.models.callable_models import OneReply
from toolcall_nb.models.config import Config
from toolcall_nb.models.http_request_bodies import REQUEST_WIRES, answered_calls, request_body
from toolcall_nb.sources.event_loop import iterate
from toolcall_nb.sources.http_exchange import Exchange, HttpRequest, displayed_url
from toolcall_nb.sources.provider_errors.translation import as_model_error
from toolcall_nb.tools import Tool

_THREAD = "threadId"
"""The key in a reply's metadata for the server's name of the conversation."""


class HttpModel:
    """The model at ``url``: a server that answers in any wire of `toolcall_nb.wire`, or with a provider's stream.

    The request is one that servers of the chat contract and of the AI SDK both understand, or, with ``config.wire``,
    exactly that of ``chat``, ``ui`` or ``ag-ui``. The form of the response is recognised. ``config.api_key`` is sent as
    a bearer token, to this host only; ``config.settings`` become fields of the request (``model``, ``toolIds``, …),
    except for its own ``extra_headers`` and ``timeout``.

    Calls that the server has run come with their outputs. The others are run here, and the next request sends their
    results. If the server asks whether a call may run, a person is asked here, and the next request sends the answer.
    The metadata of a reply holds the server's name of the conversation (``threadId``), so the conversation can continue
    wherever the transcript is; ``conversation`` is its first name, by default a new one.

    After a lost connection the rest is fetched, if the server keeps it; ``pause`` waits between attempts. Raises
    `UsageError` for an invalid address, and for an unknown wire.
    """

    asks_permission = True
    may_run_calls = True

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
        self._url, self.name = url, displayed_url(url)
        self._dialect = dialect
        self._conversation = conversation
        self._pause = pause
        if self._config.wire not in (None, *REQUEST_WIRES):
            raise UsageError(
                f"The wire of a request is one of {', '.join(REQUEST_WIRES)}, not {self._config.wire!r:.100}."
            )

    def __repr__(self) -> str:
        return f"<HttpModel {self.name}>"

    @property
    def takes_tools(self) -> bool:
        """Whether the wire sends the tools."""
        return self._config.wire == "ag-ui"

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        """Yields one reply. Raises `ModelError`, with a sentence for the user, whatever goes wrong.

        What came before a stream breaks is kept. Once the server has taken the request it is not sent again.
        """
        known = _conversation_of(messages)
        conversation = known or self._conversation or uuid4().hex
        waiting = {call.id: call for call in answered_calls(messages)}
        exchange: Exchange | None = None
        try:
            exchange = Exchange(self._request(messages, tools, conversation), self._pause)
            if known is None:
                yield ev.Start(message_metadata={_THREAD: conversation})
            with closing(self._reply(exchange)) as events:
                yield from _with_ends(events, waiting)
            return
        except Exception as error:
            key = self._config.api_key
            secrets = [key.reveal()] if key is not None else []
            failure = as_model_error(error, self.name, base_url=self._url, secrets=secrets)
        failure.may_retry = failure.may_retry and not (exchange is not None and exchange.has_begun)
        yield from (ev.ToolInterrupted(call_id) for call_id in waiting)
        raise failure  # not "from error", which holds the request

    def _request(self, messages: Sequence[Message], tools: Sequence[Tool], conversation: str) -> HttpRequest:
        settings, key = self._config.settings, self._config.api_key
        offered = tools if self._dialect == "native" else ()
        headers, timeout = settings.get("extra_headers"), settings.get("timeout")
        return HttpRequest(
            url=self._url,
            body=request_body(self._config.wire, messages, offered, conversation, uuid4().hex, settings),
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


def _with_ends(events: Iterator[Event], waiting: dict[str, ToolCall]) -> Iterator[Event]:
    """Yields the events, and an end for each call that waited for an answer and that the reply does not end.

    What the server repeats about these calls, their input (perhaps edited here) and the answer, is left out.
    """
    finish: Event | None = None
    asked = frozenset(waiting)
    for event in (new for event in events if (new := _unless_repeated(event, asked)) is not None):
        if isinstance(event, ev.Finish | ev.Abort):
            finish = event
            continue
        if isinstance(event, CALL_ENDS) and not getattr(event, "preliminary", None):
            waiting.pop(event.tool_call_id, None)
        yield event
    for call in waiting.values():
        is_allowed = call.approval is not None and call.approval.approved
        yield ev.ToolOutputError(call.id, _NO_RESULT) if is_allowed else ev.ToolOutputDenied(call.id)
    waiting.clear()
    if finish is not None:
        yield finish


def _unless_repeated(event: Event, asked: Container[str]) -> Event | None:
    """Returns the event, or None if it repeats what the server sent about a call before the question."""
    if getattr(event, "tool_call_id", None) in asked:
        if isinstance(event, ev.ToolInputError):
            return ev.ToolOutputError(event.tool_call_id, event.error_text)
        return None if isinstance(event, _INPUT) else event
    is_answer = isinstance(event, ev.ToolApprovalResponse) and bool(asked)
    return None if is_answer else event


_INPUT = (ev.ToolInputStart, ev.ToolInputDelta, ev.ToolInputAvailable, ev.ToolApprovalRequest)
_NO_RESULT = "The server was allowed to run this call, but did not send its result."


def _conversation_of(messages: Sequence[Message]) -> str | None:
    """Returns the server's name of the conversation."""
    answers = (message.metadata.get(_THREAD) for message in reversed(messages) if message.role == "assistant")
    return next((name for name in answers if isinstance(name, str) and name), None)
