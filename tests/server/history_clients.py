"""A client that reads one response of the server, loses its connection at any byte, and resumes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from tests.support.history_pages import Page
from toolcall_nb import wire
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.server.event_log import LogReader
from toolcall_nb.server.served_run import ServedRun
from toolcall_nb.server.streaming import LIVE, page_chunks, wire_chunks
from toolcall_nb.server.turn import TurnResponse

__all__ = ["Client", "frames_of"]

_BEAT = 0.02
"""Interval of the server's keep-alive comments, in seconds; after one, everything available has been read."""


class Client:
    """Reads a run's response in ``wire``, resuming by ``Last-Event-ID``. ``frames`` are the numbered ones, in order."""

    def __init__(self, run: ServedRun, wire: str) -> None:
        self.run, self.wire = run, wire
        own = run.responses[0 if wire == LIVE else -1]
        self.response = TurnResponse(wire, own.start, own.run_id, own.id)
        self.frames: list[bytes] = []
        self.page = Page(lambda _, message: None)
        self.is_whole = False

    def read(self, loop: asyncio.AbstractEventLoop, most: int | None = None) -> None:
        """Connects, reads everything available or at most ``most`` bytes of it, and loses the connection."""
        data = asyncio.run_coroutine_threadsafe(self._read(), loop).result(60)
        for frame in frames_of(data if most is None else data[:most]):
            number = _number(frame)
            if number is None:
                continue
            if self.wire == LIVE:
                self._show(json.loads(_data(frame)), number)
            else:
                assert number == len(self.frames) + 1, (number, len(self.frames))
                self.frames.append(frame)

    def _show(self, step: dict[str, Any], number: int) -> None:
        assert number > self.page.seq
        self.page.begin(step) if step["type"] == "state" else self.page.receive(step)
        assert self.page.seq == number  # nothing was missed in between

    async def _read(self) -> bytes:
        """Reads until the first keep-alive comment or the end of the stream."""
        data = b""
        with LogReader(self.run.log, 0 if self.wire == LIVE else self.response.start) as reader:
            async for chunk in self._chunks(reader):
                data += chunk
                if chunk.startswith(b": on"):
                    break
        return data

    def _chunks(self, reader: LogReader) -> AsyncIterator[bytes]:
        if self.wire == LIVE:
            return page_chunks(self.run, reader, max(self.page.seq, 0), _BEAT)
        return wire_chunks(self.run, self.response, reader, len(self.frames), True, _BEAT)

    @property
    def transcript(self) -> Transcript:
        """The transcript of the frames received so far."""
        decoder = wire.decoder(self.wire)
        events: list[Event] = [event for frame in self.frames for event in decoder.feed(frame)]
        return Transcript.from_events([*events, *decoder.close()])


def frames_of(data: bytes) -> list[bytes]:
    """Splits the data into frames, without an incomplete last one."""
    return [frame + b"\n\n" for frame in data.split(b"\n\n")[:-1]]


def _number(frame: bytes) -> int | None:
    ids = [line for line in frame.split(b"\n") if line.startswith(b"id: ")]
    return int(ids[0].rpartition(b"-")[2]) if ids else None


def _data(frame: bytes) -> bytes:
    return b"\n".join(line[6:] for line in frame.split(b"\n") if line.startswith(b"data: "))
