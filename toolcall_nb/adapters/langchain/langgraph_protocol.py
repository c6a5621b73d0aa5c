"""The typed events of LangGraph's newer streams: a message block by block, and the life of a tool.

Source: langchain_protocol 0.0.20 (protocol.py), ``MessagesData`` and ``ToolsData``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.langchain.conversation import Conversation
from toolcall_nb.adapters.langchain.messages import message_of, role_of
from toolcall_nb.adapters.parts import error_event
from toolcall_nb.adapters.plain import get, json_value, mapping
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event

__all__ = ["Protocol"]

_GROWING = frozenset({"text", "reasoning", "tool_call_chunk", "server_tool_call_chunk"})


class Protocol:
    """Reads the events into a conversation. Messages that stream beside each other are told apart by their runs."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._replies: dict[str, str] = {}
        self._grown: set[tuple[str, Any]] = set()

    def take(self, event: Mapping[str, Any], about: Mapping[str, Any], namespace: Any) -> list[Event]:
        """An event of a message."""
        run = str(about.get("run_id") or about.get("langgraph_checkpoint_ns") or namespace)
        replies, reply = self._conversation.replies, self._replies.get(run, run)
        match event.get("event"):
            case "message-start":
                reply = self._replies[run] = get(event, "id", str) or run
                return replies.begin(reply) if event.get("role") in ("ai", "assistant") else []
            case "content-block-start" | "content-block-delta" | "content-block-finish" as step:
                begins = replies.begin(reply)
                return [*begins, *self._block(step, reply, replies.turn_of(reply), event)]
            case "message-finish":
                said = {"usage_metadata": event.get("usage"), "response_metadata": event.get("metadata")}
                return self._conversation.finish(reply, said)
            case "error":
                return replies.message.other(error_event("The model", json_value(event.get("message"))))
        return []

    def _block(self, step: str, reply: str, turn: int, event: Mapping[str, Any]) -> list[Event]:
        replies, index = self._conversation.replies, event.get("index")
        if step == "content-block-delta":
            self._grown.add((reply, index))
            return replies.block(turn, 0, {**_piece(mapping(event.get("delta"))), "index": index})
        block = {**mapping(event.get("content")), "index": index}
        is_growing = block.get("type") in _GROWING
        if step == "content-block-start":
            self._grown |= {(reply, index)} if is_growing and (block.get("text") or block.get("reasoning")) else set()
            return replies.block(turn, 0, block) if is_growing else []
        if is_growing and (reply, index) in self._grown:  # what it holds was told; not what it says of itself
            block = {**block, "text": "", "reasoning": ""}
        self._grown.discard((reply, index))
        return replies.block(turn, 0, block)

    def tool(self, event: Mapping[str, Any]) -> list[Event]:
        """An event of a tool."""
        replies, call_id = self._conversation.replies, get(event, "tool_call_id", str) or ""
        match event.get("event"):
            case "tool-started":
                name, given = get(event, "tool_name", str) or "", json_value(event.get("input"))
                found = [] if replies.has_call(call_id) else replies.started(call_id, name, given)
                return [*found, ev.ToolExecution(call_id, "running")]
            case "tool-finished":
                answer = message_of(event.get("output"))
                if answer is not None and role_of(answer) == "tool":
                    return self._conversation.answer(answer, call_id)
                output = ev.ToolOutputAvailable(call_id, json_value(event.get("output")))
                return replies.outcome(call_id, output, {})
            case "tool-error":
                failure = ev.ToolOutputError(call_id, get(event, "message", str) or "The tool failed.")
                return replies.outcome(call_id, failure, {})
            case "tool-output-delta":
                return [ev.ToolLog(call_id, str(json_value(event.get("delta"))))] if replies.has_call(call_id) else []
        return []


def _piece(delta: Mapping[str, Any]) -> Mapping[str, Any]:
    """A delta as a piece of the block that it makes grow."""
    match delta.get("type"):
        case "text-delta":
            return {"type": "text", "text": delta.get("text")}
        case "reasoning-delta":
            return {"type": "reasoning", "reasoning": delta.get("reasoning")}
        case "tool-call-delta":
            return {"type": "tool_call_chunk", "args": delta.get("args")}
        case "block-delta":
            return mapping(delta.get("fields"))
    return {"type": "text", "text": ""}  # encoded data are whole when the block is
