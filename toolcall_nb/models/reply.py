"""One reply of a model, as a transcript can take it.

Models reuse ids, leave them out, show a call twice, leave blocks open, and write calls in text. Here that is put
right, event by event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from toolcall_nb import dialects
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Json
from toolcall_nb.errors import ModelError

__all__ = ["Begun", "Reply"]


class Begun(Struct):
    """A call of this reply: whether its input is there, and whether the model's side found it wrong."""

    name: str
    input: Json = MISSING
    wrong: bool = False


class Reply:
    """One reply on its way: its text through the dialect's detector, its calls under ids that are theirs alone.

    In a text dialect the same id again is the same call, as the dialect has it. In a native stream it is the same
    call only if it says the same (a second view of it), and another call if it does not; until that is known the
    second one is held. ``troubles`` are the calls in its text that could not be read.
    """

    def __init__(self, dialect: str, used: set[str]) -> None:
        self.calls: dict[str, Begun] = {}
        self.finish = ev.Finish()
        self.abort: ev.Abort | None = None
        self.failed = False
        self.troubles: list[ev.Diagnostic] = []
        self._dialect = dialect
        self._detector: dialects.Detector | None = None
        self._used = used
        self._ids: dict[str, str] = {}
        self._held: dict[str, list[Event]] = {}
        self._open: dict[tuple[bool, str], Event] = {}  # text and reasoning blocks, and what ends them

    def take(self, event: Event) -> list[Event]:
        """The model's event as the transcript takes it: itself, others, or none."""
        match event:
            case ev.Start():
                metadata = event.message_metadata
                return [ev.MessageMetadata(metadata)] if metadata is not None else []
            case ev.StartStep() | ev.FinishStep():
                return []
            case ev.Finish():
                self.finish = event
                return []
            case ev.Abort():
                self.abort = event
                return []
            case ev.TextStart() | ev.TextDelta() | ev.TextEnd() if self._dialect != "native":
                return self._detect(event)
            case ev.Error():
                self.failed = True
                return [event]
        if not isinstance(event, Event):
            raise ModelError(f"The model sent {event!r:.100}, which is no event of toolcall_nb.core.events.")
        return self._own(event)

    def close(self) -> list[Event]:
        """The reply is over: what was held, and the ends of what was left open. A second time, nothing."""
        detector, self._detector = self._detector, None
        found = [own for event in (detector.close() if detector else ()) for own in self._own(event)]
        held, self._held = self._held, {}
        for raw, events in held.items():
            found += self._renamed(self._new_id(raw, events[0]), events)
        ends, self._open = list(self._open.values()), {}
        return [*found, *ends]

    def _detect(self, event: ev.TextStart | ev.TextDelta | ev.TextEnd) -> list[Event]:
        """The text of one block through one detector; the next block's knows nothing of its ids."""
        if isinstance(event, ev.TextDelta):
            self._detector = self._detector or dialects.detector(self._dialect)
            return [own for found in self._detector.feed(event.delta) for own in self._own(found)]
        detector, self._detector = self._detector, None
        if detector is None:
            return []
        found = [own for event in detector.close() for own in self._own(event)]
        self._ids.clear()
        return found

    def _own(self, event: Event) -> list[Event]:
        match event:
            case ev.TextStart() | ev.TextDelta() | ev.TextEnd():
                return self._block(event, ev.TextStart(event.id), ev.TextEnd(event.id))
            case ev.ReasoningStart() | ev.ReasoningDelta() | ev.ReasoningEnd():
                return self._block(event, ev.ReasoningStart(event.id), ev.ReasoningEnd(event.id))
            case ev.ToolInputStart() | ev.ToolInputAvailable() | ev.ToolInputError():
                return self._begin(event)
            case ev.ToolInputDelta() if event.tool_call_id in self._held:
                self._held[event.tool_call_id].append(event)
                return []
            case ev.ToolRetracted():
                return self._retract(event)
            case ev.Diagnostic():
                self.troubles.append(event)
            case ev.ResetStep():
                self._forget()
        raw = getattr(event, "tool_call_id", None)
        return [event] if raw is None else self._renamed(self._ids.get(raw, raw), [event])

    def _forget(self) -> None:
        """The step is tried again: its calls are gone, and their ids are free."""
        self._used -= self.calls.keys()
        self._detector = None
        for kept in (self.calls, self._ids, self._held, self._open, self.troubles):
            kept.clear()

    def _block(self, event: Any, start: Event, end: Event) -> list[Event]:
        key = (isinstance(end, ev.TextEnd), event.id)
        if type(event) is type(end):
            return [event] if self._open.pop(key, None) else []
        missing = [start] if key not in self._open and type(event) is not type(start) else []
        self._open[key] = end
        return [*missing, event]

    def _begin(self, event: ev.ToolInputStart | ev.ToolInputAvailable | ev.ToolInputError) -> list[Event]:
        raw = event.tool_call_id
        own = self._ids.get(raw)
        known = self.calls.get(own) if own is not None else None
        held = self._held.pop(raw, [])
        starts = isinstance(event, ev.ToolInputStart)
        if known is not None and known.input is not MISSING and self._dialect == "native":
            if starts and raw:
                self._held[raw] = [*held, event]
                return []
            if raw and (known.name, known.input) == (event.tool_name, getattr(event, "input", MISSING)):
                return []
            known = None
        if own is None or known is None or (starts and not raw):
            own = self._new_id(raw, event)
        begun = self.calls[own]
        if not isinstance(event, ev.ToolInputStart):
            begun.input, begun.wrong = event.input, isinstance(event, ev.ToolInputError)
        return self._renamed(own, [*held, event])

    def _new_id(self, raw: str, event: Any) -> str:
        """An id that no other call of the chat has: the model's own where that is free."""
        number = 2 if raw else 1
        own = raw or "call_1"
        while own in self._used:
            own = f"{raw}-{number}" if raw else f"call_{number}"
            number += 1
        self._used.add(own)
        self._ids[raw] = own
        self.calls[own] = Begun(event.tool_name)
        return own

    def _retract(self, event: ev.ToolRetracted) -> list[Event]:
        own = self._ids.pop(event.tool_call_id, None)
        if own is None:
            return []
        begun = self.calls.pop(own)
        self._used.discard(own)
        successor = event.successor
        if successor is not None:
            known = self._ids.get(successor)
            successor = known or self._new_id(successor, ev.ToolInputStart(successor, begun.name))
        return [replace(event, tool_call_id=own, successor=successor)]

    @staticmethod
    def _renamed(own: str, events: Sequence[Any]) -> list[Event]:
        return [event if event.tool_call_id == own else replace(event, tool_call_id=own) for event in events]
