"""Turns values back into events: `message_events`, `part_events` and `call_events`.

`toolcall_nb.core.reducer` does the opposite.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Object
from toolcall_nb.core.transcript import (
    Approval,
    CustomPart,
    DataPart,
    ErrorPart,
    FilePart,
    Message,
    Part,
    ReasoningPart,
    SourceDocumentPart,
    SourceUrlPart,
    State,
    TextPart,
    ToolCall,
)


def message_events(message: Message, *, timings: bool = False) -> Iterator[Event]:
    """Yields the events of a message, from ``start`` to ``finish`` or ``abort``; on request with the calls' times."""
    role = None if message.role == "assistant" else message.role
    yield ev.Start(message_id=message.id, message_metadata=message.metadata or None, role=role)
    for number, part in enumerate(message.parts, 1):
        yield from part_events(part, str(number))
        if timings and isinstance(part, ToolCall) and part.record.is_known:
            yield ev.ToolTimes(part.id, part.started, part.seconds, part.tokens)
    if message.aborted is not None:
        yield ev.Abort(reason=message.aborted or None)
    else:
        yield ev.Finish(finish_reason=message.finish_reason or "stop")


def part_events(part: Part, number: str) -> Iterator[Event]:
    """Yields the events of a part; ``number`` distinguishes its text block from others."""
    match part:
        case TextPart():
            yield ev.TextStart(f"text-{number}", provider_metadata=part.provider_metadata)
            yield ev.TextDelta(f"text-{number}", part.text)
            yield ev.TextEnd(f"text-{number}")
        case ReasoningPart():
            yield ev.ReasoningStart(f"reasoning-{number}", provider_metadata=part.provider_metadata)
            yield ev.ReasoningDelta(f"reasoning-{number}", part.text)
            yield ev.ReasoningEnd(f"reasoning-{number}")
        case ToolCall():
            yield from call_events(part)
        case SourceUrlPart():
            yield ev.SourceUrl(part.source_id, part.url, part.title, part.provider_metadata)
        case SourceDocumentPart():
            yield ev.SourceDocument(part.source_id, part.media_type, part.title, part.filename, part.provider_metadata)
        case FilePart(reasoning=True):
            yield ev.ReasoningFile(part.url, part.media_type, part.provider_metadata)
        case FilePart():
            yield ev.File(part.url, part.media_type, part.provider_metadata)
        case DataPart():
            yield ev.Data(part.name, part.data, part.id)
        case CustomPart():
            yield ev.Custom(part.kind, part.provider_metadata)
        case ErrorPart():
            yield ev.Error(part.text, part.details)


def call_events(call: ToolCall) -> Iterator[Event]:
    """Yields the events of a call, from its start to its current state."""
    call_fields: Object = {
        "provider_executed": call.provider_executed,
        "provider_metadata": call.provider_metadata,
        "tool_metadata": call.tool_metadata,
        "dynamic": call.dynamic,
        "title": call.title,
        "open": call.open,
        "extra": call.extra,
    }
    if call.input is MISSING:
        yield ev.ToolInputStart(call.id, call.name, **call_fields)
        if call.input_text:
            yield ev.ToolInputDelta(call.id, call.input_text)
    else:
        model_input = call.input if call.original_input is MISSING else call.original_input
        yield ev.ToolInputAvailable(call.id, call.name, model_input, **call_fields)
    if call.approval is not None:
        yield from _approval_events(call, call.approval)
    if call.log:
        yield ev.ToolLog(call.id, call.log)
    output_fields: Object = {"display": call.display, "model_text": call.model_text}
    if call.output is not MISSING and call.state is not State.OUTPUT_AVAILABLE:
        yield ev.ToolOutputAvailable(call.id, call.output, preliminary=True, **output_fields)
    match call.state:
        case State.OUTPUT_AVAILABLE:
            yield ev.ToolOutputAvailable(call.id, None if call.output is MISSING else call.output, **output_fields)
        case State.OUTPUT_ERROR:
            yield ev.ToolOutputError(call.id, call.error or "", traceback=call.traceback)
        case State.OUTPUT_DENIED:
            yield ev.ToolOutputDenied(call.id)
        case State.INTERRUPTED:
            yield ev.ToolInterrupted(call.id)


def _approval_events(call: ToolCall, approval: Approval) -> Iterator[Event]:
    """Yields the request for approval, the edited input if any, and the answer."""
    yield ev.ToolApprovalRequest(approval.id, call.id, approval.is_automatic, approval.signature)
    if call.original_input is not MISSING:
        yield ev.ToolInputAvailable(call.id, call.name, call.input)
    if approval.approved is not None:
        yield ev.ToolApprovalResponse(approval.id, approval.approved, approval.reason)
