"""Wires: events as other programs send them, both ways.

| name | what it is |
| --- | --- |
| ``chat`` | the chat contract of seed 003: ``chunk``, ``tool_usage``, ``end``, ``error`` |
| ``ui`` | the UI message stream of the AI SDK |
| ``ag-ui`` | AG-UI |
| ``provider`` | the provider envelopes of seed 001 |

All are JSON objects in server-sent events. What a wire cannot say is in `NOT_SAID`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from toolcall_nb.errors import UsageError
from toolcall_nb.wire import ag_ui, chat_sse, provider, ui_stream
from toolcall_nb.wire.base import Decoder, Encoder, json_objects
from toolcall_nb.wire.provider import Envelopes
from toolcall_nb.wire.recognising import recognised, wire_of

__all__ = [
    "NAMES",
    "NOT_SAID",
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
]

NAMES = (chat_sse.NAME, ui_stream.NAME, ag_ui.NAME, provider.NAME)

_DECODERS: Mapping[str, Callable[[], Decoder]] = {
    chat_sse.NAME: chat_sse.ChatDecoder,
    ui_stream.NAME: ui_stream.UiDecoder,
    ag_ui.NAME: ag_ui.AgUiDecoder,
    provider.NAME: provider.EnvelopeDecoder,
}

NOT_SAID: Mapping[str, str] = {
    chat_sse.NAME: chat_sse.NOT_SAID,
    ui_stream.NAME: ui_stream.NOT_SAID,
    ag_ui.NAME: ag_ui.NOT_SAID,
    provider.NAME: provider.NOT_SAID,
}
"""For each wire, what cannot be said in it, as a sentence for a table."""


def decoder(name: str) -> Decoder:
    """What reads one response of this wire. Raises `UsageError` for a name that there is not."""
    return _DECODERS[_known(name)]()


def encoder(
    name: str,
    *,
    thread_id: str | None = None,
    run_id: str | None = None,
    known: Container[str] | None = None,
    numbered: bool | str = False,
) -> Encoder:
    """What writes one response of this wire.

    ``thread_id`` is told by ``chat`` and ``ag-ui``, ``run_id`` by ``ag-ui``. ``known`` are the tools that ``chat`` may
    name, None any. ``numbered`` gives each server-sent event an id, counted from 1, for clients that come back; the
    front end that seed 003 was written with does not read such events. Raises `UsageError` for an unknown name.
    """
    match _known(name):
        case chat_sse.NAME:
            return chat_sse.ChatEncoder(thread_id or "", known, numbered)
        case ag_ui.NAME:
            return ag_ui.AgUiEncoder(thread_id or "thread", run_id or "run", numbered)
        case provider.NAME:
            return provider.EnvelopeEncoder(numbered)
        case _:
            return ui_stream.UiEncoder(numbered)


def content_type(name: str) -> str:
    """The content type of this wire's responses. Raises `UsageError` for a name that there is not."""
    return headers(name)["content-type"]


def headers(name: str) -> dict[str, str]:
    """The headers of this wire's responses, in lower case: the type, its own, and that nothing holds them back."""
    own = ui_stream.HEADERS if _known(name) == ui_stream.NAME else {}
    return {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
        **own,
    }


def _known(name: str) -> str:
    if name not in NAMES:
        raise UsageError(f"There is no wire {name!r}. There are {', '.join(NAMES)}.")
    return name
