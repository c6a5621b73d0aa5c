"""Text, as an iterator gives it piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolcall_nb.adapters.assembling import Assembler
from toolcall_nb.adapters.base import Format, never
from toolcall_nb.adapters.parts import strange_item
from toolcall_nb.core.events import Event

__all__ = ["FORMAT", "TextAdapter"]

_TITLE = "text, piece by piece"


class TextAdapter:
    """Reads pieces of text as one text. A call that is written in it stays text: that is for a dialect to find."""

    def __init__(self) -> None:
        self._message = Assembler()

    def take(self, item: Any) -> list[Event]:
        """The events of one piece."""
        return self._message.text(item) if isinstance(item, str) else strange_item(_TITLE, item)

    def close(self) -> list[Event]:
        """The end of the text."""
        return self._message.close()


def _whole(_: Any) -> Iterator[Event]:
    yield from ()


FORMAT = Format(
    name="text",
    title=_TITLE,
    is_item=lambda item: isinstance(item, str),
    adapter=TextAdapter,
    is_whole=never,
    whole=_whole,
)
