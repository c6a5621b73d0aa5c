"""The reducer: events in, the transcript out, and what each event changed.

The life of a tool call is decided by `toolcall_nb.core.transcript.TRANSITIONS` alone.

Differences from the AI SDK's reader (process-ui-message-stream.ts), each on purpose: text that arrives after a
tool call starts a new text part, so that the order of what happened is kept; an event out of order is a
diagnostic, not an exception; ``abort`` closes the open calls as interrupted; ``error`` is kept as a part.

The state is made of values alone, and an event replaces it in one step. So whoever reads it, from whichever
thread, sees all of an event or nothing of it, and reading changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from toolcall_nb.core import events as ev
from toolcall_nb.core.append_only import AppendOnlyList, AppendOnlyText
from toolcall_nb.core.console_text import ConsoleText
from toolcall_nb.core.events import MISSING, Diagnostic, Event, Json, Object
from toolcall_nb.core.message_state import NO_TEXT, MessageState, Slot, Slots
from toolcall_nb.core.transcript import (
    TRANSITIONS,
    Approval,
    CustomPart,
    DataPart,
    ErrorPart,
    FilePart,
    Message,
    Part,
    ReasoningPart,
    Role,
    SourceDocumentPart,
    SourceUrlPart,
    State,
    TextPart,
    ToolCall,
    Transcript,
)

__all__ = ["Touched", "TranscriptBuilder", "normalize_call_id"]

_ROLES: tuple[Role, ...] = ("system", "user", "assistant")


class Touched(NamedTuple):
    """What an event changed: the message by its index, and one of its parts by its key (None: the message)."""

    message: int
    part: int | None = None
    removed: bool = False


_ORDINARY_ENDS = (None, "stop", "tool-calls")
_ABOUT = ("title", "open", "provider_executed", "dynamic", "provider_metadata", "tool_metadata")


_State: TypeAlias = "tuple[AppendOnlyList[Message], MessageState | None, AppendOnlyList[Diagnostic]]"
"""All that readers see: the messages that have ended, the one that grows, and the diagnostics, after an event."""


class TranscriptBuilder:
    """The reducer: `apply` each event, in one thread at a time; read `transcript` at any time, in any thread.

    `apply` returns what changed, for faces that show a part of it anew, or None. It never raises on an event:
    one that is out of order is a diagnostic. Time and memory are linear in the text.
    """

    def __init__(self, transcript: Transcript | None = None) -> None:
        self._metadata: Object = transcript.metadata if transcript else {}
        self._settled: AppendOnlyList[Message] = AppendOnlyList(transcript.messages if transcript else ())
        self._diagnostics: AppendOnlyList[Diagnostic] = AppendOnlyList(transcript.diagnostics if transcript else ())
        self._current: MessageState | None = None
        self._state: _State = (self._settled, None, self._diagnostics)
        self._keys: dict[str, int] = {}  # by call id, of this message; `_call_slot` checks what it says
        self._handlers: dict[type, Callable[[Any], Touched | None]] = {
            ev.Start: self._start,
            ev.Finish: self._finish,
            ev.Abort: self._abort,
            ev.MessageMetadata: self._message_metadata,
            ev.StartStep: self._start_step,
            ev.ResetStep: self._reset_step,
            ev.Error: lambda event: self._fixed(ErrorPart(event.error_text, event.details)),
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
            ev.Diagnostic: self._diagnose,
        }

    def apply(self, event: Event) -> Touched | None:
        """Take one event in."""
        handler = self._handlers.get(type(event))
        if handler is None:
            return None
        try:
            touched = handler(event)
            self._state = (self._settled, self._current, self._diagnostics)
        except BaseException:  # an interrupt: the event was not taken in
            self._settled, self._current, self._diagnostics = self._state
            slots = self._current.slots if self._current is not None else Slots()
            self._keys = {slot.part.id: slot.key for slot in slots if isinstance(slot.part, ToolCall)}
            raise
        return touched

    @property
    def transcript(self) -> Transcript:
        """What the events so far amount to."""
        settled, current, diagnostics = self._state
        messages = (*settled, current.current()) if current is not None else tuple(settled)
        return Transcript(messages, self._metadata, tuple(diagnostics))

    def part(self, touched: Touched) -> Part | None:
        """The part that `apply` said was touched, as it is now."""
        _, current, _ = self._state
        slot = current.slots.get(touched.part) if current is not None and touched.part is not None else None
        return slot.current() if slot is not None else None

    # The message as a whole

    def _here(self) -> int:
        return len(self._settled)

    def _message(self) -> MessageState:
        if self._current is None or not self._current.is_open:
            return self._begin("assistant")
        return self._current

    def _begin(self, role: Role) -> MessageState:
        if self._current is not None:
            self._settled = self._settled.add(self._current.current())
        self._current, self._keys = MessageState(role), {}
        return self._current

    def _change(self, **changes: Any) -> Touched:
        """The message with other values of these fields."""
        self._current = replace(self._message(), **changes)
        return Touched(self._here())

    def _put(self, slot: Slot) -> Touched:
        """The message with this slot, new or in the place of its former self."""
        assert self._current is not None
        self._current = self._current.with_slot(slot)
        return Touched(self._here(), slot.key)

    def _add(self, part: Part, **about: Any) -> Touched:
        return self._put(Slot(self._message().next_key, part, **about))

    def _start(self, event: ev.Start) -> Touched:
        role: Role = next((role for role in _ROLES if role == event.role), "assistant")
        message = self._current
        if message is None or not message.is_open or message.role != role:
            message = self._begin(role)
        metadata = _with_metadata(message, event.message_metadata)
        return self._change(id=event.message_id or message.id, metadata=metadata)

    def _finish(self, event: ev.Finish) -> Touched:
        return self._change(
            is_open=False,
            finish_reason=None if event.finish_reason in _ORDINARY_ENDS else event.finish_reason,
            metadata=_with_metadata(self._message(), event.message_metadata),
        )

    def _abort(self, event: ev.Abort) -> Touched:
        for slot in self._message().slots:
            if slot.call is not None and not slot.call.is_final:
                self._set_call(slot, replace(slot.call, state=State.INTERRUPTED))
        return self._change(is_open=False, aborted=event.reason or "")

    def _message_metadata(self, event: ev.MessageMetadata) -> Touched:
        return self._change(metadata=_with_metadata(self._message(), event.message_metadata))

    def _start_step(self, _: ev.StartStep) -> None:
        self._change(step_start=self._message().next_key)

    def _reset_step(self, _: ev.ResetStep) -> Touched:
        message = self._message()
        return self._change(slots=message.slots.without(message.step_start))

    def _fixed(self, part: Part) -> Touched:
        return self._add(part)

    def _data(self, event: ev.Data) -> Touched | None:
        if event.transient:
            return None
        part = DataPart(event.name, event.data, event.id)
        for slot in self._message().slots if event.id is not None else ():
            if isinstance(slot.part, DataPart) and (slot.part.name, slot.part.id) == (part.name, part.id):
                return self._put(replace(slot, part=part))
        return self._fixed(part)

    def _diagnose(self, diagnostic: Diagnostic) -> None:
        self._diagnostics = self._diagnostics.add(diagnostic)

    # Text and reasoning

    def _text_start(self, event: ev.TextStart | ev.ReasoningStart) -> Touched | None:
        message = self._message()
        if isinstance(event, ev.TextStart) and event.seam:
            self._change(seam_block=event.id, seam="")
            return None
        if isinstance(event, ev.TextStart) and event.id == message.seam_block:
            self._change(seam_block=None)  # a block of text that takes the id of a blank line that was not ended
        last = message.slots.last
        if last is not None and last.continues:
            return self._put(replace(last, continues=False, block=event.id))
        return self._add(_empty(event), block=event.id)

    def _text_delta(self, event: ev.TextDelta | ev.ReasoningDelta) -> Touched | None:
        message = self._message()
        kind = ReasoningPart if isinstance(event, ev.ReasoningDelta) else TextPart
        if event.id == message.seam_block and kind is TextPart:
            self._change(seam=message.seam + event.delta)
            return None
        slot = _text_slot(message.slots, event.id, kind) or Slot(message.next_key, _empty(event), block=event.id)
        part = replace(slot.part, provider_metadata=event.provider_metadata) if event.provider_metadata else slot.part
        return self._put(replace(slot, part=part, text=slot.text.add(event.delta), is_growing=True))

    def _text_end(self, event: ev.TextEnd | ev.ReasoningEnd) -> Touched | None:
        message = self._current
        if message is None:
            return None
        kind = ReasoningPart if isinstance(event, ev.ReasoningEnd) else TextPart
        if event.id == message.seam_block and kind is TextPart:
            self._change(seam_block=None)
            return None
        slot = _text_slot(message.slots, event.id, kind)
        if slot is None:
            return None
        part = replace(slot.part, provider_metadata=event.provider_metadata) if event.provider_metadata else slot.part
        return self._put(replace(slot, part=part, text=AppendOnlyText(str(slot.text)), block=None).settled())

    # Tool calls

    def _call_slot(self, call_id: str) -> Slot | None:
        key = self._keys.get(call_id)
        slot = self._current.slots.get(key) if self._current is not None and key is not None else None
        return slot if slot is not None and slot.call is not None and slot.call.id == call_id else None

    def _tool_begin(self, event: ev.ToolInputStart | ev.ToolInputAvailable | ev.ToolInputError) -> Touched | None:
        message = self._message()
        call_id = normalize_call_id(event.tool_call_id)
        slot = self._call_slot(call_id)
        state = self._next_state(slot.call if slot else None, event)
        if state is None:
            return None
        if slot is None:
            slot = Slot(message.next_key, ToolCall(id=call_id, name="tool"), seam=message.seam)
            self._change(seam="")
        call = slot.call
        assert call is not None
        changes: Object = {name: value for name in _ABOUT if (value := getattr(event, name, None)) is not None}
        if not isinstance(event, ev.ToolInputStart):
            changes["input"] = event.input
            changes["original_input"] = _original(call, changes["input"])
        if isinstance(event, ev.ToolInputError):
            changes["error"] = event.error_text
        extra = {**call.extra, **event.extra}
        name = event.tool_name if event.tool_name.strip() else call.name
        call = replace(call, state=state, name=name, extra=extra, input_text="", **changes)
        return self._set_call(replace(slot, text=NO_TEXT), call)

    def _tool_delta(self, event: ev.ToolInputDelta) -> Touched | None:
        self._message()
        slot = self._call_slot(normalize_call_id(event.tool_call_id))
        state = self._next_state(slot.call if slot else None, event)
        if slot is None or state is None:
            return None
        return self._put(replace(slot, text=slot.text.add(event.input_text_delta), is_growing=True))

    def _tool_log(self, event: ev.ToolLog) -> Touched | None:
        slot = self._call_slot(normalize_call_id(event.tool_call_id))
        if slot is None or slot.call is None:
            return self._tool_step(event)
        if self._next_state(slot.call, event) is None:
            return None
        printed = slot.printed or ConsoleText().add(slot.call.log)
        return self._put(replace(slot, printed=printed.add(event.text), is_growing=True))

    def _tool_execution(self, event: ev.ToolExecution) -> Touched | None:
        """Finds the call that the event is about; nothing of the transcript changes."""
        call_id = normalize_call_id(event.tool_call_id)
        slot = self._call_slot(call_id)
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
        call_id = normalize_call_id(event.tool_call_id)
        return self._step(self._call_slot(call_id), lambda call: call.id == call_id, event)

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
                    self._settled = self._settled.put(index, replace(message, parts=parts))
                    return Touched(index)
        self._next_state(None, event)
        return None

    def _set_call(self, slot: Slot, call: ToolCall) -> Touched:
        """The slot holds this call now. One that has ended grows no more."""
        self._keys[call.id] = slot.key
        slot = replace(slot, part=call)
        return self._put(slot.settled() if call.is_final else slot)

    def _next_state(self, call: ToolCall | None, event: Any) -> State | None:
        state = TRANSITIONS[call.state if call else None].get(event.type)
        if state is None:
            which = repr(call.id if call else getattr(event, "tool_call_id", getattr(event, "approval_id", "")))
            where = f"is {call.state.value} already" if call else "has not begun"
            self._diagnose(
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
        slot = self._call_slot(normalize_call_id(event.tool_call_id))
        if slot is None or slot.call is None or slot.call.is_final:
            return None
        if event.successor is not None and self._call_slot(normalize_call_id(event.successor)) is None:
            return self._set_call(slot, replace(slot.call, id=normalize_call_id(event.successor)))
        if event.successor is None and event.text is not None:
            return self._stand_in(slot, event.text)
        before = message.slots.up_to(slot.key - 1)
        follows_text = before is not None and isinstance(before.part, TextPart)
        if event.successor is None and slot.seam and not follows_text:
            return self._stand_in(slot, "", continues=True)
        self._change(slots=message.slots.without(slot.key, slot.key + 1))
        if event.successor is None and before is not None and follows_text:
            self._put(replace(before, text=before.text.add(slot.seam), is_growing=True, continues=True))
        return Touched(self._here(), slot.key, removed=True)

    def _stand_in(self, slot: Slot, text: str, *, continues: bool = False) -> Touched:
        """The call was none, and its text stands in its place, whatever came since."""
        text = slot.seam + text
        return self._put(
            Slot(slot.key, TextPart(""), AppendOnlyText(text), is_growing=True, block=slot.block, continues=continues)
        )


def _empty(event: ev.TextStart | ev.TextDelta | ev.ReasoningStart | ev.ReasoningDelta) -> TextPart | ReasoningPart:
    kind = ReasoningPart if isinstance(event, ev.ReasoningStart | ev.ReasoningDelta) else TextPart
    return kind("", event.provider_metadata or None)


def _text_slot(slots: Slots, block: str, kind: type[Part]) -> Slot | None:
    """The slot of a block of text that no tool call came after."""
    last = slots.last
    if last is not None and last.block == block and isinstance(last.part, kind):
        return last
    for slot in reversed(slots):
        if isinstance(slot.part, ToolCall):
            return None
        if slot.block == block and isinstance(slot.part, kind):
            return slot
    return None


def _with_metadata(message: MessageState, metadata: Json) -> Object:
    return _merged(message.metadata, metadata) if isinstance(metadata, dict) else message.metadata


def _merged(old: Object, new: Object) -> Object:
    """Objects within objects are merged too, as the AI SDK's reader does (merge-objects.ts); all else is replaced."""
    both = {name: _merged(old[name], new[name]) for name in new if _is_object(old.get(name)) and _is_object(new[name])}
    return {**old, **new, **both}


def _is_object(value: Json) -> bool:
    return isinstance(value, dict)


def normalize_call_id(given: str) -> str:
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
            return replace(call, log=str(ConsoleText().add(call.log).add(event.text)))
        case ev.ToolOutputAvailable():
            changes: Object = {
                "output": event.output,
                "display": event.display,
                "seen": event.seen,
            }
        case ev.ToolOutputError():
            changes = {"error": event.error_text, "traceback": event.traceback}
        case _:
            changes = {}
    for name in ("provider_executed", "dynamic", "provider_metadata", "tool_metadata"):
        if getattr(event, name, None) is not None:
            changes[name] = getattr(event, name)
    if event.extra:
        changes["extra"] = {**call.extra, **event.extra}
    return replace(call, state=state, **changes)
