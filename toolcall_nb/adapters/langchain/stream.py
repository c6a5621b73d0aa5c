"""LangChain: messages, pieces of them as a model streams them, lists of them; objects or any of their JSON forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolcall_nb.adapters.base import Format
from toolcall_nb.adapters.langchain.conversation import Conversation
from toolcall_nb.adapters.langchain.messages import message_of
from toolcall_nb.adapters.parts import strange_item
from toolcall_nb.core.events import Event

__all__ = ["FORMAT", "LangChainAdapter"]

_TITLE = "LangChain (messages, chunks of a model)"
_LOOK_AT = 4


class LangChainAdapter:
    """Reads the pieces that ``model.stream`` gives, and whole messages of all sides."""

    def __init__(self) -> None:
        self._conversation = Conversation()

    def take(self, item: Any) -> list[Event]:
        """The events of one message, or of a piece of one."""
        message = message_of(item)
        return strange_item(_TITLE, item) if message is None else self._conversation.take(message)

    def close(self) -> list[Event]:
        """The ends of what is open."""
        return self._conversation.close()


def _is_message(thing: Any) -> bool:
    return type(thing) is not tuple and message_of(thing) is not None


def _is_whole(thing: Any) -> bool:
    if type(thing) is list:
        return bool(thing) and all(_is_message(item) for item in thing[:_LOOK_AT])
    return _is_message(thing)


def _whole(thing: Any) -> Iterator[Event]:
    adapter = LangChainAdapter()
    for message in thing if type(thing) is list else [thing]:
        yield from adapter.take(message)
    yield from adapter.close()


FORMAT = Format(
    name="langchain",
    title=_TITLE,
    is_item=_is_message,
    adapter=LangChainAdapter,
    is_whole=_is_whole,
    whole=_whole,
)
