"""The reducer: events in, the transcript out, and what each event changed.

The life of a tool call is decided by `toolcall_nb.transcript.TRANSITIONS` alone.

Differences from the AI SDK's reader (process-ui-message-stream.ts), each on purpose: text that arrives after a
tool call starts a new text part, so that the order of what happened is kept; an event out of order is a
diagnostic, not an exception; ``abort`` closes the open calls as interrupted; ``error`` is kept as a part.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from toolcall_nb import events as ev
from toolcall_nb.events import MISSING, Json, Object
from toolcall_nb.message_state import MessageState, Slot
from toolcall_nb.printed import Printed
from toolcall_nb.transcript import (
    TRANSITIONS,
    Approval,
    CustomPart,
    DataPart,
    ErrorPart,
    FilePart,
    Message,
    Part,
    Role,
    SourceDocumentPart,
    SourceUrlPart,
    State,
    ToolCall,
    Transcript,
)
from toolcall_nb.unicode import well_formed, well_formed_json

if TYPE_CHECKING:
    from toolcall_nb.events import Diagnostic, Event

__all__ = ["Touched", "TranscriptBuilder", "known_id"]

_ROLES: tuple[Role, ...] = ("system", "user", "assistant")


class Touched(NamedTuple):
    """What an event changed: the message by its index, and one of its parts by its key (None: the message)."""

    message: int
    part: int | None = None
    removed: bool = False


_ORDINARY_ENDS = (None, "stop", "tool-calls")
_ABOUT = ("title", "open", "provider_executed", "dynamic", "provider_metadata", "tool_metadata")


class TranscriptBuilder:
    """The reducer: `apply` each event, read `transcript` at any time.

    `apply` returns what changed, for faces that show a part of it anew, or None. It never raises on an event:
    one that is out of order is a diagnostic. Time and memory are linear in the text.
    """

    def __init__(self, transcript: Transcript | None = None) -> None:
        self._settled: list[Message] = list(transcript.messages) if transcript else []
        self._metadata: Object = transcript.metadata if transcript else {}
        self._diagnostics: list[Diagnostic] = list(transcript.diagnostics) if transcript else []
        self._current: MessageState | None = None
        self._handlers: dict[type, Callable[[Any], Touched | None]] = {
            ev.Start: self._start,
            ev.Finish: self._finish,
            ev.Abort: self._abort,
            ev.MessageMetadata: self._message_metadata,
            ev.StartStep: self._start_step,
            ev.ResetStep: self._reset_step,
            ev.Error: lambda event: self._fixed(_error(event)),
            ev.TextStart: self._text_start,
            ev.TextDelta: self._text_delta,
            ev.TextEnd: self._text_end,
            ev.ReasoningStart: self._text_start,
            ev.ReasoningDelta: self._text_delta,
            ev.ReasoningEnd: self._text_end,
            ev.ToolInputStart: self._tool_begin,
            ev.ToolInputAvailable: self._tool_begin,
            ev.ToolInputError: self._tool_begin,
            ev.ToolInputDelta: self._tool_delta,
            ev.ToolExecution: self._tool_execution,
            ev.ToolLog: self._tool_log,
            ev.ToolApprovalRequest: self._tool_step,
            ev.ToolApprovalResponse: self._approval_response,
            ev.ToolOutputAvailable: self._tool_step,
            ev.ToolOutputError: self._tool_step,
            ev.ToolOutputDenied: self._tool_step,
            ev.ToolInterrupted: self._tool_step,
            ev.ToolRetracted: self._retract,
            ev.SourceUrl: lambda e: self._fixed(SourceUrlPart(e.source_id, e.url, e.title, e.provider_metadata)),
            ev.SourceDocument: lambda e: self._fixed(
                SourceDocumentPart(e.source_id, e.media_type, e.title, e.filename, e.provider_metadata)
            ),
            ev.File: lambda e: self._fixed(FilePart(e.url, e.media_type, e.provider_metadata)),
            ev.ReasoningFile: lambda e: self._fixed(FilePart(e.url, e.media_type, e.provider_metadata, True)),
            ev.Custom: lambda e: self._fixed(CustomPart(e.kind, e.provider_metadata)),
            ev.Data: self._data,
            ev.Diagnostic: self._diagnostics.append,
        }

    def apply(self, event: Event) -> Touched | None:
        """Take one event in."""
        handler = self._handlers.get(type(event))
        return handler(event) if handler is not None else None

    @property
    def transcript(self) -> Transcript:
        """What the events so far amount to."""
        messages = (*self._settled, self._current.freeze()) if self._current else tuple(self._settled)
        return Transcript(messages, self._metadata, tuple(self._diagnostics))

    def part(self, touched: Touched) -> Part | None:
        """The part that `apply` said was touched, as it is now."""
        if self._current is None or touched.part is None:
            return None
        slot = self._current.slot(touched.part)
        return slot.freeze() if slot is not None else None

    # The message as a whole

    def _here(self) -> int:
        return len(self._settled)

    def _message(self) -> MessageState:
        if self._current is None or not self._current.is_open:
            self._begin("assistant")
        assert self._current is not None
        return self._current

    def _begin(self, role: Role) -> MessageState:
        if self._current is not None:
            self._settled.append(self._current.freeze())
        self._current = MessageState(role)
        return self._current

    def _start(self, event: ev.Start) -> Touched:
        role: Role = next((role for role in _ROLES if role == event.role), "assistant")
        message = self._current
        if message is None or not message.is_open or message.role != role:
            message = self._begin(role)
        message.id = event.message_id or message.id
        self._merge_metadata(message, event.message_metadata)
        return Touched(self._here())

    def _finish(self, event: ev.Finish) -> Touched:
        message = self._message()
        message.is_open = False
        message.finish_reason = None if event.finish_reason in _ORDINARY_ENDS else event.finish_reason
        self._merge_metadata(message, event.message_metadata)
        return Touched(self._here())

    def _abort(self, event: ev.Abort) -> Touched:
        message = self._message()
        message.is_open = False
        message.aborted = event.reason or ""
        for slot in message.slots:
            if slot.call is not None and not slot.call.is_final:
                self._set_call(slot, replace(slot.call, state=State.INTERRUPTED))
        return Touched(self._here())

    def _message_metadata(self, event: ev.MessageMetadata) -> Touched:
        self._merge_metadata(self._message(), event.message_metadata)
        return Touched(self._here())

    @staticmethod
    def _merge_metadata(message: MessageState, metadata: Json) -> None:
        if isinstance(metadata, dict):
            message.metadata = _merged(message.metadata, well_formed_json(metadata))

    def _start_step(self, _: ev.StartStep) -> None:
        message = self._message()
        message.step_start = len(message.slots)

    def _reset_step(self, _: ev.ResetStep) -> Touched:
        message = self._message()
        message.cut(message.step_start)
        return Touched(self._here())

    def _fixed(self, part: Part) -> Touched:
        slot = self._message().add()
        slot.frozen = part
        return Touched(self._here(), slot.key)

    def _data(self, event: ev.Data) -> Touched | None:
        if event.transient:
            return None
        message = self._message()
        part = DataPart(event.name, well_formed_json(event.data), event.id)
        for slot in message.slots if event.id is not None else ():
            old = slot.frozen
            if isinstance(old, DataPart) and (old.name, old.id) == (part.name, part.id):
                slot.frozen = part
                return Touched(self._here(), slot.key)
        return self._fixed(part)

    # Text and reasoning

    def _text_start(self, event: ev.TextStart | ev.ReasoningStart) -> Touched | None:
        message = self._message()
        if isinstance(event, ev.TextStart) and event.seam:
            message.seam_block, message.seam = event.id, ""
            return None
        if isinstance(event, ev.TextStart) and event.id == message.seam_block:
            message.seam_block = None  # a block of text that takes the id of a blank line that was not ended
        last = message.slots[-1] if message.slots else None
        if last is not None and last.continues:
            last.continues, last.block = False, event.id
            return Touched(self._here(), last.key)
        return Touched(self._here(), self._new_text(event.id, isinstance(event, ev.ReasoningStart), event).key)

    def _new_text(self, block: str, reasoning: bool, event: Any) -> Slot:
        slot = self._message().add()
        slot.block, slot.reasoning, slot.metadata = block, reasoning, event.provider_metadata or None
        return slot

    def _text_delta(self, event: ev.TextDelta | ev.ReasoningDelta) -> Touched | None:
        message = self._message()
        reasoning = isinstance(event, ev.ReasoningDelta)
        if event.id == message.seam_block and not reasoning:
            message.seam += event.delta
            return None
        slot = self._text_slot(message, event.id, reasoning) or self._new_text(event.id, reasoning, event)
        slot.add(event.delta)
        slot.metadata = event.provider_metadata or slot.metadata
        return Touched(self._here(), slot.key)

    def _text_end(self, event: ev.TextEnd | ev.ReasoningEnd) -> Touched | None:
        message = self._current
        if message is None:
            return None
        reasoning = isinstance(event, ev.ReasoningEnd)
        if event.id == message.seam_block and not reasoning:
            message.seam_block = None
            return None
        slot = self._text_slot(message, event.id, reasoning)
        if slot is None:
            return None
        slot.block = None
        if event.provider_metadata:
            slot.metadata, slot.frozen = event.provider_metadata, None
        return Touched(self._here(), slot.key)

    @staticmethod
    def _text_slot(message: MessageState, block: str, reasoning: bool) -> Slot | None:
        for slot in reversed(message.slots):
            if slot.call is not None:
                return None
            if slot.block == block and slot.reasoning == reasoning:
                return slot
        return None

    # Tool calls

    def _tool_begin(self, event: ev.ToolInputStart | ev.ToolInputAvailable | ev.ToolInputError) -> Touched | None:
        message = self._message()
        call_id = known_id(event.tool_call_id)
        slot = message.call_slot(call_id)
        state = self._next_state(slot.call if slot else None, event)
        if state is None:
            return None
        if slot is None:
            slot = message.add()
            message.set_call(slot, ToolCall(id=call_id, name="tool"))
            slot.seam, message.seam = message.seam, ""
        assert slot.call is not None
        changes: Object = {name: value for name in _ABOUT if (value := getattr(event, name, None)) is not None}
        if not isinstance(event, ev.ToolInputStart):
            changes["input"] = well_formed_json(event.input)
            changes["original_input"] = _original(slot.call, changes["input"])
        if isinstance(event, ev.ToolInputError):
            changes["error"] = well_formed(event.error_text)
        slot.write()
        extra = {**slot.call.extra, **well_formed_json(event.extra)}
        name = event.tool_name if event.tool_name.strip() else slot.call.name
        return self._set_call(slot, replace(slot.call, state=state, name=name, extra=extra, **changes))

    def _tool_delta(self, event: ev.ToolInputDelta) -> Touched | None:
        slot = self._message().call_slot(known_id(event.tool_call_id))
        state = self._next_state(slot.call if slot else None, event)
        if slot is None or slot.call is None or state is None:
            return None
        slot.add(event.input_text_delta)
        return self._set_call(slot, slot.call)

    def _tool_log(self, event: ev.ToolLog) -> Touched | None:
        slot = self._current.call_slot(known_id(event.tool_call_id)) if self._current else None
        if slot is None or slot.call is None:
            return self._tool_step(event)
        if self._next_state(slot.call, event) is None:
            return None
        slot.printed = slot.printed or Printed(slot.call.log)
        slot.printed.add(event.text)
        return self._set_call(slot, slot.call)

    def _tool_execution(self, event: ev.ToolExecution) -> Touched | None:
        """Finds the call that the event is about; nothing of the transcript changes."""
        call_id = known_id(event.tool_call_id)
        slot = self._current.call_slot(call_id) if self._current else None
        if slot is not None and slot.call is not None:
            return None if slot.call.is_final else Touched(self._here(), slot.key)
        earlier = range(len(self._settled) - 1, -1, -1)
        here = (index for index in earlier if any(call.id == call_id for call in self._settled[index].calls))
        index = next(here, None) if event.status == "running" else None  # what is queued may not have begun
        return None if index is None else Touched(index)

    def _tool_step(
        self,
        event: ev.ToolApprovalRequest
        | ev.ToolOutputAvailable
        | ev.ToolOutputError
        | ev.ToolOutputDenied
        | ev.ToolInterrupted
        | ev.ToolLog,
    ) -> Touched | None:
        call_id = known_id(event.tool_call_id)
        slot = self._current.call_slot(call_id) if self._current else None
        return self._step(slot, lambda call: call.id == call_id, event)

    def _approval_response(self, event: ev.ToolApprovalResponse) -> Touched | None:
        def asked(call: ToolCall) -> bool:
            return call.approval is not None and call.approval.id == event.approval_id

        slots = reversed(self._current.slots) if self._current else iter(())
        slot = next((slot for slot in slots if slot.call is not None and asked(slot.call)), None)
        return self._step(slot, asked, event)

    def _step(self, slot: Slot | None, wanted: Callable[[ToolCall], bool], event: Any) -> Touched | None:
        """Move the call of ``slot``, which is in this message, or else the latest of an earlier one that is wanted."""
        if slot is not None and slot.call is not None:
            state = self._next_state(slot.call, event)
            return self._set_call(slot, _stepped(slot.call, event, state)) if state else None
        for index in range(len(self._settled) - 1, -1, -1):
            message = self._settled[index]
            for place in range(len(message.parts) - 1, -1, -1):
                call = message.parts[place]
                if isinstance(call, ToolCall) and wanted(call):
                    state = self._next_state(call, event)
                    if state is None:
                        return None
                    parts = (*message.parts[:place], _stepped(call, event, state), *message.parts[place + 1 :])
                    self._settled[index] = replace(message, parts=parts)
                    return Touched(index)
        self._next_state(None, event)
        return None

    def _set_call(self, slot: Slot, call: ToolCall) -> Touched:
        assert self._current is not None
        self._current.set_call(slot, call)
        return Touched(self._here(), slot.key)

    def _next_state(self, call: ToolCall | None, event: Any) -> State | None:
        state = TRANSITIONS[call.state if call else None].get(event.type)
        if state is None:
            which = repr(call.id if call else getattr(event, "tool_call_id", getattr(event, "approval_id", "")))
            where = f"is {call.state.value} already" if call else "has not begun"
            self._diagnostics.append(
                ev.Diagnostic(f"{event.type} for the tool call {which:.120}, which {where}.", "The event was ignored.")
            )
            return None
        if event.type == "tool-output-available" and event.preliminary:
            assert call is not None
            return call.state
        return state

    def _retract(self, event: ev.ToolRetracted) -> Touched | None:
        """Take a call back that was none, or give it the id that it turned out to have."""
        message = self._message()
        slot = message.call_slot(known_id(event.tool_call_id))
        if slot is None or slot.call is None or slot.call.is_final:
            return None
        if event.successor is not None and message.call_slot(known_id(event.successor)) is None:
            return self._set_call(slot, replace(slot.call, id=known_id(event.successor)))
        if event.successor is None and event.text is not None:
            return self._stand_in(message, slot, event.text)
        place = message.slots.index(slot)
        before = message.slots[place - 1] if place else None
        follows_text = before is not None and before.is_text
        if event.successor is None and slot.seam and not follows_text:
            touched = self._stand_in(message, slot, "")
            slot.continues = True
            return touched
        message.cut(place, place + 1)
        if event.successor is None and before is not None and follows_text:
            before.add(slot.seam)
            before.continues = True
        return Touched(self._here(), slot.key, removed=True)

    def _stand_in(self, message: MessageState, slot: Slot, text: str) -> Touched:
        """The call was none, and its text stands in its place, whatever came since."""
        message.drop_call(slot)
        slot.write(slot.seam, text)
        slot.seam, slot.printed = "", None
        return Touched(self._here(), slot.key)


def _error(event: ev.Error) -> ErrorPart:
    details = None if event.details is None else well_formed(event.details)
    return ErrorPart(well_formed(event.error_text), details)


def _merged(old: Object, new: Object) -> Object:
    """Objects within objects are merged too, as the AI SDK's reader does (merge-objects.ts); all else is replaced."""
    both = {name: _merged(old[name], new[name]) for name in new if _is_object(old.get(name)) and _is_object(new[name])}
    return {**old, **new, **both}


def _is_object(value: Json) -> bool:
    return isinstance(value, dict)


def known_id(given: str) -> str:
    """The id by which the transcript knows a call: a blank one, which no text form could hold, is replaced."""
    return given if given.strip() else "tool-call"


def _original(call: ToolCall, given: Json) -> Json:
    """What the model had asked for, if a person who was asked has made something else of it."""
    if call.approval is None or call.input is MISSING:
        return MISSING
    asked = call.input if call.original_input is MISSING else call.original_input
    return MISSING if json.dumps(asked) == json.dumps(given) else asked  # for Python, 1 == True == 1.0


def _stepped(call: ToolCall, event: Any, state: State) -> ToolCall:
    """The call after an approval step or an output."""
    match event:
        case ev.ToolApprovalRequest():
            approval = Approval(id=event.approval_id, is_automatic=event.is_automatic, signature=event.signature)
            return replace(call, state=state, approval=approval)
        case ev.ToolApprovalResponse():
            assert call.approval is not None
            return replace(
                call, state=state, approval=replace(call.approval, approved=event.approved, reason=event.reason)
            )
        case ev.ToolLog():
            printed = Printed(call.log)
            printed.add(event.text)
            return replace(call, log=well_formed(str(printed)))
        case ev.ToolOutputAvailable():
            changes: Object = {
                "output": well_formed_json(event.output),
                "display": well_formed_json(event.display) or None,
                "seen": None if event.seen is None else well_formed(event.seen),
            }
        case ev.ToolOutputError():
            trace = None if event.traceback is None else well_formed(event.traceback)
            changes = {"error": well_formed(event.error_text), "traceback": trace}
        case _:
            changes = {}
    for name in ("provider_executed", "dynamic", "provider_metadata", "tool_metadata"):
        if getattr(event, name, None) is not None:
            changes[name] = getattr(event, name)
    if event.extra:
        changes["extra"] = {**call.extra, **well_formed_json(event.extra)}
    return replace(call, state=state, **changes)
