"""The UI message stream of the AI SDK (vercel/ai, packages/ai/src/ui-message-stream, 7.0.173), both ways, exactly.

The package's events are this wire's chunks: each is one ``data:`` line, and ``data: [DONE]`` ends the stream. Where
this package has more to say than the AI SDK, it says it in fields and ``data-*`` chunks that other readers skip (see
`toolcall_nb.core.events`), so nothing is lost. A call that was interrupted, or was none, would stay open for ever in
the AI
SDK's reader, so there a ``tool-output-error`` marked ``standIn`` says so; this package's reader passes over it. Several
messages may follow each other in one stream; the AI SDK's reader takes them for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object, from_dict, to_dict
from toolcall_nb.wire.base import DONE, Frames, JsonEvents, broke_off

__all__ = ["HEADERS", "NAME", "NOT_SAID", "UiDecoder", "UiEncoder"]

NAME = "ui"
HEADERS: Mapping[str, str] = {"x-vercel-ai-ui-message-stream": "v1"}
"""By which the AI SDK knows the stream."""

NOT_SAID = (
    "Nothing is lost to this package's reader. The AI SDK's shows an interrupted call as failed, and takes several "
    "messages for one; it does not see logs, diagnostics, status, or what a person was shown of an output."
)

_ENDS = (ev.Finish, ev.Abort)
_STAND_IN = "standIn"
_INTERRUPTED = "The call was interrupted."
_NO_CALL = "This was no call: its text stays text."
_ELSEWHERE = "The call goes on under another id."


class UiDecoder(JsonEvents):
    """Chunks to events. A chunk that is not as its schema says is left out with a diagnostic, an unknown one kept."""

    def __init__(self) -> None:
        self._is_told = True  # the message has told its end, or none has begun
        super().__init__(self._chunk, self._ended)

    def _chunk(self, chunk: Object) -> Iterator[Event]:
        if chunk.get("type") == ev.ToolOutputError.type and chunk.get(_STAND_IN) is True:
            return
        event = from_dict(chunk)
        if not isinstance(event, ev.Data | ev.Diagnostic | ev.Status | ev.ToolExecution):
            self._is_told = isinstance(event, _ENDS)
        yield event

    def _ended(self, is_over: bool) -> Iterator[Event]:
        if not is_over and not self._is_told:
            yield from broke_off()


class UiEncoder:
    """Events to chunks."""

    def __init__(self, numbered: bool | str = False) -> None:
        self._frames = Frames(numbered)
        self._open: set[str] = set()  # calls that have begun and not ended

    def encode(self, event: Event) -> bytes:
        """The event as its chunk, and a stand-in where the AI SDK has no chunk for it."""
        chunks = [*self._stand_ins(event), to_dict(event)]
        return b"".join(map(self._frames.frame, chunks))

    def close(self) -> bytes:
        """``[DONE]``."""
        return self._frames.frame(DONE)

    def _stand_ins(self, event: Event) -> Iterator[Object]:
        match event:
            case ev.ToolInputStart() | ev.ToolInputAvailable():
                self._open.add(event.tool_call_id)
            case ev.ToolOutputAvailable(preliminary=True):
                pass
            case ev.ToolInputError() | ev.ToolOutputAvailable() | ev.ToolOutputError() | ev.ToolOutputDenied():
                self._open.discard(event.tool_call_id)
            case ev.ToolInterrupted():
                yield from self._stand_in(event.tool_call_id, _INTERRUPTED)
            case ev.ToolRetracted():
                yield from self._stand_in(event.tool_call_id, _ELSEWHERE if event.successor else _NO_CALL)
            case ev.Abort():
                for call_id in sorted(self._open):
                    yield from self._stand_in(call_id, _INTERRUPTED)

    def _stand_in(self, call_id: str, text: str) -> Iterator[Object]:
        if call_id in self._open:
            self._open.discard(call_id)
            yield {**to_dict(ev.ToolOutputError(call_id, text)), _STAND_IN: True}
