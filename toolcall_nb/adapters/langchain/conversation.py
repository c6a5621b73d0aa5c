"""Reads LangChain's messages and chunks, in whatever order and however often they come.

`LangChainAdapter` reads a model's stream or a list of messages; `Conversation` is what it shares with LangGraph.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.base import Format, one_or_list
from toolcall_nb.adapters.common_events import unknown_item
from toolcall_nb.adapters.langchain.messages import human_parts, is_chunk, message_of, role_of
from toolcall_nb.adapters.langchain.replies import Replies
from toolcall_nb.adapters.message_lists import prompt_events
from toolcall_nb.adapters.sdk_objects import get
from toolcall_nb.core.events import Event

__all__ = ["LANGCHAIN", "Conversation", "LangChainAdapter"]


class Conversation:
    """Reads messages of all roles. All replies between two user messages are one message, with steps between them.

    A message is read once, identified by its id or by the call that it answers, since a graph yields the same message
    as chunks, as an update of its state and within its states.
    """

    def __init__(self) -> None:
        self.replies = Replies()
        """The replies of the open message."""
        self._read: set[str] = set()  # ids of messages
        self._past: set[str] = set()  # ids of calls of earlier messages
        self._others_spoke = False

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open."""
        return self.replies.message.close() if self.replies.has_begun or not self._others_spoke else []

    def take(self, message: Mapping[str, Any]) -> list[Event]:
        """Reads a message or a chunk; others, such as a removal, are ignored."""
        match role_of(message):
            case "assistant":
                return self._reply(message)
            case "tool":
                return self.answer(message)
            case "user" | "system" as role:
                return self._other_side(role, message)
        return []

    def has_read(self, message: Mapping[str, Any]) -> bool:
        """Whether it was read already."""
        if role_of(message) == "tool":
            call_id = get(message, "tool_call_id", str) or ""
            return call_id in self._past or call_id in self.replies.ended
        return get(message, "id", str) in self._read

    def mark_read(self, message: Mapping[str, Any]) -> None:
        """Marks a message as read."""
        call_id = get(message, "tool_call_id", str)
        if role_of(message) == "tool" and call_id:
            self._past.add(call_id)
        elif message_id := get(message, "id", str):
            self._read.add(message_id)

    def answer(self, message: Mapping[str, Any], own_id: str | None = None) -> list[Event]:
        """Ends the call that a tool message names by its id or its tool, or the call with the id ``own_id``."""
        by_name = self.replies.message.open_call
        call_id = get(message, "tool_call_id", str) or own_id or by_name(get(message, "name", str)) or "tool-call"
        if not self.replies.has_call(call_id):
            call_id = own_id or call_id
        elif own_id is not None and own_id != call_id:
            self.replies.release(own_id)
        return [] if call_id in self._past else self.replies.answer(call_id, message)

    def finish(self, reply: str, details: Mapping[str, Any]) -> list[Event]:
        """Ends a reply that came block by block; ``details`` has its usage and metadata."""
        self._read.add(reply)
        return self.replies.finish(reply, details)

    def mark_past(self, message: Mapping[str, Any]) -> None:
        """Marks a message as read unless it belongs to the open message."""
        call_id = get(message, "tool_call_id", str)
        if call_id is None or not self.replies.has_call(call_id):
            self.mark_read(message)

    def _reply(self, message: Mapping[str, Any]) -> list[Event]:
        message_id = get(message, "id", str)
        if is_chunk(message):
            if message_id and not self.replies.is_open(message_id):
                self._read.discard(message_id)  # some models give all replies one id
            return self.replies.piece(message)
        if message_id in self._read:
            return []
        self.mark_read(message)
        return [] if self.replies.has_answered(message) else self.replies.whole(message)

    def _other_side(self, role: str, message: Mapping[str, Any]) -> list[Event]:
        if self.has_read(message):
            return []
        self.mark_read(message)
        ends: list[Event] = []
        self._others_spoke = True
        if self.replies.has_begun:
            ends = self.close()
            self._past |= self.replies.ended
            self.replies = Replies()
        return [*ends, *prompt_events(role, human_parts(message.get("content")))]


class LangChainAdapter(Conversation):
    """Reads the chunks of ``model.stream`` and complete messages of all roles, in each of their forms."""

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one message or chunk."""
        message = message_of(item)
        return unknown_item(LANGCHAIN.title, item) if message is None else super().take(message)


def _is_message(thing: Any) -> bool:
    return type(thing) is not tuple and message_of(thing) is not None


LANGCHAIN = Format(
    name="langchain",
    title="LangChain (messages, chunks of a model)",
    adapter=LangChainAdapter,
    is_item=_is_message,
    is_whole=one_or_list(_is_message),
)
