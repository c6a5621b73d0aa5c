"""Reads a stream of server-sent events, in any wire, over as many connections as it takes: `ReconnectingStream`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from toolcall_nb import wire
from toolcall_nb.adapters import AnyAdapter, format_of_item
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Json
from toolcall_nb.errors import ModelError
from toolcall_nb.wire.base import DONE, EventJson, NotJson, mark_as_cut_off
from toolcall_nb.wire.sse import ServerSentEvent, SseDecoder

_RESUMABLE = ("chat", "ui", "ag-ui")
"""The wires whose servers keep the rest of a stream."""
_MAX_UNKNOWN = 50
"""A stream that is not recognised by so many events is refused."""
_UNKNOWN = (
    "{server} answered with a stream that is none of those that can be read here: chat contract, AI SDK, AG-UI, or a "
    "provider's. Check the address."
)


class ReconnectingStream:
    """Reads one answer. ``headers`` are the response's, in lower case; ``server`` is its name in error messages.

    A client that reconnects calls `reconnected` and feeds what it gets: a server repeats everything after the last id
    that it sent, or the whole stream if it sent none. Events that were read before are recognised and left out. `feed`
    and `close` raise `ModelError` for a stream that is not recognised, and `feed` raises `WireError` for a line
    without an end.
    """

    def __init__(self, headers: Mapping[str, str], server: str) -> None:
        self._headers, self._server = headers, server
        self._json = EventJson()
        self._sse = SseDecoder(is_whole=self._is_whole)
        self._decoder: wire.Decoder | None = None  # for one of the wires, once it is recognised
        self._adapter: AnyAdapter | None = None  # for a provider's stream
        self._unknown: list[Json] = []  # values before the stream is recognised
        self._hashes: list[int] = []  # of the data of the events after the last one that had an id
        self._repeated: list[int] = []  # those of them that may still be repeated
        self._is_finished = True  # the message has had its end, or none has begun
        self._is_done = False  # a provider's stream has sent `DONE`
        self.wire: str | None = None
        self.last_event_id = ""
        self.retry: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether the stream has announced its end, and nothing more is to be read."""
        return self._is_done or (self.wire in ("chat", "ui") and self._decoder is not None and self._decoder.is_over)

    @property
    def is_cut(self) -> bool:
        """Whether the end is missing, if the stream's wire can tell."""
        if self._decoder is None or self._decoder.is_over:
            return False
        return not (self._is_finished and self.wire == "ui")

    @property
    def is_resumable(self) -> bool:
        """Whether the server may have kept the rest. Providers don't keep it."""
        is_unknown = self._decoder is None and self._adapter is None and not self._unknown
        return not self.is_over and (self.wire in _RESUMABLE or is_unknown)

    def feed(self, data: bytes) -> list[Event]:
        """Returns the events that these bytes complete."""
        events = [event for sent in self._sse.feed(data) for event in self._read(sent)]
        if self._sse.last_event_id not in ("", self.last_event_id):  # an id that came after its data
            self._remember_id(self._sse.last_event_id)
        self.retry = self.retry if self._sse.retry is None else self._sse.retry
        return events

    def reconnected(self) -> None:
        """Prepares for the bytes of another connection."""
        self._sse = SseDecoder(is_whole=self._is_whole)
        self._repeated = [*self._hashes]

    def close(self) -> list[Event]:
        """Returns the last events, once the stream is over or lost."""
        sent = self._sse.feed(b"\n\n") if self._sse.refusal is None else []
        events = [mark_as_cut_off(event) for each in sent for event in self._read(each)]
        reader = self._decoder or self._adapter
        if reader is None:
            raise self._not_recognised()
        return [*events, *reader.close()]

    def _is_whole(self, line: str) -> bool:
        """Whether the line is an event of its own, as in seed 003. If there are ids, one may follow the data."""
        return not self._sse.last_event_id and self._json.is_whole(line)

    def _remember_id(self, event_id: str) -> None:
        self.last_event_id = event_id
        self._hashes.clear()

    def _read(self, sent: ServerSentEvent) -> Iterator[Event]:
        data_hash = hash(sent.data)
        is_repeated = bool(self._repeated) and self._repeated[0] == data_hash
        self._repeated = self._repeated[1:] if is_repeated else []
        if sent.id not in ("", self.last_event_id):
            self._remember_id(sent.id)
        elif not is_repeated:
            self._hashes.append(data_hash)
        if not is_repeated:
            for value in self._json.values(sent.data):
                yield from self._take(value)

    def _take(self, value: Json) -> Iterator[Event]:
        if self._decoder is None and self._adapter is None:
            self._recognise(value)
        if self._decoder is not None:
            for event in self._decoder.take(value):
                if not isinstance(event, ev.Data | ev.Diagnostic | ev.Status | ev.ToolExecution):
                    self._is_finished = isinstance(event, ev.Finish | ev.Abort)
                yield event
        elif self._adapter is not None:
            if not isinstance(value, NotJson):
                yield from self._adapter.take(value)
            elif value.strip() == DONE:
                self._is_done = True
            elif value.strip():
                yield ev.Diagnostic(f"An event of the stream holds no JSON, but {value!r:.200}.", ev.LEFT_OUT)

    def _recognise(self, value: Json) -> None:
        """Chooses who reads the stream, as soon as a value shows it."""
        self.wire = wire.wire_of_response(self._headers.get("content-type"), self._headers, [value])
        if self.wire is not None:
            self._decoder = wire.decoder(self.wire)
        elif not isinstance(value, NotJson) and format_of_item(value) is not None:
            self._adapter = AnyAdapter()
        elif value != "":
            self._unknown.append(value)
        if len(self._unknown) >= _MAX_UNKNOWN:
            raise self._not_recognised()

    def _not_recognised(self) -> ModelError:
        if not self._unknown:
            return ModelError(f"{self._server} answered with nothing. Ask again, or check the address.")
        details = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in self._unknown)
        return ModelError(_UNKNOWN.format(server=self._server), details=details)
