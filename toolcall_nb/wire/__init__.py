"""Wires: the forms in which programs send a model's reply to each other, read and written as server-sent events.

| name | wire |
| --- | --- |
| ``chat`` | the chat contract of seed 003: ``chunk``, ``tool_usage``, ``end``, ``error`` |
| ``ui`` | the UI message stream of the AI SDK |
| ``ag-ui`` | AG-UI |
| ``provider`` | the provider envelopes of seed 001 |

`decoder` and `encoder` make the reader and the writer of one response. Each module below defines one `Wire`; `WIRES`
lists them by name.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from toolcall_nb.core.events import Json, Object
from toolcall_nb.errors import UsageError
from toolcall_nb.wire.ag_ui import AG_UI_WIRE
from toolcall_nb.wire.base import Decoder, Encoder, EncoderOptions, EventJson, Wire, json_objects
from toolcall_nb.wire.chat import CHAT_WIRE
from toolcall_nb.wire.provider import PROVIDER_WIRE, Envelopes
from toolcall_nb.wire.sse import SseDecoder
from toolcall_nb.wire.ui_stream import UI_WIRE

__all__ = [
    "LOSSES",
    "WIRES",
    "WIRE_NAMES",
    "Decoder",
    "Encoder",
    "Envelopes",
    "content_type",
    "decoder",
    "encoder",
    "headers",
    "json_objects",
    "recognised",
    "wire_of",
    "wire_of_response",
]

WIRES: Mapping[str, Wire] = {wire.name: wire for wire in (CHAT_WIRE, UI_WIRE, AG_UI_WIRE, PROVIDER_WIRE)}
WIRE_NAMES = tuple(WIRES)
LOSSES: Mapping[str, str] = {wire.name: wire.losses for wire in WIRES.values()}
"""What each wire cannot express, as a sentence for a table."""

_STREAM_TYPES = ("text/event-stream", "text/plain", "application/octet-stream", "application/x-ndjson", "")
"""The content types that servers give streams of events, rightly or not."""


def decoder(name: str) -> Decoder:
    """Returns a reader of one response in this wire. Raises `UsageError` for an unknown name."""
    return _wire(name).decoder()


def encoder(
    name: str,
    *,
    thread_id: str | None = None,
    run_id: str | None = None,
    known: Container[str] | None = None,
    numbered: bool | str = False,
) -> Encoder:
    """Returns a writer of one response in this wire. Raises `UsageError` for an unknown name.

    ``chat`` and ``ag-ui`` send the ``thread_id``, ``ag-ui`` also the ``run_id``. ``known`` are the tools that ``chat``
    may name; None allows any. ``numbered`` gives each server-sent event an id, counted from 1, for clients that
    reconnect; the front end that seed 003 was written with does not read such events.
    """
    return _wire(name).encoder(EncoderOptions(thread_id, run_id, known, numbered))


def content_type(name: str) -> str:
    """Returns the content type of this wire's responses. Raises `UsageError` for an unknown name."""
    return headers(name)["content-type"]


def headers(name: str) -> dict[str, str]:
    """Returns the headers of this wire's responses, in lower case; they also keep proxies from buffering."""
    return {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
        **_wire(name).headers,
    }


def wire_of(event: Object) -> str | None:
    """Returns the name of the wire that sends such an event, or None."""
    kind = event.get("type")
    return next((wire.name for wire in WIRES.values() if isinstance(kind, str) and wire.sends(kind, event)), None)


def wire_of_response(content_type: str | None, headers: Mapping[str, str], values: Iterable[Json]) -> str | None:
    """Returns the name of the wire that a response is in, or None.

    The AI SDK's stream has a header of its own; the others are recognised by the first of the stream's ``values`` that
    is one of their events.
    """
    names = {name.lower() for name in headers}
    for wire in WIRES.values():
        if names & wire.headers.keys():
            return wire.name
    if (content_type or "").partition(";")[0].strip().lower() not in _STREAM_TYPES:
        return None
    return next((name for value in values if isinstance(value, dict) and (name := wire_of(value))), None)


def recognised(content_type: str | None, headers: Mapping[str, str], first_bytes: bytes) -> str | None:
    """Returns the name of the wire that a response is in, or None, also while ``first_bytes`` hold no whole event."""
    json = EventJson()
    events = SseDecoder(is_whole=json.is_whole).feed(first_bytes)
    values = [value for event in events for value in json.values(event.data)]
    return wire_of_response(content_type, headers, values)


def _wire(name: str) -> Wire:
    if name not in WIRES:
        raise UsageError(f"There is no wire {name!r}. There are {', '.join(WIRES)}.")
    return WIRES[name]
