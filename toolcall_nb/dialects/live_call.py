"""What the text dialects share in telling of a call while it is being written: its id, its card, the text around it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.text import well_formed
from toolcall_nb.dialects.json_object import Member
from toolcall_nb.markdown.block_context import SEAM
from toolcall_nb.markdown.tool_events import TextBlocks

__all__ = ["Card", "Flow", "WrittenCallIds", "own_id"]

_ID_KEYS = ("id", "callId")
_AFTER = re.compile(r"(?:[ \t]{0,99}(?:\r\n?|\n)){0,2}")
_MORE = re.compile(r"(?:[ \t]{0,99}(?:\r\n?|\n)){0,2}[ \t]{0,99}")


class WrittenCallIds:
    """The ids of the calls of one text."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str | None = None) -> str:
        """``wanted`` if it is free, else ``tool-call-N``: N counts the calls, and skips what is taken."""
        number = len(self._taken) + 1
        call_id = wanted if wanted and wanted not in self._taken else f"tool-call-{number}"
        while call_id in self._taken:
            number += 1
            call_id = f"tool-call-{number}"
        self._taken.add(call_id)
        return call_id

    def free(self, call_id: str) -> None:
        """There is no such call after all."""
        self._taken.discard(call_id)

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._taken


class Flow:
    """The text around the calls, as blocks; line ends between text and call become seams, two at most."""

    def __init__(self) -> None:
        self._blocks = TextBlocks()
        self._tail = ""  # line ends that may come before a call, or after one
        self._after_call = False

    @property
    def held(self) -> int:
        """How many characters are withheld."""
        return len(self._tail)

    def text(self, text: str) -> list[Event]:
        """More text."""
        text, self._tail = self._tail + text, ""
        return self._text_after_call(text) if self._after_call else self._text(text)

    def _text_after_call(self, text: str) -> list[Event]:
        more = _MORE.match(text)
        if more is not None and more.end() == len(text):
            self._tail = text
            return []
        after = _AFTER.match(text)
        end = after.end() if after else 0
        self._after_call = False
        return self._seam(text[:end]) + self._text(text[end:])

    def _text(self, text: str) -> list[Event]:
        if text[-1:] in ("\n", "\r"):
            seam = SEAM.search(text, max(0, len(text) - 4))
            end = seam.start() if seam else len(text)
            text, self._tail = text[:end], text[end:]
        return self._blocks.text(text) if text else []

    def begin_call(self) -> list[Event]:
        """A call follows."""
        seam, self._tail = self._tail, ""
        self._after_call = False
        return self._seam(seam) + self._blocks.close()

    def end_call(self) -> None:
        """The call is over: the line ends after it are a seam."""
        self._after_call = True

    def close(self) -> list[Event]:
        """No more text follows."""
        tail, self._tail = self._tail, ""
        if not tail:
            return self._blocks.close()
        return (self._seam if self._after_call else self._blocks.text)(tail) + self._blocks.close()

    def _seam(self, text: str) -> list[Event]:
        return self._blocks.seam(text) if text else []


class Card:
    """A call from when its name is known. Its input streams as the text of one member of its JSON."""

    def __init__(self, name: str, call_id: str) -> None:
        self.id = call_id
        self.name = name
        self._told = 0  # pieces of the input's text

    def start(self, flow: Flow) -> Iterator[Event]:
        """It appears."""
        yield from flow.begin_call()
        yield ev.ToolInputStart(self.id, self.name)

    def grow(self, input_member: Member) -> Iterator[Event]:
        """What is new of its input."""
        new = "".join(input_member.chunks[self._told :])
        self._told = len(input_member.chunks)
        if new:
            yield ev.ToolInputDelta(self.id, new)

    def rename(self, read: dict[str, Any], ids: WrittenCallIds) -> Iterator[Event]:
        """Take the id that its JSON gives, where that is free."""
        wanted = own_id(read)
        if wanted is None or wanted in ids:
            return
        ids.free(self.id)
        yield ev.ToolRetracted(self.id, ids.take(wanted))
        self.id = wanted

    def retract(self, ids: WrittenCallIds) -> Iterator[Event]:
        """It was none; its text follows."""
        ids.free(self.id)
        yield ev.ToolRetracted(self.id)


def own_id(read: dict[str, Any]) -> str | None:
    """The id that a call's JSON gives: ``id``, or ``callId``."""
    for key in _ID_KEYS:
        value = read.get(key)
        if isinstance(value, str) and value.strip():
            return well_formed(value)
    return None
