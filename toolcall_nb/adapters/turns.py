"""Lists of messages, as they are sent to a provider: each assistant's turn, with the results in it, is one message."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from toolcall_nb.adapters.spoken_messages import said
from toolcall_nb.core.events import Event

__all__ = ["Turns", "first_of"]


class _Turn(Protocol):
    def take(self, item: Any) -> list[Event]: ...

    def close(self) -> list[Event]: ...


_T = TypeVar("_T", bound=_Turn)


class Turns(Generic[_T]):
    """Collects the events of a list. ``begin`` makes the adapter that reads one turn of the assistant."""

    def __init__(self, begin: Callable[[], _T]) -> None:
        self._begin = begin
        self._turns: list[_T] = []
        self._is_open = False
        self.events: list[Event] = []

    def assistant(self, item: Any) -> None:
        """One more reply within the turn, as an item of the adapter."""
        if not self._is_open:
            self._turns.append(self._begin())
            self._is_open = True
        self.events += self._turns[-1].take(item)

    def answer(self, give: Callable[[_T], list[Event]]) -> bool:
        """What a call gave: ``give`` is asked with each turn, the latest first, until one has events for it."""
        for turn in reversed(self._turns):
            if found := give(turn):
                self.events += found
                return True
        return False

    def other(self, role: str, parts: Iterable[str | Event]) -> None:
        """A message of a person, or of the system: texts and other parts. Without any it is left out."""
        given = list(parts)
        if given:
            self.end()
            self.events += said("system" if role in ("system", "developer") else "user", given)

    def end(self) -> None:
        """The assistant's turn is over."""
        if self._is_open:
            self.events += self._turns[-1].close()
        self._is_open = False


def first_of(thing: Any, most: int = 40) -> list[Any]:
    """The first items of a list or a tuple, for a look at what it holds; of anything else, none."""
    return list(thing[:most]) if type(thing) in (list, tuple) else []
