"""A run as the body of a response, in a wire: from its beginning, or from where a client has left.

Every server-sent event of a response has a number, counted from 1, and the same run gives the same events each time.
So a client that comes back is given what comes after its number by writing everything anew and leaving out the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress

from msgspec.structs import replace
from starlette.types import Receive, Scope, Send

from toolcall_nb import wire
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.server.log import Reader
from toolcall_nb.server.runs import Response, ServedRun
from toolcall_nb.server.settings import Limits

__all__ = ["LIVE", "EventStream", "page_chunks", "wire_chunks"]

log = logger("toolcall_nb.server")

LIVE = "live"
"""The steps that the server's own page is told; no wire for others."""

_PIECE = 32_000
"""Bytes of events that are written at once, about."""
_FRAME = 0.04
"""Seconds between two steps of a page."""
_PAUSING = ("ui", "ag-ui")
"""Wires whose clients answer a question by a new request: their response ends with the question."""


class EventStream:
    """An ASGI response that reads a run until there is no more, the reader is gone, or takes nothing any more."""

    def __init__(self, run: ServedRun, response: Response, limits: Limits, *, after: int = 0, ids: bool) -> None:
        self._run, self._response, self._limits = run, response, limits
        self._after, self._ids = after, ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        start = 0 if self._response.wire == LIVE else self._response.start
        with self._run.log.reading(start) as reader:
            gone = asyncio.ensure_future(_until_gone(receive))
            gone.add_done_callback(lambda _: reader.ring())
            try:
                await self._send_all(reader, gone, send)
            except TimeoutError:
                log.warning("A reader of the thread %s took nothing for too long", self._run.chat.thread)
            except OSError:  # gone, as other ASGI servers than uvicorn say it
                log.debug("A reader of the thread %s is gone", self._run.chat.thread)
            finally:
                gone.cancel()

    async def _send_all(self, reader: Reader, gone: asyncio.Future[None], send: Send) -> None:
        headers = {**_headers(self._response.wire), "x-thread-id": self._run.chat.thread}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        async for chunk in self._chunks(reader, gone):
            async with asyncio.timeout(self._limits.stalled_seconds):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if gone.done():
                return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _chunks(self, reader: Reader, gone: asyncio.Future[None]) -> AsyncIterator[bytes]:
        beat = self._limits.beat_seconds
        if self._response.wire == LIVE:
            return page_chunks(self._run, reader, gone, self._after, beat)
        return wire_chunks(self._run, self._response, reader, gone, self._after, self._ids, beat)


async def wire_chunks(
    run: ServedRun,
    response: Response,
    reader: Reader,
    gone: asyncio.Future[None],
    after: int,
    ids: bool,
    beat: float,
) -> AsyncIterator[bytes]:
    """The bytes of one response in its wire, those of several events together where they are there."""
    frames = _Frames(run, response, after, ids)
    while not gone.done():
        is_over, is_waiting = run.log.is_closed, run.is_waiting  # before the look: what comes after it, rings again
        if not reader.is_at_end:
            if chunk := frames.encode(reader.take(_PIECE)):
                yield chunk
        elif is_over:
            yield frames.close()
            return
        elif is_waiting and response.wire in _PAUSING:
            yield frames.pause()
            return
        elif not await reader.wait(beat):
            yield _BEATS[response.wire]


async def page_chunks(
    run: ServedRun, reader: Reader, gone: asyncio.Future[None], after: int, beat: float
) -> AsyncIterator[bytes]:
    """The steps of a run, as they are drawn, no faster than a display."""
    feed, number, name = run.feed(), after or None, run.responses[0].id.encode()
    while not gone.done():
        is_over = run.log.is_closed
        reader.take(1 << 60)
        steps = feed.since(number)
        if steps:
            number = steps[-1][0]
            yield b"".join(b"data: %s\nid: %s-%d\n\n" % (step, name, place) for place, step in steps)
        if is_over:
            return
        if await reader.wait(beat):
            await asyncio.sleep(_FRAME)
        else:
            yield _BEATS[LIVE]


_BEATS = {"chat": b": on\n\n", "ui": b": on\n", "ag-ui": b": on\n", LIVE: b": on\n"}
"""Comments. Where an id was told, a blank line makes httpx-sse give an event that holds nothing; the front end that
seed 003 was written with needs one, since it knows no comments."""


class _Frames:
    """Events of a turn as numbered frames of a wire, without those that the reader has."""

    def __init__(self, run: ServedRun, response: Response, after: int, ids: bool) -> None:
        thread, known = run.chat.thread, run.chat.tools
        self._encoder = wire.encoder(
            response.wire, thread_id=thread, run_id=response.run_id, known=known, numbered=ids and response.id
        )
        self._message = run.responses[0].run_id  # a message that goes on after a question stays the same one
        self._after = after
        self._count = 0
        self._is_answer = False
        self._goes_on = response.start > 0

    def encode(self, events: Iterable[Event]) -> bytes:
        """The frames of these events."""
        return b"".join(self._new(self._encoder.encode(event)) for event in self._of_answer(events))

    def close(self) -> bytes:
        """The end of the response."""
        return self._new(self._encoder.close())

    def pause(self) -> bytes:
        """The end of a response whose turn waits for an answer; not numbered, since the turn will go on otherwise."""
        end = self._encoder.encode(ev.Finish(finish_reason="tool-calls"))
        return _without_ids(end + self._encoder.close())

    def _of_answer(self, events: Iterable[Event]) -> Iterable[Event]:
        """The assistant's message alone: the client knows what the user has said."""
        for event in events:
            if self._goes_on and not self._is_answer:  # the rest of a message that was paused
                self._is_answer = True
                yield ev.Start(message_id=self._message)
            if isinstance(event, ev.Start):
                self._is_answer = event.role in (None, "assistant")
                event = replace(event, message_id=event.message_id or self._message)
            if self._is_answer:
                yield event

    def _new(self, data: bytes) -> bytes:
        frames = data.split(b"\n\n")[:-1] if data else []
        first = self._count
        self._count += len(frames)
        skipped = min(max(self._after - first, 0), len(frames))
        return b"".join(frame + b"\n\n" for frame in frames[skipped:])


def _without_ids(data: bytes) -> bytes:
    return b"\n".join(line for line in data.split(b"\n") if not line.startswith(b"id: "))


def _headers(name: str) -> dict[str, str]:
    return {**wire.headers("ui" if name == LIVE else name), "connection": "keep-alive"}


async def _until_gone(receive: Receive) -> None:
    """Until the client has closed the connection."""
    with suppress(asyncio.CancelledError):
        while (await receive())["type"] != "http.disconnect":
            pass
