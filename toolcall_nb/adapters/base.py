"""What an adapter is, and what is known of the things it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from msgspec import Struct

from toolcall_nb.core.events import Event

__all__ = ["Adapter", "Format", "never"]


class Adapter(Protocol):
    """Reads the items of one stream: `take` each, then `close`. Text of a model, and what it left out, never raises.

    An item is an object of the SDK, or its JSON as a mapping, as it came off the wire. What is no item of this
    stream gives a diagnostic.
    """

    def take(self, item: Any) -> list[Event]:
        """The events of one item."""

    def close(self) -> list[Event]:
        """The stream is over, or was cut off: the ends of what is open."""


class Format(Struct, frozen=True, kw_only=True):
    """One kind of thing that people hold. ``title`` names it to a person.

    ``is_item`` tells whether something is an item of its streams, and ``adapter`` makes what reads them. ``is_whole``
    tells whether something is a whole reply, or a list of messages, and ``whole`` gives its events. Both tests are
    asked of anything at all: they look at a type's name, or at a few keys, and never raise.
    """

    name: str
    title: str
    is_item: Callable[[Any], bool]
    adapter: Callable[[], Adapter]
    is_whole: Callable[[Any], bool]
    whole: Callable[[Any], Iterable[Event]]


def never(_: Any) -> bool:
    """Not of this format."""
    return False
