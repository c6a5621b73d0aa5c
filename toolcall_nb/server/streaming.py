"""Streams a run as the body of a response, in a wire: `RunStreamResponse`, from the beginning or after an event id.

The server-sent events of a response are numbered from 1, and the same run always gives the same events. So a client
that reconnects with a number gets what follows it: everything is encoded anew, and what it has is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

from msgspec.structs import replace
from starlette.types import Receive, Scope, Send

from toolcall_nb import wire
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.server.event_log import LogReader
from toolcall_nb.server.settings import Limits
from toolcall_nb.server.turn import ServedTurn, TurnResponse

_log = logger("toolcall_nb.server")

LIVE = "live"
"""The name, in place of a wire's, of the steps for the server's own page."""

_MAX_PIECE = 32_000
"""Approximate bytes of events that are written at once."""
_STEP_SECONDS = 0.04
"""The time between two steps of a page."""
_MOMENT = 0.05
"""Seconds until it is watched whether a client that has got nothing yet is still there: most models begin sooner, and
what is done before the first word delays it."""
_PAUSING = ("ui", "ag-ui")
"""The wires whose clients answer a question by a new request: the response ends with the question."""
_HEARTBEATS = {"chat": b": on\n\n", "ui": b": on\n", "ag-ui": b": on\n", LIVE: b": on\n"}
"""Comments. After an id, a blank line would make httpx-sse emit an empty event. The front end that seed 003 was
written with needs one, since it does not know comments."""


class OpenStreams:
    """The number of responses that are being sent."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *_: object) -> None:
        self.count -= 1


class RunStreamResponse:
    """An ASGI response that streams a run until it ends, or its reader leaves or takes nothing any more.

    While it is sent, ``streams`` counts it.
    """

    def __init__(
        self,
        run: ServedTurn,
        response: TurnResponse,
        limits: Limits,
        streams: OpenStreams,
        *,
        after: int = 0,
        ids: bool,
    ) -> None:
        self._run, self._response, self._limits, self._streams = run, response, limits, streams
        self._after, self._ids = after, ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the response."""
        start = 0 if self._response.wire == LIVE else self._response.start
        with self._streams, LogReader(self._run.log, start) as reader:
            try:
                await self._send_all(reader, receive, send)
            except TimeoutError:
                _log.warning("A reader of the thread %s took nothing for too long", self._run.thread)
            except OSError:  # how other ASGI servers than uvicorn report that the client is gone
                _log.debug("A reader of the thread %s is gone", self._run.thread)

    async def _send_all(self, reader: LogReader, receive: Receive, send: Send) -> None:
        name, beat = self._response.wire, self._limits.beat_seconds
        headers = {
            **wire.headers("ui" if name == LIVE else name),
            "connection": "keep-alive",
            "x-thread-id": self._run.thread,
        }
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        if name == LIVE:
            chunks = page_chunks(self._run, reader, self._after, beat)
        else:
            chunks = wire_chunks(self._run, self._response, reader, self._after, self._ids, beat)
        watch: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(None) as timeout:
                async for chunk in chunks:
                    if chunk:
                        reader.timer.start(self._limits.stalled_seconds, lambda: timeout.reschedule(0))
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
                        reader.timer.stop()
                    if reader.has_left:
                        return
                    if watch is None:
                        watch = asyncio.create_task(_leave_when_disconnected(reader, receive))
        finally:
            if watch is not None:
                watch.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def wire_chunks(
    run: ServedTurn, response: TurnResponse, reader: LogReader, after: int, ids: bool, beat: float
) -> AsyncIterator[bytes]:
    """Yields the bytes of a response in its wire. Events that are there together are one chunk.

    The first chunk is empty if nothing else comes in a moment.
    """
    encoder = _ResponseEncoder(run, response, after, ids)
    seconds, sign = _MOMENT, b""  # how long to wait, and what to send then
    while not reader.has_left:
        reader.has_news = False
        is_over, is_waiting = run.log.is_closed, run.is_waiting  # read first: what comes later is news
        if not reader.is_at_end:
            if chunk := encoder.encode(reader.take(_MAX_PIECE)):
                yield chunk
                seconds, sign = beat, _HEARTBEATS[response.wire]
        elif is_over:
            yield encoder.close()
            return
        elif is_waiting and response.wire in _PAUSING:
            yield encoder.pause()
            return
        elif not await reader.wait(seconds):
            yield sign
            seconds, sign = beat, _HEARTBEATS[response.wire]


async def page_chunks(run: ServedTurn, reader: LogReader, after: int, beat: float) -> AsyncIterator[bytes]:
    """Yields the steps of a run for a page, no faster than a display shows them."""
    feed, number = run.feed(), after or None
    name = feed.id.encode()
    while not reader.has_left:
        reader.has_news = False
        is_over = run.log.is_closed
        reader.take(1 << 60)
        steps = feed.since(number)
        if steps:
            number = steps[-1][0]
            yield b"".join(b"data: %s\nid: %s-%d\n\n" % (step, name, step_number) for step_number, step in steps)
        if is_over:
            return
        if await reader.wait(beat):
            await asyncio.sleep(_STEP_SECONDS)
        else:
            yield _HEARTBEATS[LIVE]


class _ResponseEncoder:
    """Encodes the events of a turn in a wire, and leaves out the numbered frames that the reader has."""

    def __init__(self, run: ServedTurn, response: TurnResponse, after: int, ids: bool) -> None:
        self._encoder = wire.encoder(
            response.wire, thread_id=run.thread, run_id=response.run_id, known=run.tools, numbered=ids and response.id
        )
        self._message_id = run.responses[0].run_id  # a message that continues after a question keeps its id
        self._after = after
        self._count = 0
        self._is_answer = False
        self._continues = response.start > 0

    def encode(self, events: Iterable[Event]) -> bytes:
        """Returns the frames of the assistant's events; the client knows what the user said."""
        encode, frames = self._encoder.encode, []
        for event in events:
            if self._continues and not self._is_answer:  # the rest of a message that was paused
                self._is_answer = True
                frames.append(encode(ev.Start(message_id=self._message_id)))
            if isinstance(event, ev.Start):
                self._is_answer = event.role in (None, "assistant")
                event = replace(event, message_id=event.message_id or self._message_id)
            if self._is_answer:
                frames.append(encode(event))
        return self._new(b"".join(frames))

    def close(self) -> bytes:
        return self._new(self._encoder.close())

    def pause(self) -> bytes:
        """Returns the end of a response whose turn waits for an answer, without ids: the turn will go on otherwise."""
        data = self._encoder.encode(ev.Finish(finish_reason="tool-calls")) + self._encoder.close()
        return b"\n".join(line for line in data.split(b"\n") if not line.startswith(b"id: "))

    def _new(self, data: bytes) -> bytes:
        """Counts the frames, and returns those that the client does not have."""
        count = data.count(b"\n\n")
        skipped = min(max(self._after - self._count, 0), count)
        self._count += count
        return data.split(b"\n\n", skipped)[-1] if skipped else data


async def _leave_when_disconnected(reader: LogReader, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    reader.leave()
