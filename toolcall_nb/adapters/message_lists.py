"""Reads lists of messages as they are sent to a provider; each assistant turn, with its tool results, is one message.

`read_message_list` reads the lists of providers whose messages are made of content blocks. `Turns` is for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from toolcall_nb.adapters.common_events import custom_part_event
from toolcall_nb.adapters.sdk_objects import get, object_fields
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event

__all__ = ["Turns", "prompt_events", "read_message_list"]


class _Turn(Protocol):
    def take(self, item: Any) -> list[Event]: ...

    def close(self) -> list[Event]: ...


_T = TypeVar("_T", bound=_Turn)


class Turns(Generic[_T]):
    """Collects the events of a list. ``begin`` creates the adapter that reads one turn of the assistant."""

    def __init__(self, begin: Callable[[], _T]) -> None:
        self._begin = begin
        self._turns: list[_T] = []
        self._is_open = False
        self.events: list[Event] = []

    def assistant(self, item: Any) -> None:
        """Adds a reply of the assistant to the open turn, as an item of its adapter."""
        if not self._is_open:
            self._turns.append(self._begin())
            self._is_open = True
        self.events += self._turns[-1].take(item)

    def answer(self, give: Callable[[_T], list[Event]]) -> bool:
        """Adds a tool result. ``give`` is called with each turn, the latest first, until one returns events."""
        for turn in reversed(self._turns):
            if found := give(turn):
                self.events += found
                return True
        return False

    def other(self, role: str, parts: Iterable[str | Event]) -> None:
        """Adds a message of the user or the system; one without parts is left out."""
        given = list(parts)
        if given:
            self.end()
            self.events += prompt_events("system" if role in ("system", "developer") else "user", given)

    def end(self) -> None:
        """Ends the assistant's turn."""
        if self._is_open:
            self.events += self._turns[-1].close()
        self._is_open = False


def prompt_events(role: str, parts: Iterable[str | Event]) -> list[Event]:
    """Returns the events of a complete user or system message; each text is a block of its own."""
    found: list[Event] = [ev.Start(role=role)]
    for number, part in enumerate(parts, 1):
        if isinstance(part, str):
            block = f"text-{number}"
            found += [ev.TextStart(block), ev.TextDelta(block, part), ev.TextEnd(block)]
        else:
            found.append(part)
    return [*found, ev.Finish()]


def read_message_list(
    messages: Iterable[Any],
    provider: str,
    *,
    turn: Callable[[], _T],
    assistant: str,
    item: Callable[[Mapping[str, Any]], Any],
    blocks: Callable[[Mapping[str, Any]], Iterable[Any]],
    result: Callable[[_T, Mapping[str, Any]], list[Event]],
    file: Callable[[Mapping[str, Any]], Event | None],
) -> list[Event]:
    """Returns the events of a list of messages with content blocks.

    Messages of the role ``assistant`` are read by the adapter that ``turn`` creates, each converted by ``item``. Of
    the ``blocks`` of other messages, ``result`` gives the events of a tool result, if the block is one and belongs to
    a call of that turn, and ``file`` the event of a file.
    """
    turns = Turns(turn)

    def prompt_parts(message: Mapping[str, Any]) -> Iterator[str | Event]:
        for given in blocks(message):
            block = {"text": given} if isinstance(given, str) else object_fields(given)
            if turns.answer(lambda turn, block=block: result(turn, block)):  # type: ignore[misc]
                continue
            if (text := get(block, "text", str)) is not None:
                yield text
            elif block:
                yield file(block) or custom_part_event(provider, get(block, "type", str) or next(iter(block)), block)

    for given in messages:
        message = object_fields(given)
        if message.get("role") == assistant:
            turns.assistant(item(message))
        else:
            turns.other(str(message.get("role")), prompt_parts(message))
    turns.end()
    return turns.events
