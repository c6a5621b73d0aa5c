"""The detection that the JSON and the signature dialect share: `JsonCallDetector` scans a text for JSON calls.

`Lines` knows where a line begins and which code fence is open. `StreamedCall` makes the events of a call while it is
written, and `TextFlow` those of the text around it.

Fences follow CommonMark, section 4.5, except for containers: a fence may be indented by up to 99 blanks, as in a list.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NamedTuple, Protocol

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.text import well_formed
from toolcall_nb.dialects.json_object import Member
from toolcall_nb.markdown.block_context import NEWLINE, SEAM
from toolcall_nb.markdown.characters import CharacterReader, TextPosition
from toolcall_nb.markdown.tool_events import TextBlocks

_ID_KEYS = ("id", "callId")
_AFTER = re.compile(r"(?:[ \t]{0,99}(?:\r\n?|\n)){0,2}")
_MORE = re.compile(r"(?:[ \t]{0,99}(?:\r\n?|\n)){0,2}[ \t]{0,99}")


AFTER_LINE = r"(?=[ \t]{0,99}(?:[`~#]|\Z))"
"""A pattern for the beginning of a line that matters: a possible fence, a heading's mark, or nothing yet."""

LINE_START = rf"[\r\n]{AFTER_LINE}"
"""A pattern for the last character of the line before one that matters."""

MAX_FENCE_LINE = 400
"""The longest line, in characters, that can open or close a fence."""

_OPENING = re.compile(r"[ \t]{0,99}(?P<mark>`{3,}(?=[^`]*\Z)|~{3,})[ \t]*(?P<word>[^ \t]*)")
_BEGINS_MARK = re.compile(r"[ \t]{0,99}(?:[`~]|\Z)")
_CLOSING = re.compile(r"[ \t]{0,99}(?P<mark>`{3,}|~{3,})[ \t]*")


class Fence(NamedTuple):
    """An open fence: its mark, and the first word after it in lower case."""

    mark: str
    word: str

    def is_closed_by(self, mark: str) -> bool:
        """Whether a line that holds only this mark closes the fence."""
        return mark[0] == self.mark[0] and len(mark) >= len(self.mark)


class Lines:
    """The lines of a text that comes in pieces. ``position`` is that of its end so far."""

    def __init__(self) -> None:
        self.position = TextPosition()
        self.at_start = True
        self.fence: Fence | None = None
        self._line: str | None = ""  # its text so far; None: it opens and closes no fence

    def may_be_mark(self, text: str, position: int) -> bool:
        """Whether the current line, continued with ``text`` from ``position``, may open or close a fence."""
        line = self._line
        return line is not None and _BEGINS_MARK.match(line + text[position : position + MAX_FENCE_LINE]) is not None

    def skip_text(self, text: str, stop: re.Pattern[str]) -> bool:
        """Skips ``text`` if it only continues a line of text, and returns whether it did.

        ``stop`` matches `LINE_START` and anything else that the caller must look at.
        """
        is_plain = self._line is None and stop.search(text) is None
        if is_plain:
            self.position.advance(text)
        return is_plain

    def extend(self, text: str) -> None:
        """Adds text."""
        if not text:
            return
        self.position.advance(text)
        begin = max(text.rfind("\n"), text.rfind("\r")) + 1
        self.at_start = begin == len(text)
        if begin:
            self._end_lines(text[:begin])
        if self._line is not None:
            self._add(self._line, text[begin:])

    def skip(self, source: str) -> None:
        """Skips the source of a call: its lines are not lines of the text."""
        self._line = None  # text after the call on its last line begins no line
        self.position.advance(source)
        self.at_start = source[-1] in "\r\n"

    def _add(self, line: str, text: str) -> None:
        line = (line + text[: MAX_FENCE_LINE + 1])[: MAX_FENCE_LINE + 1]
        self._line = line if _BEGINS_MARK.match(line) else None

    def _end_lines(self, text: str) -> None:
        if self._line is None and "```" not in text and "~~~" not in text:
            self._line = ""
            return
        position = 0
        for ending in NEWLINE.finditer(text):
            if self._line is not None:
                self._add(self._line, text[position : ending.start()])
            self._end_line()
            position = ending.end()

    def _end_line(self) -> None:
        line, self._line = self._line, ""
        if line is None or len(line) > MAX_FENCE_LINE:
            return
        if self.fence is None:
            opening = _OPENING.match(line)
            self.fence = Fence(opening["mark"], opening["word"].lower()) if opening else None
        elif (closing := _CLOSING.fullmatch(line)) and self.fence.is_closed_by(closing["mark"]):
            self.fence = None


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
        """The number of characters that are withheld."""
        return len(self._tail)

    def text(self, text: str) -> list[Event]:
        """Adds text."""
        text, self._tail = self._tail + text, ""
        if not self._after_call:
            return self._text(text)
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


class Attempt(Protocol):
    """Text that may be a call. ``begin`` is its position in the text that is being fed; None: it began before that."""

    begin: int | None

    @property
    def source(self) -> str:
        """Its text so far."""


class JsonCallDetector(ABC):
    """Scans the text of one message, in pieces that are cut anywhere. See `toolcall_nb.dialects.Detector`.

    A subclass reads the text in steps. A step may open an attempt; an attempt that fails is turned into text, and
    scanned again from behind its first characters.
    """

    _stop: ClassVar[re.Pattern[str]]
    """Matches where something may begin in a line of text."""

    def __init__(self) -> None:
        self._characters = CharacterReader()
        self._lines = Lines()
        self._flow = TextFlow()
        self._ids = WrittenCallIds()
        self._text = ""  # undecided text, and after it the text that is being fed
        self._at = 0
        self._base = 0  # how many characters came before `_text`
        self._in_text = True  # whether nothing is undecided

    @property
    def held(self) -> int:
        """The number of characters that are withheld because they may still become a call."""
        return len(self._text) + self._held_by_attempts() + self._flow.held + self._characters.held

    def feed(self, text: str) -> list[Event]:
        """Takes more text and returns the events that are certain now."""
        text = self._characters.feed(text)
        if self._in_text and self._lines.skip_text(text, self._stop):
            self._base += len(text)
            return self._flow.text(text)
        return self._scan(text, final=False)

    def close(self) -> list[Event]:
        """Ends the text and returns the remaining events."""
        events = self._scan(self._characters.close(), final=True)
        return [*events, *self._end(), *self._flow.close(), *self._characters.diagnostics]

    def _scan(self, text: str, final: bool) -> list[Event]:
        self._text += text
        events: list[Event] = []
        while self._at < len(self._text) or (final and self._attempts()):
            before = self._at, self._attempts()
            events += self._step(final)
            if before == (self._at, self._attempts()):
                break
        self._base += self._at
        self._text, self._at = self._text[self._at :], 0
        for attempt in self._attempts():
            attempt.begin = None
        self._in_text = not self._text and self._is_in_text()
        return events

    def _rewind(self, attempt: Attempt, passed: int) -> Iterable[Event]:
        """Turns an attempt into text: passes its first ``passed`` characters on and scans the rest again."""
        if attempt.begin is None:
            source = attempt.source
            self._base += self._at - len(source)
            self._text, self._at = source + self._text[self._at :], 0
        else:
            self._at = attempt.begin
        return self._pass(self._at + passed)

    def _pass(self, end: int) -> list[Event]:
        """Passes the characters before ``end`` on as text."""
        text = self._text[self._at : end]
        self._at = end
        self._lines.extend(text)
        return self._flow.text(text)

    def _end(self) -> list[Event]:
        """Returns the last events of the subclass."""
        return []

    def _is_in_text(self) -> bool:
        return not self._attempts()

    @abstractmethod
    def _attempts(self) -> tuple[Attempt, ...]:
        """Returns the open attempts."""

    @abstractmethod
    def _held_by_attempts(self) -> int:
        """The number of characters that the open attempts withhold."""

    @abstractmethod
    def _step(self, final: bool) -> Iterable[Event]:
        """Reads on from ``_at``. If it can decide nothing before more text comes, it changes nothing."""
