"""Events of a text with JSON calls while it is written: `StreamedCall` for a call, `TextFlow` for the text around it.

The JSON and the signature dialect use it.
"""

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

__all__ = ["StreamedCall", "TextFlow", "WrittenCallIds"]

_ID_KEYS = ("id", "callId")
_AFTER = re.compile(r"(?:[ \t]{0,99}(?:\r\n?|\n)){0,2}")
_MORE = re.compile(r"(?:[ \t]{0,99}(?:\r\n?|\n)){0,2}[ \t]{0,99}")


class WrittenCallIds:
    """The ids of the calls of one text."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def take(self, wanted: str | None = None) -> str:
        """Reserves ``wanted`` if it is free, else ``tool-call-N``: N counts the calls and skips used ids."""
        number = len(self._used) + 1
        call_id = wanted if wanted and wanted not in self._used else f"tool-call-{number}"
        while call_id in self._used:
            number += 1
            call_id = f"tool-call-{number}"
        self._used.add(call_id)
        return call_id

    def free(self, call_id: str) -> None:
        """Releases the id of a call that turned out not to be one."""
        self._used.discard(call_id)

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._used


class TextFlow:
    """The text around the calls, as text blocks.

    Up to two line ends between a text and a call become a block of their own, a seam.
    """

    def __init__(self) -> None:
        self._blocks = TextBlocks()
        self._tail = ""  # line ends that may be a seam
        self._after_call = False

    @property
    def held(self) -> int:
        """How many characters are withheld."""
        return len(self._tail)

    def text(self, text: str) -> list[Event]:
        """Adds text."""
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
        """Ends the text before a call."""
        seam, self._tail = self._tail, ""
        self._after_call = False
        return self._seam(seam) + self._blocks.close()

    def end_call(self) -> None:
        """Marks the end of a call: line ends after it are a seam."""
        self._after_call = True

    def close(self) -> list[Event]:
        """Ends the text."""
        tail, self._tail = self._tail, ""
        if not tail:
            return self._blocks.close()
        return (self._seam if self._after_call else self._blocks.text)(tail) + self._blocks.close()

    def _seam(self, text: str) -> list[Event]:
        return self._blocks.seam(text) if text else []


class StreamedCall:
    """A call that is being written, from when its name is known. Its input is one member of its JSON object."""

    def __init__(self, name: str, call_id: str) -> None:
        self.id = call_id
        self.name = name
        self._sent = 0  # how many pieces of the input's text were sent

    def start(self, flow: TextFlow) -> Iterator[Event]:
        """Yields the events that begin the call."""
        yield from flow.begin_call()
        yield ev.ToolInputStart(self.id, self.name)

    def grow(self, input_member: Member) -> Iterator[Event]:
        """Yields the new text of the input."""
        new = "".join(input_member.chunks[self._sent :])
        self._sent = len(input_member.chunks)
        if new:
            yield ev.ToolInputDelta(self.id, new)

    def rename(self, read: dict[str, Any], ids: WrittenCallIds) -> Iterator[Event]:
        """Gives the call the id from its JSON, if that is free."""
        wanted = next((value for key in _ID_KEYS if isinstance(value := read.get(key), str) and value.strip()), None)
        wanted = wanted and well_formed(wanted)
        if wanted is None or wanted in ids:
            return
        ids.free(self.id)
        yield ev.ToolRetracted(self.id, ids.take(wanted))
        self.id = wanted

    def retract(self, ids: WrittenCallIds) -> Iterator[Event]:
        """Withdraws the call, because it is not one. Its text follows."""
        ids.free(self.id)
        yield ev.ToolRetracted(self.id)
