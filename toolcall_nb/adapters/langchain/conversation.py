"""Reads LangChain's messages and chunks, in whatever order and however often they come.

`LangChainAdapter` reads a model's stream or a list of messages; `Conversation` is what it shares with LangGraph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.base import Format, one_or_list
from toolcall_nb.adapters.common_events import unknown_item
from toolcall_nb.adapters.langchain.messages import human_parts, is_chunk, message_of, role_of
from toolcall_nb.adapters.langchain.replies import Replies
from toolcall_nb.adapters.message_lists import prompt_events
from toolcall_nb.core.events import Event
from toolcall_nb.core.sdk_objects import get


class Conversation:
    """Reads messages of all roles. All replies between two user messages are one message, with steps between them.

    A message is read once, identified by its id or by the call that it answers, since a graph yields the same message
    as chunks, as an update of its state and within its states. Unless it ``hears_others``, the messages of the user and
    of the system are left out.
    """

    def __init__(self, *, hears_others: bool = True) -> None:
        self._hears_others = hears_others
        self.replies = Replies()
        """The replies of the open message."""
        self.defers_shared_ids = False
        """Whether results for an id that several calls have are left to `answer_shared`."""
        self._read: set[str] = set()  # ids of messages
        self._past: set[str] = set()  # ids of calls of earlier messages
        self._from_runs: Counter[str] = Counter()  # results of tools' runs that have not come as messages, by call id
        self._others_spoke = False

    @property
    def has_begun(self) -> bool:
        """Whether a message was read."""
        return self.replies.has_begun or self._others_spoke

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open."""
        return self.replies.close() if self.replies.has_begun or not self._others_spoke else []

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
            is_known = call_id in self._past or call_id in self.replies.ids.ended or self.replies.has_call(call_id)
            if is_known and not self.replies.ids.open_calls(call_id):
                return True
        return get(message, "id", str) in self._read

    def mark_read(self, message: Mapping[str, Any]) -> None:
        """Marks a message as read."""
        call_id = get(message, "tool_call_id", str)
        if role_of(message) == "tool" and call_id:
            self._past.add(call_id)
        if message_id := get(message, "id", str):
            self._read.add(message_id)

    def answer(self, message: Mapping[str, Any], own_id: str | None = None) -> list[Event]:
        """Ends the call that a tool message names. ``own_id`` is our id of the call whose tool's run gave the message.

        A result of a run comes again as a message. Of several calls with the message's id, the first open one ends.
        """
        replies, message_id = self.replies, get(message, "id", str)
        named = get(message, "tool_call_id", str)
        if self.defers_shared_ids and len(replies.ids.calls(named or "")) > 1:
            return []
        if message_id in self._read or (own_id is None and named is not None and self._from_runs[named] > 0):
            if named is not None and message_id not in self._read:
                self._from_runs[named] -= 1
                self._read |= {message_id} if message_id else set()
            return []
        if message_id:
            self._read.add(message_id)
        elif own_id is not None and named is not None:
            self._from_runs[named] += 1
        if named in self._past and not replies.ids.open_calls(named):
            return []
        if named is None or replies.ids.provider_id(own_id or "") == named:
            call_id = own_id or replies.message.open_call(get(message, "name", str))
            return replies.answer(call_id or "tool-call", message)
        if own_id is not None and not replies.has_call(named):
            return replies.answer(own_id, message)
        if own_id is not None:
            replies.release(own_id)
        return replies.answer(replies.ids.first_open(named), message)

    def answer_shared(self, message: Mapping[str, Any], own_id: str | None) -> list[Event]:
        """Ends the call ``own_id``, or the first open call that the message names, if several calls have that id."""
        named = get(message, "tool_call_id", str) or ""
        calls = self.replies.ids.open_calls(named)
        if len(self.replies.ids.calls(named)) < 2 or not calls:
            return []
        return self.replies.answer(own_id or calls[0], message)

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
            if message_id and message_id not in self.replies.turns:
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
        if not self._hears_others:
            return []
        ends: list[Event] = []
        self._others_spoke = True
        if self.replies.has_begun:
            ends = self.close()
            self._past |= set(map(self.replies.ids.provider_id, self.replies.ids.ended))
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
