"""`TypedEvents` reads the typed events of LangGraph's ``stream_events``: messages block by block, and tool runs.

Source: langchain_protocol 0.0.20 (protocol.py), ``MessagesData`` and ``ToolsData``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.common_events import error_event
from toolcall_nb.adapters.langchain.conversation import Conversation
from toolcall_nb.adapters.langchain.messages import message_of, role_of
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.sdk_objects import as_json_value, as_mapping, get

_GROWING = frozenset({"text", "reasoning", "tool_call_chunk", "server_tool_call_chunk"})


class TypedEvents:
    """Reads the events into a conversation. Messages that stream at the same time are distinguished by their runs."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._replies: dict[str, str] = {}
        self._grown: set[tuple[str, Any]] = set()

    def take(self, event: Mapping[str, Any], metadata: Mapping[str, Any], namespace: Any) -> list[Event]:
        """Reads an event of a message."""
        run = str(metadata.get("run_id") or metadata.get("langgraph_checkpoint_ns") or namespace)
        replies, reply = self._conversation.replies, self._replies.get(run, run)
        match event.get("event"):
            case "message-start":
                reply = self._replies[run] = get(event, "id", str) or run
                return replies.begin(reply) if event.get("role") in ("ai", "assistant") else []
            case "content-block-start" | "content-block-delta" | "content-block-finish" as step:
                begins = replies.begin(reply)
                return [*begins, *self._block(step, reply, replies.turns[reply], event)]
            case "message-finish":
                details = {"usage_metadata": event.get("usage"), "response_metadata": event.get("metadata")}
                return self._conversation.finish(reply, details)
            case "error":
                return replies.message.other(error_event("The model", as_json_value(event.get("message"))))
        return []

    def _block(self, step: str, reply: str, turn: int, event: Mapping[str, Any]) -> list[Event]:
        replies, index = self._conversation.replies, event.get("index")
        if step == "content-block-delta":
            self._grown.add((reply, index))
            return replies.block(turn, 0, {**_piece(as_mapping(event.get("delta"))), "index": index})
        block = {**as_mapping(event.get("content")), "index": index}
        is_growing = block.get("type") in _GROWING
        if step == "content-block-start":
            if not is_growing:
                return []
            if block.get("text") or block.get("reasoning"):
                self._grown.add((reply, index))
            return replies.block(turn, 0, block)
        if is_growing and (reply, index) in self._grown:  # its text was read already, its metadata was not
            block = {**block, "text": "", "reasoning": ""}
        self._grown.discard((reply, index))
        return replies.block(turn, 0, block)

    def tool(self, event: Mapping[str, Any]) -> list[Event]:
        """Reads an event of a tool."""
        replies, call_id = self._conversation.replies, get(event, "tool_call_id", str) or ""
        own_id = replies.ids.first_open(call_id)
        match event.get("event"):
            case "tool-started":
                name, arguments = get(event, "tool_name", str) or "", as_json_value(event.get("input"))
                events = [] if replies.has_call(call_id) else replies.start_tool(call_id, name, arguments)
                return [*events, ev.ToolExecution(replies.start_call(call_id, arguments), "running")]
            case "tool-finished":
                answer = message_of(event.get("output"))
                if answer is not None and role_of(answer) == "tool":
                    return self._conversation.answer(answer, own_id)
                output = ev.ToolOutputAvailable(own_id, as_json_value(event.get("output")))
                return replies.outcome(own_id, output, {})
            case "tool-error":
                failure = ev.ToolOutputError(own_id, get(event, "message", str) or "The tool failed.")
                return replies.outcome(own_id, failure, {})
            case "tool-output-delta" if replies.has_call(call_id):
                return [ev.ToolLog(own_id, str(as_json_value(event.get("delta"))))]
        return []


def _piece(delta: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a delta as a piece of its block."""
    match delta.get("type"):
        case "text-delta":
            return {"type": "text", "text": delta.get("text")}
        case "reasoning-delta":
            return {"type": "reasoning", "reasoning": delta.get("reasoning")}
        case "tool-call-delta":
            return {"type": "tool_call_chunk", "args": delta.get("args")}
        case "block-delta":
            return as_mapping(delta.get("fields"))
    return {"type": "text", "text": ""}  # encoded data come complete at the end of the block
