"""Templates of what a hostile peer sends in each wire; the placeholders are those of `tests.support.hostile_forms`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.hostile_forms import ARGUMENTS, ITEMS, NESTED

__all__ = ["PEERS"]

Json = dict[str, Any]
_CALL = {"id": "s§", "type": "function", "function": {"name": "§", "arguments": ARGUMENTS}}


def _event(kind: str, **data: Any) -> Json:
    return {"type": kind, **data}


def _envelope(kind: str, **data: Any) -> Json:
    return {"type": "latitude-event", "data": {"type": kind, **data}}


PEERS: Mapping[str, list[Json]] = {
    "chat": [
        _event("tool_usage", tools=["§", "x§"]),
        *(_event("chunk", content=content) for content in ("←", "→", "\n\n", "§")),
        _event("chunk", content=[{"type": "thinking", "thinking": "§"}, {"type": "text", "text": "§"}, {"§": "§"}]),
        _event("§", **{"§": "§"}),
        _event("error", message="§", thread_id="§"),
    ],
    "ui": ITEMS["ui-chunks"],
    "ag-ui": [
        _event("RUN_STARTED", threadId="§", runId="§"),
        _event("STEP_STARTED", stepName="§"),
        *(_event(f"REASONING_MESSAGE_{kind}", messageId="r§", delta="§") for kind in ("START", "CONTENT", "END")),
        _event("TEXT_MESSAGE_START", messageId="§", role="assistant"),
        *(_event("TEXT_MESSAGE_CONTENT", messageId="§", delta=delta) for delta in "←→"),
        _event("TEXT_MESSAGE_END", messageId="§"),
        _event("TOOL_CALL_START", toolCallId="§", toolCallName="§", parentMessageId="§"),
        *(_event("TOOL_CALL_ARGS", toolCallId="§", delta=delta) for delta in ('{"¶": "«', '»", "a": ["¶"]}')),
        _event("TOOL_CALL_END", toolCallId="§"),
        _event("TOOL_CALL_RESULT", messageId="§", toolCallId="§", content="§", role="tool"),
        _event("TOOL_CALL_CHUNK", toolCallId="c§", toolCallName="§", delta="{«"),
        _event("STATE_SNAPSHOT", snapshot=NESTED),
        _event("STATE_DELTA", delta=[{"op": "add", "path": "/§", "value": "§"}, {"op": "§", "path": "§"}]),
        _event("ACTIVITY_SNAPSHOT", messageId="§", activityType="§", content=NESTED),
        _event("MESSAGES_SNAPSHOT", messages=[
            {"id": "n§", "role": "user", "content": "§", "name": "§"},
            {"id": "o§", "role": "assistant", "content": "§", "toolCalls": [_CALL]},
            {"id": "p§", "role": "tool", "toolCallId": "s§", "content": "§", "error": "§"}]),
        _event("CUSTOM", name="§", value=NESTED),
        _event("§", **{"§": "§"}),
        _event("RUN_ERROR", message="§", code="§"),
    ],
    "provider": [
        *({"type": "provider-event", "data": {"type": "text-delta", "textDelta": text}} for text in "←→"),
        _envelope("tools-started", tools=[{"id": "§", "name": "§", "arguments": NESTED},
                                          {"id": "b§", "name": "§", "arguments": "§"}]),
        _envelope("tool-completed", toolCallId="§", result="§", isError=True),
        _envelope("provider-completed", response={"text": "§", "toolCalls": [{"id": "d§", "name": "§"}]},
                  finishReason="§"),
        _envelope("§", **{"§": "§"}),
        _envelope("chain-error", error={"name": "§", "message": "§"}),
    ],
}  # fmt: skip
"""Streams as lists of JSON objects, by the name of the wire; the last object of each reports a failure."""
