"""Streams of server-sent events to ours, across connections: nothing is lost and nothing comes twice."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolcall_nb import wire
from toolcall_nb.adapters import AnyAdapter, format_of_item
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.errors import ModelError
from toolcall_nb.wire.base import DONE, cut_off
from toolcall_nb.wire.sse import ServerSentEvent, SseDecoder, encode_sse

__all__ = ["EventStream"]

_ENDED_BY_ITSELF = ("chat", "ui")
"""Wires in which nothing may follow the end that a stream tells."""
_KEPT = ("chat", "ui", "ag-ui")
_LOOK_AT = 50
"""Events that are looked at before a stream is taken for none that is known."""
_UNKNOWN = (
    "{place} answered with a stream that is none of those that can be read here: chat contract, AI SDK, AG-UI, or a "
    "provider's. Check the address."
)


class EventStream:
    """One answer as events. ``headers`` are the response's, in lower case; ``place`` is for what is said to people.

    A client that comes back calls `again` and feeds what it gets: a server gives anew what came after the last id
    that it told, which is all where it told none. What was read before is recognised and left out. `feed` and `close`
    raise `ModelError` for a stream that is none of those that are known, and `feed` raises `WireError`
    for a line without end.
    """

    def __init__(self, content_type: str, headers: Mapping[str, str], place: str) -> None:
        self._content_type, self._headers, self._place = content_type, headers, place
        self._sse = SseDecoder(is_whole=self._is_whole)
        self._reader: wire.Decoder | AnyAdapter | None = None
        self._held: list[Any] = []  # objects before it is known who reads them
        self._since: list[int] = []  # hashes of the events since the last one that had an id
        self._again: list[int] = []  # those of them that are expected to come again
        self._is_told = True  # the message has told its end, or none has begun
        self._is_over = False
        self.wire: str | None = None
        self.last_event_id = ""
        self.retry: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether the stream has told its own end, and nothing more is to be read."""
        return self._is_over or (
            self.wire in _ENDED_BY_ITSELF and not isinstance(self._reader, AnyAdapter | None) and self._reader.is_over
        )

    @property
    def is_cut(self) -> bool:
        """Whether what came is not the whole of it, as far as the stream's wire tells that."""
        if self._is_over or self._reader is None or isinstance(self._reader, AnyAdapter):
            return False
        return not self._reader.is_over and not (self._is_told and self.wire == "ui")

    @property
    def may_come_again(self) -> bool:
        """Whether it may be one of which servers keep the rest: not a provider's."""
        return not self.is_over and (self.wire in _KEPT or (self._reader is None and not self._held))

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""
        found = [event for sent in self._sse.feed(data) for event in self._sent(sent)]
        if self._sse.last_event_id not in ("", self.last_event_id):  # an id that stood behind its data
            self._told(self._sse.last_event_id)
        self.retry = self.retry if self._sse.retry is None else self._sse.retry
        return found

    def again(self) -> None:
        """What is fed from now on comes over another connection."""
        self._sse = SseDecoder(is_whole=self._is_whole)
        self._again = [*self._since]

    def close(self) -> list[Event]:
        """The stream is over, or lost: what is still to be said of it."""
        sent = self._sse.feed(b"\n\n") if self._sse.refusal is None else []
        found = [cut_off(event) for each in sent for event in self._sent(each)]
        if self._reader is None:
            raise self._none()
        return [*found, *self._reader.close()]

    # Events of the connection

    def _is_whole(self, line: str) -> bool:
        """Seed 003 has one event a line. Where there are ids they may follow the data, and are waited for."""
        if self._sse.last_event_id or not line.startswith(("{", DONE)):
            return False
        return line == DONE or isinstance(_loaded(line), dict)

    def _told(self, event_id: str) -> None:
        self.last_event_id = event_id
        self._since.clear()

    def _sent(self, sent: ServerSentEvent) -> Iterator[Event]:
        mark = hash(sent.data)
        is_known = bool(self._again) and self._again[0] == mark
        self._again = self._again[1:] if is_known else []
        if sent.id not in ("", self.last_event_id):
            self._told(sent.id)
        elif not is_known:
            self._since.append(mark)
        if not is_known:
            yield from self._new(sent)

    def _new(self, sent: ServerSentEvent) -> Iterator[Event]:
        match self._reader:
            case None:
                yield from self._first(sent)
            case AnyAdapter():
                yield from self._item(sent.data)
            case decoder:
                for event in decoder.feed(encode_sse(sent.data)):
                    if not isinstance(event, ev.Data | ev.Diagnostic | ev.Status | ev.ToolExecution):
                        self._is_told = isinstance(event, ev.Finish | ev.Abort)
                    yield event

    # Who reads it

    def _first(self, sent: ServerSentEvent) -> Iterator[Event]:
        """Look who reads it, as long as that is not known."""
        self.wire = wire.recognised(self._content_type, self._headers, encode_sse(sent.data))
        if self.wire is not None:
            self._reader = wire.decoder(self.wire)
            yield from self._new(sent)
            return
        item = _loaded(sent.data)
        if item is not None and format_of_item(item) is not None:
            self._reader = AnyAdapter()
            yield from self._item(sent.data)
            return
        if sent.data:
            self._held.append(sent.data if item is None else item)
        if len(self._held) >= _LOOK_AT:
            raise self._none()

    def _item(self, data: str) -> Iterator[Event]:
        """One item of a provider's stream."""
        assert isinstance(self._reader, AnyAdapter)
        if data.strip() == DONE:
            self._is_over = True
        elif (item := _loaded(data)) is not None:
            yield from self._reader.take(item)
        elif data.strip():
            yield ev.Diagnostic(f"An event of the stream holds no JSON, but {data!r:.200}.", ev.LEFT_OUT)

    def _none(self) -> ModelError:
        """What is said of a stream that nobody reads."""
        if not self._held:
            return ModelError(f"{self._place} answered with nothing. Ask again, or check the address.")
        details = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in self._held)
        return ModelError(_UNKNOWN.format(place=self._place), details=details)


def _loaded(text: str) -> Any:
    """JSON, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
