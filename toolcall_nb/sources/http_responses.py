"""Reads responses that the user holds, of httpx, requests and urllib, as events: `response_events`.

They are recognised by the names of their classes, so nothing is imported for them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from toolcall_nb.core.sdk_objects import class_names
from toolcall_nb.errors import UsageError
from toolcall_nb.sources.http_exchange import origin_of
from toolcall_nb.sources.http_response_body import ResponseBody

if TYPE_CHECKING:
    from toolcall_nb.core.events import Event

_HTTPX = (("httpx", "Response"), ("httpx2", "Response"))
_REQUESTS = ("requests.models", "Response")
_URLLIB = ("http.client", "HTTPResponse")
_PIECE = 65_536


class _HttpError(Exception):
    """The response reports an error; ``response`` is for `toolcall_nb.sources.provider_errors.translation`."""

    def __init__(self, status: int, response: Any) -> None:
        super().__init__(f"HTTP {status}")
        self.response = response


def is_response(thing: Any) -> bool:
    """Whether it is a response of a known package. Never raises, and reads nothing."""
    return _package(thing) is not None


def must_be_awaited(response: Any) -> bool:
    """Whether the response is asynchronous and has not been read."""
    if _package(response) != "httpx" or _content(response) is not None:
        return False
    stream = type(getattr(response, "stream", None))
    return hasattr(stream, "__aiter__") and not hasattr(stream, "__iter__")


def response_events(response: Any) -> Generator[list[Event], None, None]:
    """Yields the events of a response, those together that came together; then closes it.

    Raises what its package raises, `ModelError` for a body that is no reply, and for the status of an error an
    exception that holds the response, for `toolcall_nb.sources.provider_errors.translation`.
    """
    try:
        if (status := _status(response)) >= 400:
            with suppress(Exception):  # reads the body before it is closed, so that an error message can quote it
                if _content(response) is None:
                    response.read()
            raise _HttpError(status, response)
        body = _body(response)
        for piece in _pieces(response):
            if events := [*body.feed(piece)]:
                yield events
        yield [*body.close()]
    finally:
        with suppress(Exception):
            response.close()


async def response_events_async(response: Any) -> AsyncGenerator[list[Event], None]:
    """Yields the events of an asynchronous response, as `response_events` does."""
    try:
        if (status := _status(response)) >= 400:
            with suppress(Exception):
                await response.aread()
            raise _HttpError(status, response)
        body = _body(response)
        async for piece in response.aiter_bytes():
            if events := [*body.feed(piece)]:
                yield events
        yield [*body.close()]
    finally:
        with suppress(Exception):
            await response.aclose()


def _body(response: Any) -> ResponseBody:
    items = (getattr(response, "headers", None) or {}).items()
    url, server = getattr(response, "url", None), "The server"
    if url:
        with suppress(UsageError):
            server = origin_of(str(url))
    return ResponseBody({str(name): str(value) for name, value in items}, server)


def _package(thing: Any) -> str | None:
    for name in class_names(type(thing)):
        if name in _HTTPX:
            return "httpx"
        if name == _REQUESTS:
            return "requests"
        if name == _URLLIB:
            return "urllib"
    return None


def _status(response: Any) -> int:
    status = getattr(response, "status_code", None) or getattr(response, "status", None)
    return status if isinstance(status, int) else 200


def _content(response: Any) -> bytes | None:
    """Returns the content that was read already; httpx raises if none was."""
    try:
        content = response.content
    except Exception:
        return None
    return content if isinstance(content, bytes) else None


def _pieces(response: Any) -> Iterable[bytes]:
    pieces: Iterable[bytes]
    match _package(response):
        case "httpx":
            content = _content(response)
            pieces = response.iter_bytes() if content is None else [content]
        case "requests":
            pieces = response.iter_content(None)
        case _:
            pieces = iter(lambda: response.read1(_PIECE), b"")
    return pieces
