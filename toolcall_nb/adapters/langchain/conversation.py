"""A conversation of LangChain's messages and their pieces, in whatever order and however often they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.langchain.messages import is_chunk, role_of, spoken
from toolcall_nb.adapters.langchain.replies import Replies
from toolcall_nb.adapters.plain import get
from toolcall_nb.adapters.spoken_messages import said
from toolcall_nb.core.events import Event

__all__ = ["Conversation"]


class Conversation:
    """All replies between two messages of a person are one message of ours, with steps between them.

    A message that was told already, known by its id or as the answer to a call, is not told again: a graph gives the
    same message as pieces, as an update of its state and within its states.
    """

    def __init__(self) -> None:
        self._replies = Replies()
        self._told: set[str] = set()
        self._past: set[str] = set()
        self._others_spoke = False

    @property
    def replies(self) -> Replies:
        """The message that is open."""
        return self._replies

    def close(self) -> list[Event]:
        """The ends of what is open."""
        return self._replies.message.close() if self._replies.has_begun or not self._others_spoke else []

    def take(self, message: Mapping[str, Any]) -> list[Event]:
        """A message, or a piece of one. What says nothing, such as a removal, gives nothing."""
        match role_of(message):
            case "assistant":
                return self._reply(message)
            case "tool":
                return self.answer(message)
            case "user" | "system" as role:
                return self._other_side(role, message)
        return []

    def has_told(self, message: Mapping[str, Any]) -> bool:
        """Whether it was told already."""
        if role_of(message) == "tool":
            call_id = get(message, "tool_call_id", str) or ""
            return call_id in self._past or self._replies.has_ended(call_id)
        return get(message, "id", str) in self._told

    def mark_told(self, message: Mapping[str, Any]) -> None:
        """It need not be told."""
        call_id = get(message, "tool_call_id", str)
        if role_of(message) == "tool" and call_id:
            self._past.add(call_id)
        elif message_id := get(message, "id", str):
            self._told.add(message_id)

    def answer(self, message: Mapping[str, Any], own_id: str | None = None) -> list[Event]:
        """What a tool gave, to the call that the message names; or to the one that is known as ``own_id``."""
        call_id = get(message, "tool_call_id", str) or own_id or "tool-call"
        if not self._replies.has_call(call_id):
            call_id = own_id or call_id
        elif own_id is not None and own_id != call_id:
            self._replies.release(own_id)
        return [] if call_id in self._past else self._replies.answer(call_id, message)

    def finish(self, reply: str, said: Mapping[str, Any]) -> list[Event]:
        """A reply that came block by block is over, and this is what it says of itself."""
        self._told.add(reply)
        return self._replies.finish(reply, said)

    def mark_past(self, message: Mapping[str, Any]) -> None:
        """It belongs to what was said before, unless it is of the message that is open."""
        call_id = get(message, "tool_call_id", str)
        if call_id is None or not self._replies.has_call(call_id):
            self.mark_told(message)

    def _reply(self, message: Mapping[str, Any]) -> list[Event]:
        message_id = get(message, "id", str)
        if is_chunk(message):
            if message_id and not self._replies.is_open(message_id):
                self._told.discard(message_id)  # somebody gives all replies one id
            return self._replies.piece(message)
        if message_id in self._told:
            return []
        self.mark_told(message)
        return self._replies.whole(message)

    def _other_side(self, role: str, message: Mapping[str, Any]) -> list[Event]:
        if self.has_told(message):
            return []
        self.mark_told(message)
        ends: list[Event] = []
        self._others_spoke = True
        if self._replies.has_begun:
            ends = self.close()
            self._past |= self._replies.ended
            self._replies = Replies()
        return [*ends, *said(role, spoken(message.get("content")))]
