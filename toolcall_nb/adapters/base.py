"""Base types of the adapters: the `Adapter` interface, `Format`, which describes one format, and `MessageAdapter`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from msgspec import Struct

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.core.events import Event


class Adapter(Protocol):
    """Reads the items of one stream: `take` each item, then `close`.

    An item is an object of the SDK or its JSON as a mapping. `take` does not raise, whatever a model wrote or left
    out. An item that does not belong to the stream gives a diagnostic.
    """

    def take(self, item: Any) -> list[Event]:
        """Returns the events of one item."""

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open, whether the stream is complete or was cut off."""


def never(_: Any) -> bool:
    """Returns False: no object is recognised."""
    return False


class Format(Struct, frozen=True, kw_only=True):
    """A format that can be read. ``title`` names it in messages to the user.

    ``is_item`` tells whether an object is an item of a stream in this format, and ``adapter`` creates the reader of
    such a stream. ``is_whole`` tells whether an object is a complete reply or a list of messages, and ``whole`` gives
    its events; without ``whole`` the object, or each entry of a list, is read as an item of a stream. Both tests are
    called with arbitrary objects. They look at the type's name or at a few keys.
    """

    name: str
    title: str
    adapter: Callable[[], Adapter]
    is_item: Callable[[Any], bool] = never
    is_whole: Callable[[Any], bool] = never
    whole: Callable[[Any], Iterable[Event]] | None = None

    def read_whole(self, thing: Any) -> Iterable[Event]:
        """Returns the events of a complete reply or a list of messages."""
        if self.whole is not None:
            return self.whole(thing)
        adapter = self.adapter()
        items = thing if type(thing) in (list, tuple) else [thing]
        return [*(event for item in items for event in adapter.take(item)), *adapter.close()]


def one_or_list(is_message: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Returns a test for one message or a list of messages; of a list, it looks at the first four."""

    def test(thing: Any) -> bool:
        if type(thing) is list:
            return bool(thing) and all(is_message(item) for item in thing[:4])
        return is_message(thing)

    return test


class MessageAdapter:
    """Base of adapters that collect one assistant message. Subclasses add `Adapter.take`.

    ``replies`` is the number of replies before this one, for the keys of calls that each reply counts from 0.
    """

    def __init__(self) -> None:
        self.message = Assembler()
        self.replies = 0

    def next_step(self) -> list[Event]:
        """Ends a reply and begins the next one of the same message."""
        self.replies += 1
        return self.message.next_step()

    def begin_reply(self) -> list[Event]:
        """Begins a reply: the message, or its next step after a reply that has ended."""
        return [*(self.next_step() if self.message.reason is not None else ()), *self.message.start()]

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open."""
        return self.message.close()
