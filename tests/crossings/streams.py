"""A whole run as other programs send it while it goes on: `STREAMS` and `DIALECTS`, from the wires' documentation.

Nothing of what this package adds to a wire is used here, so that the table says what others' streams can say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from tests.crossings.conversations import ui_messages
from tests.crossings.scenarios import id_of
from toolcall_nb.core.transcript import (
    CustomPart,
    ErrorPart,
    FilePart,
    Message,
    ReasoningPart,
    SourceUrlPart,
    State,
    Step,
    TextPart,
    ToolCall,
    Transcript,
)

__all__ = ["DIALECTS", "STREAMS", "StreamFormat"]

Item = dict[str, Any]


class StreamFormat(NamedTuple):
    """The writer of a run, without the user's prompt, as the items of a stream; and its wire, if it has one."""

    title: str
    write: Callable[[Transcript], list[Item]]
    wire: str | None = None


def _answer(transcript: Transcript) -> Message:
    return next(message for message in reversed(transcript.messages) if message.role == "assistant")


# The AI SDK -------------------------------------------------------------------------------------------------------


def ui_chunks(transcript: Transcript, *, version: int = 7) -> list[Item]:
    message = _answer(transcript)
    chunks: list[Item] = [{"type": "start", "messageId": "m1"}]
    for step in message.steps:
        chunks.append({"type": "start-step"})
        for number, part in enumerate(step.parts):
            chunks += _ui_part(part, f"{number}", version)
        chunks.append({"type": "finish-step"})
    if message.aborted is not None:
        return [*chunks, {"type": "abort", "reason": message.aborted}]
    usage = next((step.usage for step in message.steps if step.usage), None)
    metadata = {"messageMetadata": {"model": message.steps[0].model, "usage": usage}} if usage else {}
    reason = {"tool-calls": "tool-calls"}.get(message.finish_reason or "", message.finish_reason or "stop")
    return [*chunks, {"type": "finish", "finishReason": reason, **metadata}]


def _ui_part(part: Any, number: str, version: int) -> list[Item]:
    match part:
        case TextPart() | ReasoningPart():
            kind = "text" if isinstance(part, TextPart) else "reasoning"
            delta = {"type": f"{kind}-delta", "id": number, "delta": part.text}
            return [{"type": f"{kind}-start", "id": number}, delta, {"type": f"{kind}-end", "id": number}]
        case FilePart():
            return [{"type": "file", "url": part.url, "mediaType": part.media_type}]
        case SourceUrlPart():
            return [{"type": "source-url", "sourceId": part.source_id, "url": part.url, "title": part.title}]
        case ErrorPart():
            return [{"type": "error", "errorText": part.text}]
        case CustomPart():
            return [{"type": "custom", "kind": part.kind, "providerMetadata": part.provider_metadata}]
        case ToolCall():
            return [*_ui_call(part, version)]
    raise AssertionError(part)


def _ui_call(call: ToolCall, version: int) -> Iterator[Item]:
    about = {"toolCallId": id_of(call)}
    yield {"type": "tool-input-start", **about, "toolName": call.name}
    yield {"type": "tool-input-delta", **about, "inputTextDelta": json.dumps(call.input)}
    yield {"type": "tool-input-available", **about, "toolName": call.name, "input": call.input}
    if call.approval is not None:
        yield {"type": "tool-approval-request", "approvalId": call.approval.id, **about}
        if version == 7 and call.approval.approved is not None:
            answer = {"approved": call.approval.approved, "reason": call.approval.reason}
            yield {"type": "tool-approval-response", "approvalId": call.approval.id, **answer}
    if call.state is State.OUTPUT_DENIED:
        yield {"type": "tool-output-denied", **about}
    elif call.error is not None:
        yield {"type": "tool-output-error", **about, "errorText": call.error}
    elif call.state is State.OUTPUT_AVAILABLE:
        [part] = [each for each in ui_messages(Transcript((Message("assistant", (call,)),)))[0]["parts"][1:]]
        yield {"type": "tool-output-available", **about, "output": part["output"]}


# AG-UI ------------------------------------------------------------------------------------------------------------


def ag_ui_events(transcript: Transcript) -> list[Item]:
    message = _answer(transcript)
    run = {"threadId": "th", "runId": "r1"}
    events: list[Item] = [{"type": "RUN_STARTED", **run}]
    agents = {start.parent: start.agent for start in message.step_starts if start.parent}
    nested = {
        call.id: [part for part in message.parts if part.parent == call.id] for call in message.calls if not call.parent
    }
    interrupts: list[Item] = []
    for step in message.steps:
        events.append({"type": "STEP_STARTED", "stepName": "model"})
        calls: list[ToolCall] = []
        for number, part in enumerate(step.parts):
            match part:
                case TextPart():
                    events += _ag_ui_text(part.text, f"t{len(events)}")
                case ReasoningPart():
                    events += _ag_ui_reasoning(part.text, f"r{number}")
                case ErrorPart():
                    return [*events, {"type": "RUN_ERROR", "message": part.text}]
                case ToolCall():
                    events += _ag_ui_call(part)
                    calls.append(part)
        for call in calls:
            if parts := nested[call.id]:
                about = {"subagentRunId": "sub1"}
                name = {"name": agents.get(call.id), "parentToolCallId": id_of(call)}
                events.append({"type": "SUBAGENT_STARTED", **about, **name})
                for part in parts:
                    inner = [*_ag_ui_text(part.text, "n1")] if isinstance(part, TextPart) else []
                    inner += [*_ag_ui_call(part), *_ag_ui_result(part)] if isinstance(part, ToolCall) else []
                    events += [{**event, **about} for event in inner]
                events.append({"type": "SUBAGENT_FINISHED", **about})
            if call.state is State.APPROVAL_REQUESTED and call.approval is not None:
                about = {"id": call.approval.id, "reason": "tool_call", "toolCallId": id_of(call)}
                interrupts.append({**about, "message": "It cannot be undone."})
            events += _ag_ui_result(call)
        events.append({"type": "STEP_FINISHED", "stepName": "model"})
    end: Item = {"type": "RUN_FINISHED", **run}
    if interrupts:
        end["outcome"] = {"type": "interrupt", "interrupts": interrupts}
    if usage := next((step.usage for step in message.steps if step.usage), None):
        counts = {{"cacheWriteTokens": "cacheWriteInputTokens"}.get(name, name): count for name, count in usage.items()}
        end["usage"] = [{"model": message.steps[0].model, **counts}]
    return [*events, end]


def _ag_ui_text(text: str, message_id: str) -> Iterator[Item]:
    yield {"type": "TEXT_MESSAGE_START", "messageId": message_id, "role": "assistant"}
    yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": message_id, "delta": text}
    yield {"type": "TEXT_MESSAGE_END", "messageId": message_id}


def _ag_ui_reasoning(text: str, message_id: str) -> Iterator[Item]:
    yield {"type": "REASONING_START", "messageId": message_id}
    yield {"type": "REASONING_MESSAGE_START", "messageId": message_id, "role": "reasoning"}
    yield {"type": "REASONING_MESSAGE_CONTENT", "messageId": message_id, "delta": text}
    yield {"type": "REASONING_MESSAGE_END", "messageId": message_id}
    yield {"type": "REASONING_END", "messageId": message_id}


def _ag_ui_call(call: ToolCall) -> Iterator[Item]:
    yield {"type": "TOOL_CALL_START", "toolCallId": id_of(call), "toolCallName": call.name}
    yield {"type": "TOOL_CALL_ARGS", "toolCallId": id_of(call), "delta": json.dumps(call.input)}
    yield {"type": "TOOL_CALL_END", "toolCallId": id_of(call)}


def _ag_ui_result(call: ToolCall) -> Iterator[Item]:
    content: Any = call.error if call.error is not None else call.output
    if call.contents:
        content = [
            {"type": "text", "text": piece["text"]}
            if piece["type"] == "text"
            else {
                "type": "image",
                "source": {"type": "data", "value": piece["url"].partition(",")[2], "mimeType": "image/png"},
            }
            for piece in call.contents
        ]
    if call.is_final:
        yield {
            "type": "TOOL_CALL_RESULT",
            "messageId": f"m-{id_of(call)}",
            "toolCallId": id_of(call),
            "content": content,
        }


def ag_ui_snapshot(transcript: Transcript) -> list[Item]:
    messages: list[Item] = []
    for message in transcript:
        if message.role == "user":
            content: Any = [{"type": "text", "text": message.text}]
            for part in message.parts:
                if isinstance(part, FilePart):
                    source = {"type": "data", "value": part.url.partition(",")[2], "mimeType": part.media_type}
                    content.append({"type": "image", "source": source, "metadata": {"filename": part.filename}})
            content = content if len(content) > 1 else message.text
            messages.append({"id": f"u{len(messages)}", "role": "user", "content": content})
        for step in message.steps if message.role == "assistant" else ():
            calls = [
                {
                    "id": id_of(call),
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.input)},
                }
                for call in step.calls
            ]
            about: Item = {"id": f"a{len(messages)}", "role": "assistant", "content": step.text}
            messages.append({**about, **({"toolCalls": calls} if calls else {})})
            for call in step.calls:
                told = {"id": f"r{len(messages)}", "role": "tool", "toolCallId": id_of(call)}
                error = {"error": call.error} if call.error is not None else {}
                messages.append({**told, "content": str(call.output) if call.error is None else call.error, **error})
    run = {"threadId": "th", "runId": "r1"}
    snapshot = {"type": "MESSAGES_SNAPSHOT", "messages": messages}
    return [{"type": "RUN_STARTED", **run}, snapshot, {"type": "RUN_FINISHED", **run}]


# The chat contract and the envelopes ------------------------------------------------------------------------------


def chat_events(transcript: Transcript) -> list[Item]:
    message = _answer(transcript)
    events: list[Item] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            events.append({"type": "tool_usage", "tools": [part.name]})
        elif isinstance(part, TextPart):
            events.append({"type": "chunk", "content": part.text})
        elif isinstance(part, ErrorPart):
            return [*events, {"type": "error", "message": part.text}]
    return [*events, {"type": "end", "thread_id": "th"}]


def envelopes(transcript: Transcript) -> list[Item]:
    def envelope(kind: str, **data: Any) -> Item:
        return {"type": "latitude-event", "data": {"type": kind, **data}}

    message = _answer(transcript)
    events: list[Item] = []
    for step in message.steps:
        if step.text:
            events.append({"type": "provider-event", "data": {"type": "text-delta", "textDelta": step.text}})
        if error := next((part.text for part in step.parts if isinstance(part, ErrorPart)), None):
            return [*events, envelope("chain-error", error={"message": error})]
        calls = [{"id": id_of(call), "name": call.name, "arguments": call.input} for call in step.calls]
        usage = {"inputTokens": 3, "outputTokens": 2, **(step.usage or {})}
        tokens = {"promptTokens": usage["inputTokens"], "completionTokens": usage["outputTokens"]}
        response = {"text": step.text, "toolCalls": calls}
        reason = step.finish_reason
        events.append(envelope("provider-completed", response=response, tokenUsage=tokens, finishReason=reason))
        if calls:
            events.append(envelope("tools-started", tools=calls))
        for call in step.calls:
            failed = call.error is not None
            about = {
                "type": "tool-result",
                "toolCallId": id_of(call),
                "toolName": call.name,
                "isError": failed,
            }
            told = {**about, "result": call.error if failed else call.output}
            events.append(envelope("tool-completed", messages=[{"role": "tool", "content": [told]}]))
    return [*events, envelope("chain-completed")]


def stage_log(transcript: Transcript) -> list[Item]:
    updates: list[Item] = []
    for call in _answer(transcript).calls:
        about = {"id": id_of(call), "name": call.name}
        updates.append({"type": "update", **about, "stage": "start"} | {"parameters": ""})
        updates.append({"id": id_of(call), "stage": "running", "parameters": json.dumps(call.input)})
        end: Item = {"id": id_of(call), "stage": "end", "success": call.error is None}
        updates.append({**end, **({"result": call.output} if call.error is None else {"error": call.error})})
        updates[-3].pop("type")
    return updates


STREAMS: Mapping[str, StreamFormat] = {
    "AI SDK 6": StreamFormat("the UI message stream of the AI SDK 6", lambda t: ui_chunks(t, version=6), "ui"),
    "AI SDK 7": StreamFormat("the UI message stream of the AI SDK 7", ui_chunks, "ui"),
    "AG-UI": StreamFormat("AG-UI events", ag_ui_events, "ag-ui"),
    "AG-UI snapshot": StreamFormat("a snapshot of messages in AG-UI", ag_ui_snapshot, "ag-ui"),
    "chat contract": StreamFormat("the chat contract", chat_events, "chat"),
    "envelopes": StreamFormat("provider envelopes", envelopes, "provider"),
    "stages": StreamFormat("a log of stages", stage_log),
}
"""All streams by their names."""


# The dialects -----------------------------------------------------------------------------------------------------


def _callout(step: Step) -> str:
    calls = []
    for call in step.calls:
        body = yaml.safe_dump({"input": call.input}, sort_keys=False).splitlines()
        calls.append("\n".join([f"> [!tool {call.name} {id_of(call)}]", *(f"> {line}" for line in body)]))
    return "\n\n".join([*([step.text] if step.text else []), *calls])


def _signature(step: Step) -> str:
    calls = [
        "###:" + json.dumps({"signature": "CLIENT_TOOL_CALL", "toolName": call.name, "parameters": call.input})
        for call in step.calls
    ]
    return "\n".join([*([step.text] if step.text else []), *calls])


def _json(step: Step) -> str:
    calls = [f"```json\n{json.dumps({'tool': call.name, 'params': call.input})}\n```" for call in step.calls]
    return "\n\n".join([*([step.text] if step.text else []), *calls])


DIALECTS: Mapping[str, Callable[[Step], str]] = {"callout": _callout, "signature": _signature, "json": _json}
"""The text of a step in each dialect."""
