"""What all wires share: JSON objects in server-sent events, read without ever failing on what a peer wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from msgspec.structs import replace

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Json, Object
from toolcall_nb.core.json_text import json_text, read_json
from toolcall_nb.errors import WireError
from toolcall_nb.wire.sse import LIMIT, ServerSentEvent, SseDecoder, encode_sse

__all__ = [
    "DONE",
    "Decoder",
    "Encoder",
    "Frames",
    "JsonEvents",
    "JsonText",
    "broke_off",
    "cut_off",
    "json_objects",
    "mapping",
]

DONE = "[DONE]"
"""The data of the last event of a stream that is complete, where a wire has one."""


class Decoder(Protocol):
    """Reads one response: `feed` its bytes, cut anywhere, then `close`.

    What is wrong in the stream is a `Diagnostic`; only a line without end raises, a `WireError`. ``is_over`` says that
    the stream has told its own end, so that what is missing was not cut off. ``last_event_id`` and ``retry`` are for a
    client that comes back, as in `SseDecoder`.
    """

    @property
    def is_over(self) -> bool:
        """Whether the stream has told its own end."""

    @property
    def last_event_id(self) -> str:
        """The id of the last event that had one."""

    @property
    def retry(self) -> int | None:
        """The milliseconds to wait before coming back, where the stream says so."""

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""

    def take(self, found: Object) -> list[Event]:
        """The events of one object of the stream, for a caller that has read it already."""

    def close(self) -> list[Event]:
        """The stream is over, or was cut off: what is still to be said of it."""


class Encoder(Protocol):
    """Writes one response: `encode` each event, then `close`. What it gives together is the response's body."""

    def encode(self, event: Event) -> bytes:
        """The event as the wire has it; no bytes where the wire cannot say it."""

    def close(self) -> bytes:
        """The end of the stream."""


class JsonEvents:
    """The decoder of a wire whose events are JSON objects, each the data of one server-sent event.

    A wire gives ``read`` (the events of one object) and ``end`` (those of the stream's end, told whether it was
    complete). Seed 003 writes one event a line without blank lines between them, and that is read too: a data line
    that is a whole JSON object begins no longer value, so nothing is lost by taking it for an event at once.
    """

    def __init__(
        self, read: Callable[[Object], Iterator[Event]], end: Callable[[bool], Iterator[Event]], limit: int = LIMIT
    ) -> None:
        self.is_over = False
        self._on_object = read
        self._on_end = end
        self._parsed: tuple[str | None, Json] = (None, None)
        self._sse = SseDecoder(limit, self._is_whole)

    @property
    def last_event_id(self) -> str:
        """See `SseDecoder`."""
        return self._sse.last_event_id

    @property
    def retry(self) -> int | None:
        """See `SseDecoder`."""
        return self._sse.retry

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""
        return [event for sent in self._sse.feed(data) for event in self._events(sent)]

    def take(self, found: Object) -> list[Event]:
        """The events of one object of the stream, for a caller that has read it already."""
        return [*self._one(found)]

    def close(self) -> list[Event]:
        """The end of what is open. An event that lacks only its blank line is taken, unlike in a browser."""
        refusal = self._sse.refusal
        found = self.feed(b"\n\n") if refusal is None else [ev.Diagnostic(refusal, "What had come was kept.")]
        self._sse.close()
        return [*map(cut_off, found), *self._on_end(self.is_over)]

    def _is_whole(self, line: str) -> bool:
        if line == DONE:
            return True
        if not (line.lstrip().startswith("{") and line.rstrip().endswith("}")):
            return False
        try:
            self._parsed = (line, read_json(line))
        except (ValueError, RecursionError):
            return False
        return True

    def _events(self, sent: ServerSentEvent) -> Iterator[Event]:
        for found in self._objects(sent.data) if sent.data != DONE else [DONE]:
            if isinstance(found, dict):
                yield from self._one(found)
            elif found == DONE:
                self.is_over = True
            elif found != "":
                yield _no_object(found)

    def _objects(self, data: str) -> Iterator[Json]:
        """The JSON of one event; where it is none, that of those of its lines that are. A string was no JSON."""
        if data == self._parsed[0]:
            yield self._parsed[1]
            return
        try:
            yield read_json(data)
        except RecursionError:
            yield data
        except ValueError:
            yield from self._by_line(data) if "\n" in data else [data]

    def _by_line(self, data: str) -> Iterator[Json]:
        """A line that is no JSON must not take those with it that came after it without a blank line."""
        lines = data.split("\n")
        whole = [self._parsed[1] if self._is_whole(line) and line != DONE else line for line in lines]
        yield from whole if any(isinstance(found, dict) for found in whole) else [data]

    def _one(self, found: Object) -> Iterator[Event]:
        try:
            yield from self._on_object(found)
        except WireError as error:
            yield ev.Diagnostic(str(error), "The chunk was left out.")


def json_objects(stream: bytes) -> list[Object]:
    """The objects of a whole stream, of whichever wire. Raises `WireError` for an event that is none."""
    decoder = JsonEvents(lambda found: iter([ev.Other("object", extra=found)]), lambda _: iter(()))
    objects: list[Object] = []
    for event in (*decoder.feed(stream), *decoder.close()):
        if not isinstance(event, ev.Other):
            raise WireError(f"event {len(objects) + 1}, is no JSON object")
        objects.append(event.extra)
    return objects


def _no_object(found: Json) -> Event:
    return ev.Diagnostic(f"An event of the stream holds no JSON object, but {found!r:.200}.", ev.LEFT_OUT)


def cut_off(event: Event) -> Event:
    """The last event of a stream: where it holds no JSON, the stream broke off in it."""
    is_none = isinstance(event, ev.Diagnostic) and event.action == ev.LEFT_OUT
    return replace(event, action="The stream broke off in it.") if is_none else event


class JsonText:
    """JSON text that arrives in pieces, of a call's arguments."""

    def __init__(self, text: str = "") -> None:
        self._pieces = [text]

    def add(self, delta: str) -> None:
        """One more piece."""
        self._pieces.append(delta)

    def __str__(self) -> str:
        return "".join(self._pieces)

    def event(self, call_id: str, name: str) -> Event:
        """The call with these arguments, no text for none; or the error that they are no JSON."""
        text = str(self)
        try:
            return ev.ToolInputAvailable(call_id, name, read_json(text) if text.strip() else {})
        except (ValueError, RecursionError):
            return ev.ToolInputError(call_id, name, text, "The arguments of a tool call are no valid JSON.")


class Frames:
    """Objects as server-sent events; ``numbered`` gives each an id, counted from 1, before its data.

    A text for ``numbered`` names the stream, and stands in each id before the number: ``name-1``.
    """

    def __init__(self, numbered: bool | str = False) -> None:
        self._next = 1 if numbered else None
        self._name = f"{numbered}-" if isinstance(numbered, str) else ""

    def frame(self, data: Mapping[str, Any] | str) -> bytes:
        """One event that holds this object, or this text."""
        text = data if isinstance(data, str) else json_text(data)
        if self._next is None:
            return encode_sse(text)
        self._next += 1
        return encode_sse(text, id=f"{self._name}{self._next - 1}")


def broke_off() -> Iterator[Event]:
    """What is said of a stream that was cut off."""
    yield ev.Error("The connection ended before the reply did. What had come is kept; ask again for the rest.")
    yield ev.Finish(finish_reason="error")


def mapping(value: Any) -> Mapping[str, Any]:
    """``value`` if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}
