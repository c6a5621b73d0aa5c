"""Reads lists of messages as they are sent to a provider; each assistant turn, with its tool results, is one message.

Its steps are the messages of the assistant, as they are in the list.

`BlockMessages` reads those of providers whose messages are made of content blocks. `Turns` is for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.adapters.base import Adapter
from toolcall_nb.adapters.common_events import custom_part_event
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.sdk_objects import get, object_fields


class TurnAdapter(Adapter, Protocol):
    """The adapter of a turn of the assistant."""

    message: Assembler

    def next_step(self) -> list[Event]:
        """Ends a reply and begins the next one of the same message."""


_T = TypeVar("_T", bound=TurnAdapter)


class Turns(Generic[_T]):
    """Collects the events of a list. ``begin`` creates the adapter that reads one turn of the assistant."""

    def __init__(self, begin: Callable[[], _T]) -> None:
        self._begin = begin
        self._turns: list[_T] = []
        self._by_call: dict[str, list[_T]] = {}
        self._is_open = False
        self._has_reply = False
        self.events: list[Event] = []

    def assistant(self, item: Any, *, is_reply: bool = True) -> None:
        """Adds a reply of the assistant to the open turn, as an item of its adapter; else a piece of one.

        A piece begins another reply if results have come since the last one.
        """
        if not self._is_open:
            self._turns.append(self._begin())
            self._is_open, self._has_reply = True, False
        turn = self._turns[-1]
        is_next = turn.message.has_results or (is_reply and self._has_reply)
        events = [*(turn.next_step() if is_next else ()), *turn.take(item)]
        self._has_reply = is_reply
        for event in events:
            if isinstance(event, ev.ToolInputStart | ev.ToolInputAvailable | ev.ToolInputError):
                turns = self._by_call.setdefault(event.tool_call_id, [])
                if not turns or turns[-1] is not turn:
                    turns.append(turn)
        self.events += events

    def answer(self, give: Callable[[_T], list[Event]], call_id: str | None = None) -> bool:
        """Adds a tool result. ``give`` is called with each turn, the latest first, until one returns events.

        With ``call_id``, these are the turns with that call; one that returns nothing has ended it, and is not
        called again.
        """
        turns = list(self._turns) if call_id is None else self._by_call.get(call_id, [])
        while turns:
            if events := give(turns[-1]):
                self.events += events
                return True
            turns.pop()
        return False

    def other(
        self,
        role: str,
        parts: Iterable[str | Event],
        message_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Adds a message of the user or the system; one without parts is left out."""
        prompt = list(parts)
        if prompt:
            self.end()
            ours = "system" if role in ("system", "developer") else "user"
            self.events += prompt_events(ours, prompt, message_id, metadata)

    def end(self) -> None:
        """Ends the assistant's turn."""
        if self._is_open:
            self.events += self._turns[-1].close()
        self._is_open = False


def prompt_events(
    role: str,
    parts: Iterable[str | Event],
    message_id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> list[Event]:
    """Returns the events of a complete user or system message; each text is a block of its own."""
    events: list[Event] = [ev.Start(message_id=message_id, message_metadata=metadata or None, role=role)]
    for number, part in enumerate(parts, 1):
        if isinstance(part, str):
            block = f"text-{number}"
            events += [ev.TextStart(block), ev.TextDelta(block, part), ev.TextEnd(block)]
        else:
            events.append(part)
    return [*events, ev.Finish()]


class BlockMessages(Generic[_T]):
    """Reads messages with content blocks one by one: `take` each of them, then `close`; ``events`` grows.

    Messages of the role ``assistant`` are read by the adapter that ``turn`` creates, each converted by ``item``. Each
    is a reply, unless ``are_replies`` is false: then a reply ends with results. Of the ``blocks`` of other messages,
    ``is_result`` recognises a tool result, ``result`` gives its events if it belongs to a call of that turn,
    ``result_id`` the id of its call where it names one, and ``file`` gives the event of a file.
    """

    def __init__(
        self,
        provider: str,
        *,
        turn: Callable[[], _T],
        assistant: str,
        item: Callable[[Mapping[str, Any]], Any],
        blocks: Callable[[Mapping[str, Any]], Iterable[Any]],
        is_result: Callable[[Mapping[str, Any]], bool],
        result: Callable[[_T, Mapping[str, Any]], list[Event]],
        result_id: Callable[[Mapping[str, Any]], str | None] = lambda _: None,
        file: Callable[[Mapping[str, Any]], Event | None],
        are_replies: bool = True,
    ) -> None:
        self._provider, self._assistant, self._item = provider, assistant, item
        self._blocks, self._file = blocks, file
        self._is_result, self._result, self._result_id = is_result, result, result_id
        self._are_replies = are_replies
        self._turns = Turns(turn)

    @property
    def events(self) -> list[Event]:
        """The events so far."""
        return self._turns.events

    def take(self, item: Any, message_id: str | None = None, metadata: Mapping[str, Any] | None = None) -> None:
        """Reads the next message. ``message_id`` and ``metadata`` are those of a message of the user or the system."""
        message = object_fields(item)
        if message.get("role") == self._assistant:
            self._turns.assistant(self._item(message), is_reply=self._are_replies)
        else:
            parts = [part for block in self._blocks(message) if (part := self._prompt_part(block)) is not None]
            self._turns.other(str(message.get("role")), parts, message_id, metadata)

    def close(self) -> None:
        """Ends the assistant's turn."""
        self._turns.end()

    def _prompt_part(self, item: Any) -> str | Event | None:
        """Returns a block's text, file or custom part; None for an empty block and for a call's result."""
        block = {"text": item} if isinstance(item, str) else object_fields(item)
        if self._is_result(block) and self._turns.answer(
            lambda turn: self._result(turn, block), self._result_id(block)
        ):
            return None
        text: str | None = get(block, "text", str)
        if text is not None or not block:
            return text
        kind = get(block, "type", str) or next(iter(block))
        return self._file(block) or custom_part_event(self._provider, kind, block)


def read_message_list(messages: Iterable[Any], reader: BlockMessages[Any]) -> list[Event]:
    """Returns the events of a list of messages with content blocks."""
    for message in messages:
        reader.take(message)
    reader.close()
    return reader.events
