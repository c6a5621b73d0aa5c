"""The UI message stream of the AI SDK (vercel/ai, packages/ai/src/ui-message-stream, 7.0.173), both ways, exactly.

The package's events are this wire's chunks: each is one ``data:`` line, and ``data: [DONE]`` ends the stream. Where
this package has more to say than the AI SDK, it says it in fields and ``data-*`` chunks that other readers skip (see
`toolcall_nb.events`), so nothing is lost. Several messages may follow each other in one stream; the AI SDK's reader
takes them for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolcall_nb import events as ev
from toolcall_nb.events import Event, Object, from_dict, to_dict
from toolcall_nb.wire.base import DONE, Frames, JsonEvents, broke_off

__all__ = ["HEADERS", "NAME", "NOT_SAID", "UiDecoder", "UiEncoder"]

NAME = "ui"
HEADERS: Mapping[str, str] = {"x-vercel-ai-ui-message-stream": "v1"}
"""By which the AI SDK knows the stream."""

NOT_SAID = "Nothing is lost to this package; the AI SDK's own readers take several messages for one."

_ENDS = (ev.Finish, ev.Abort)


class UiDecoder(JsonEvents):
    """Chunks to events. A chunk that is not as its schema says is left out with a diagnostic, an unknown one kept."""

    def __init__(self) -> None:
        self._is_told = True  # the message has told its end, or none has begun
        super().__init__(self._chunk, self._ended)

    def _chunk(self, chunk: Object) -> Iterator[Event]:
        event = from_dict(chunk)
        if not isinstance(event, ev.Data | ev.Diagnostic | ev.Status):
            self._is_told = isinstance(event, _ENDS)
        yield event

    def _ended(self, is_over: bool) -> Iterator[Event]:
        if not is_over and not self._is_told:
            yield from broke_off()


class UiEncoder:
    """Events to chunks."""

    def __init__(self, numbered: bool = False) -> None:
        self._frames = Frames(numbered)

    def encode(self, event: Event) -> bytes:
        """The event as its chunk."""
        return self._frames.frame(to_dict(event))

    def close(self) -> bytes:
        """``[DONE]``."""
        return self._frames.frame(DONE)
