"""Reads lists of messages as OpenAI's two APIs take them, ``messages=[…]`` and ``input=[…]``.

Source: openai-python 3.52, ``types/chat/chat_completion_message_param.py``, ``types/responses/response_input_item.py``.
A list may mix messages, items and the SDK's own objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolcall_nb.adapters.base import Format, MessageAdapter
from toolcall_nb.adapters.common_events import unknown_item
from toolcall_nb.adapters.message_lists import Turns
from toolcall_nb.adapters.openai import items
from toolcall_nb.adapters.openai.chat import OpenAIChatAdapter
from toolcall_nb.adapters.openai.choice import ChoiceReader, part_event
from toolcall_nb.adapters.openai.content import text_in
from toolcall_nb.adapters.openai.output import OutputReader
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.sdk_objects import first_items, get, nonempty, object_fields, type_name

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_ITEMS = frozenset(
    {
        *("reasoning", "item_reference", "program", "mcp_approval_request", "mcp_approval_response", "mcp_list_tools"),
        *("compaction", "additional_tools"),
    }
)
_MESSAGES = frozenset({"ChatCompletionMessage", "ParsedChatCompletionMessage"})


class OpenAITurn(MessageAdapter):
    """A turn of the assistant: its replies between two messages of others, with the tool results in between."""

    def __init__(self) -> None:
        super().__init__()
        self._output = OutputReader(self.message)
        self._items = 0

    def take(self, item: Mapping[str, Any]) -> list[Event]:
        """Reads a message of the assistant, or an item."""
        events = self.message.start()
        if "type" in item:
            self._items += 1
            return events + self._output.done(self._items, item)
        reader = ChoiceReader(self.message)
        events += [*reader.take(item, is_whole=True), *reader.end()]
        return [*events, *self.message.end_block(), *self.message.end_calls(), *self.message.complete_calls()]

    def give(self, item: Mapping[str, Any]) -> list[Event]:
        """Reads a tool result or an approval; returns nothing if its call is not in this turn."""
        if item.get("type") == "mcp_approval_response":
            return self._approve(str(item.get("approval_request_id")), item)
        call_id = _result_id(item) or ""
        content = item if "type" in item else {"output": item.get("content")}
        name = nonempty(item, "name") or nonempty(item, "tool_name")
        return self.message.outcome(call_id, items.output_event(call_id, content), name)

    def close(self) -> list[Event]:
        """Ends the turn."""
        return [*self._output.end(), *self.message.close()]

    def _approve(self, request_id: str, item: Mapping[str, Any]) -> list[Event]:
        if not self.message.knows(request_id):
            return []
        self.message.has_results = True
        is_approved = item.get("approve") is True
        answer = ev.ToolApprovalResponse(request_id, is_approved, nonempty(item, "reason"))
        return [answer, *([] if is_approved else self.message.outcome(request_id, ev.ToolOutputDenied(request_id)))]


class OpenAIMessages:
    """Reads messages and items one by one: `take` each of them, then `close`; ``events`` grows.

    ``turn`` creates the adapter of each turn of the assistant.
    """

    def __init__(self, turn: Callable[[], OpenAITurn] = OpenAITurn) -> None:
        self._turns = Turns(turn)
        self.events = self._turns.events

    def take(self, item: Any, metadata: Mapping[str, Any] | None = None) -> None:
        """Reads the next message or item. ``metadata`` is that of a message of the user or the system."""
        message = object_fields(item)
        role, kind = get(message, "role", str), get(message, "type", str)
        is_message = kind in (None, "message")
        if is_message and role in ("system", "developer", "user"):
            self._turns.other(role, _parts(message.get("content")), metadata=metadata)
        elif is_message and role == "assistant":
            self._turns.assistant(message, is_reply=kind is None)
        elif role in ("tool", "function") or kind == "mcp_approval_response" or (kind and items.is_output_item(kind)):
            call_id = None if kind == "mcp_approval_response" else _result_id(message)
            if not self._turns.answer(lambda turn: turn.give(message), call_id):
                item = {"type": kind or role, **message}  # its call is not in the list
                self._turns.assistant(item, is_reply=False)
        elif kind:
            self._turns.assistant(message, is_reply=False)
        else:
            self.events += unknown_item(OPENAI_MESSAGES.title, item)

    def close(self) -> None:
        """Ends the assistant's turn."""
        self._turns.end()


def _read_messages(messages: Any) -> list[Event]:
    reader = OpenAIMessages()
    for message in messages if isinstance(messages, list | tuple) else [messages]:
        reader.take(message)
    reader.close()
    return reader.events


def _result_id(message: Mapping[str, Any]) -> str | None:
    """Returns the id of the call that a result belongs to, if it names one. An item's own ``id`` may be that id."""
    return nonempty(message, "tool_call_id") or items.call_id(message)


def _parts(content: Any) -> Iterable[str | Event]:
    for item in content if isinstance(content, list | tuple) else [content]:
        part = item if isinstance(item, str) else object_fields(item)
        text = text_in(part) if part else None
        if text is not None:
            yield text
        elif isinstance(part, Mapping) and part:
            yield part_event(part)


def _is_whole(thing: Any) -> bool:
    if not isinstance(thing, list | tuple):
        return type(thing).__name__.partition("[")[0] in _MESSAGES
    first = first_items(thing)
    others = [message for message in first if not _is_ours(message)]
    return len(others) < len(first) and all(
        get(message, "type", str) is not None and "role" not in message  # an item of an unknown type
        for message in others
    )


def _is_ours(message: Any) -> bool:
    if not isinstance(message, Mapping):
        name = type_name(message)
        is_item = name.startswith("openai.types.responses.") and not name.endswith("Event")
        return is_item or type(message).__name__.partition("[")[0] in _MESSAGES
    if get(message, "role", str) in _ROLES and "parts" not in message:
        return any(name in message for name in ("content", "tool_calls", "function_call"))
    kind = get(message, "type", str) or ""
    return kind in _ITEMS or ((items.is_call_item(kind) or items.is_output_item(kind)) and kind != "tool_call")


OPENAI_MESSAGES = Format(
    name="openai-messages",
    title="a list of OpenAI messages",
    adapter=OpenAIChatAdapter,
    is_whole=_is_whole,
    whole=_read_messages,
)
