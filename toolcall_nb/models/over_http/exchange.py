"""One request and its answer, over as many connections as it takes.

A turn is asked for once: where the connection is lost after the answer has begun, the rest of it is fetched from where
the server keeps it, if it does, and never asked for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from msgspec import Struct

from toolcall_nb.core.json_text import json_text
from toolcall_nb.core.text import well_formed_json
from toolcall_nb.errors import MissingPackageError, ModelError
from toolcall_nb.models.over_http.address import place_of
from toolcall_nb.models.over_http.answer import Answer

if TYPE_CHECKING:
    import httpx

    from toolcall_nb.core.events import Event

__all__ = ["Asked", "Exchange"]

TRIES = 6
"""How often in a row a client comes back without getting anything new."""
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 10.0
_REDIRECTS = 5
_MOST_OF_ERROR = 64 * 1024
"""Bytes that are read of an answer that says what went wrong."""
_STOP_WITHIN = 2.0
_ACCEPT_ANSWER = "text/event-stream, application/json;q=0.9, text/plain;q=0.8, */*;q=0.1"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_AGAIN_LATER = (408, 425, 429, 500, 502, 503, 504)


class Asked(Struct, frozen=True, kw_only=True):
    """What is asked of an address: ``body`` is posted, None is a GET. ``conversation`` is the name of the thread there.

    ``headers`` are the caller's own, ``key`` goes as a bearer token, ``timeout`` is how many seconds nothing may come.
    """

    url: str
    body: Mapping[str, Any] | None = None
    conversation: str | None = None
    headers: Mapping[str, str] = {}
    accept: str = _ACCEPT_ANSWER
    key: str | None = None
    timeout: float = 600.0

    def __repr__(self) -> str:  # neither the key nor what was said
        return f"<Asked of {place_of(self.url)}>"


class Exchange:
    """Asks, and reads. ``pause`` lets seconds pass. ``has_begun``: the server has taken the request.

    `events` raises what httpx raises, and `ModelError`. Whoever stops reading it, or cancels it, closes the
    connection at once; a server of this package is then also told that the turn is to end.
    """

    def __init__(self, asked: Asked, pause: Callable[[float], Awaitable[Any]] = asyncio.sleep) -> None:
        self.has_begun = False
        self._asked = asked
        self._pause = pause
        self._place = place_of(asked.url)
        self._url = asked.url
        self._answer: Answer | None = None
        self._thread: str | None = None  # as a server of this package calls it
        self._is_complete = False

    async def events(self) -> AsyncGenerator[list[Event], None]:
        """The events of the answer, those together that came together."""
        async with self._client() as client:
            try:
                async with aclosing(self._all(client)) as batches:
                    async for events in batches:
                        yield events
                self._is_complete = True
            finally:
                if not self._is_complete and self._thread is not None:
                    await self._stop(client, self._thread)

    def _client(self) -> httpx.AsyncClient:
        try:
            import httpx
        except ImportError:
            raise MissingPackageError("httpx", "models", "A model behind a URL") from None
        timeout = httpx.Timeout(self._asked.timeout, connect=min(self._asked.timeout, 30.0))
        is_near = urlsplit(self._asked.url).hostname in _LOOPBACK  # no proxy is asked about this machine
        return httpx.AsyncClient(timeout=timeout, follow_redirects=False, trust_env=not is_near)

    def _headers(self, accept: str) -> dict[str, str]:
        key = {} if self._asked.key is None else {"Authorization": f"Bearer {self._asked.key}"}
        return {"Accept": accept, **key, **self._asked.headers}

    # Connections

    async def _all(self, client: httpx.AsyncClient) -> AsyncGenerator[list[Event], None]:
        """What comes over the first connection and over those that take its place."""
        import httpx

        request, tries = self._first_request(client), 0
        lost: Exception | None = None
        while True:
            before, lost = lost, None
            try:
                async with aclosing(self._over_one(client, request)) as batches:
                    async for events in batches:
                        tries = 0
                        yield events
            except httpx.TransportError as error:
                if not self.has_begun:
                    raise
                lost = error
            except _Later:
                lost = before
            except _Never:
                lost = before
                break
            else:
                if not self._is_cut():
                    break
            again = self._request_again(client) if tries < TRIES else None
            if again is None:
                break
            await self._pause(self._wait(tries))
            request, tries = again, tries + 1
        assert self._answer is not None
        if lost is not None and not self._is_cut():
            raise lost
        yield [*self._answer.close()]

    async def _over_one(self, client: httpx.AsyncClient, request: httpx.Request) -> AsyncGenerator[list[Event], None]:
        response = await self._sent(client, request)
        try:
            answer = self._taken(response)
            async for data in response.aiter_bytes():
                if events := [*answer.feed(data)]:
                    yield events
                if answer.stream is not None and answer.stream.is_over:
                    break
        finally:
            await response.aclose()

    def _taken(self, response: httpx.Response) -> Answer:
        """Who reads the response: another connection's is read on by who has read the first."""
        if self._answer is None:
            self.has_begun = True
            self._answer = Answer(response.headers, self._place)
            if self._asked.conversation is not None:
                self._thread = response.headers.get("x-thread-id")
        elif (stream := self._answer.stream) is not None:
            stream.reconnected()
        return self._answer

    def _is_cut(self) -> bool:
        """Whether a wire's own reader will say that the answer is not whole."""
        stream = self._answer.stream if self._answer is not None else None
        return stream is not None and stream.is_cut

    def _wait(self, tries: int) -> float:
        stream = self._answer.stream if self._answer is not None else None
        first = _FIRST_WAIT if stream is None or stream.retry is None else stream.retry / 1000
        return float(min(first * 2**tries, max(_LONGEST_WAIT, first)))

    # Requests

    def _first_request(self, client: httpx.AsyncClient) -> httpx.Request:
        headers = self._headers(self._asked.accept)
        if self._asked.body is None:
            return client.build_request("GET", self._url, headers=headers)
        content = json_text(well_formed_json(self._asked.body)).encode()
        return client.build_request(
            "POST", self._url, headers={**headers, "Content-Type": "application/json"}, content=content
        )

    def _request_again(self, client: httpx.AsyncClient) -> httpx.Request | None:
        """Where the rest may be had: at the same address, or where the AI SDK and this package's server keep it."""
        stream = self._answer.stream if self._answer is not None else None
        if stream is None or not stream.is_resumable:
            return None
        is_same = self._asked.body is None and stream.last_event_id
        url = self._url if is_same else self._stream_url()
        if url is None:
            return None
        after = {"Last-Event-ID": stream.last_event_id} if stream.last_event_id else {}
        return client.build_request("GET", url, headers={**self._headers("text/event-stream"), **after})

    def _stream_url(self) -> str | None:
        thread = self._thread or self._asked.conversation
        if thread is None:
            return None
        parts = urlsplit(self._url)
        return parts._replace(path=f"{parts.path.rstrip('/')}/{quote(thread, safe='')}/stream").geturl()

    async def _sent(self, client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        """The response, redirected as far as that is safe; raises for one that is an error."""
        for _ in range(_REDIRECTS + 1):
            response = await client.send(request, stream=True)
            if not response.is_redirect:
                break
            await response.aclose()
            request = self._redirected(client, request, response)
        if self.has_begun and response.status_code != 200:
            await response.aclose()
            raise (_Later if response.status_code in _AGAIN_LATER else _Never)
        if not response.is_success:
            await _refused(response)
        return response

    def _redirected(self, client: httpx.AsyncClient, request: httpx.Request, response: httpx.Response) -> httpx.Request:
        """The same request at the new address, if that is the same host, and the request may be sent again there."""
        to = request.url.join(response.headers["location"])
        is_same = to.host == request.url.host and (to.scheme, request.url.scheme) != ("http", "https")
        is_private = request.method == "POST" or self._asked.key is not None or bool(self._asked.headers)
        if (is_private and not is_same) or (request.method == "POST" and response.status_code not in (307, 308)):
            raise ModelError(
                f"{self._place} redirects to {place_of(str(to))}{to.path}, where neither the conversation nor a key "
                "is sent unasked. If you trust that address, use it as the model's."
            )
        if request.method == "POST":
            self._url = str(to)
        return client.build_request(request.method, to, headers=_without_host(request), content=request.content)

    # The stop

    async def _stop(self, client: httpx.AsyncClient, thread: str) -> None:
        """Tell a server of this package that nobody waits for the turn any more; how that goes is no news."""
        parts = urlsplit(self._url)
        if not parts.path.endswith("/api/chat"):
            return
        path = f"{parts.path.removesuffix('/chat')}/threads/{quote(thread, safe='')}/stop"
        with suppress(Exception):
            async with asyncio.timeout(_STOP_WITHIN):
                await client.post(parts._replace(path=path, query="").geturl(), headers=self._headers("*/*"))


class _Later(Exception):
    """The server cannot give the rest at the moment."""


class _Never(Exception):
    """The server does not have the rest."""


def _without_host(request: httpx.Request) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}


async def _refused(response: httpx.Response) -> None:
    """Raise what a response says that is an error, with its body as far as that is of use."""
    import httpx

    body = b""
    try:
        with suppress(httpx.TransportError, httpx.DecodingError):
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > _MOST_OF_ERROR:
                    break
    finally:
        await response.aclose()
    kept = {name: value for name, value in response.headers.items() if name not in ("content-encoding",)}
    told = httpx.Response(response.status_code, headers=kept, content=body[:_MOST_OF_ERROR], request=response.request)
    raise httpx.HTTPStatusError(f"HTTP {response.status_code}", request=response.request, response=told)
