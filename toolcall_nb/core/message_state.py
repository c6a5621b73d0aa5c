"""A message while it grows, as a value: each change gives a new one. `toolcall_nb.core.reducer` makes the changes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import chain
from operator import attrgetter

from msgspec import Struct, field
from msgspec.structs import replace

from toolcall_nb.core.append_only import AppendOnlyText
from toolcall_nb.core.console_text import ConsoleText
from toolcall_nb.core.events import MISSING, Object
from toolcall_nb.core.transcript import Message, Part, ReasoningPart, Role, TextPart, ToolCall

__all__ = ["NO_TEXT", "MessageState", "Slot", "Slots"]

NO_TEXT = AppendOnlyText()

_ROW = 64
_key = attrgetter("key")


class Slot(Struct, frozen=True):
    """One part that may still change. ``key`` names it within its message for as long as it lives.

    ``text`` is the text of a text or reasoning part, or the written input of a call, as it came. While
    ``is_growing``, ``part`` lacks what was added last.
    """

    key: int
    part: Part
    text: AppendOnlyText = NO_TEXT
    is_growing: bool = False
    block: str | None = None  # id of the text block that goes on here
    printed: ConsoleText | None = None  # of a call
    seam: str = ""  # of a call: the blank lines that parted it from the text before
    continues: bool = False  # of a text: the next block goes on here

    @property
    def call(self) -> ToolCall | None:
        """The tool call that it holds, if any; what grows of it may be missing."""
        return self.part if isinstance(self.part, ToolCall) else None

    def current(self) -> Part:
        """The part as it is now; the same object for as long as nothing grows."""
        if not self.is_growing:
            return self.part
        text = str(self.text)
        if isinstance(self.part, ToolCall):
            log = self.part.log if self.printed is None else str(self.printed)
            return replace(self.part, input_text=text if self.part.input is MISSING else "", log=log)
        assert isinstance(self.part, TextPart | ReasoningPart)
        return replace(self.part, text=text)

    def settled(self) -> Slot:
        """The slot with all that grew in its part, so that reading it costs nothing from now on."""
        return replace(self, part=self.current(), is_growing=False) if self.is_growing else self


class Slots:
    """Slots by ascending key, as a value. A change makes a new one, which shares all but a row with the old.

    The last one, which changes most, stands alone.
    """

    __slots__ = ("_rows", "last")

    def __init__(self, rows: tuple[tuple[Slot, ...], ...] = (), last: Slot | None = None) -> None:
        self._rows = rows
        self.last = last

    def __iter__(self) -> Iterator[Slot]:
        return chain(chain.from_iterable(self._rows), () if self.last is None else (self.last,))

    def __reversed__(self) -> Iterator[Slot]:
        if self.last is not None:
            yield self.last
        yield from chain.from_iterable(map(reversed, reversed(self._rows)))

    def get(self, key: int) -> Slot | None:
        """The slot of this key, if it is still there."""
        found = self.up_to(key)
        return found if found is not None and found.key == key else None

    def up_to(self, key: int) -> Slot | None:
        """The last slot whose key is not above this one."""
        if self.last is not None and self.last.key <= key:
            return self.last
        row = self._row(key)
        return self._rows[row][bisect_right(self._rows[row], key, key=_key) - 1] if row >= 0 else None

    def put(self, slot: Slot) -> Slots:
        """These with the slot in the place of the one that has its key, or else at the end."""
        rows, last = self._rows, self.last
        if last is None or last.key == slot.key:
            return Slots(rows, slot)
        if last.key < slot.key:
            is_full = not rows or len(rows[-1]) == _ROW
            return Slots((*rows, (last,)) if is_full else (*rows[:-1], (*rows[-1], last)), slot)
        number = self._row(slot.key)
        row = rows[number]
        place = bisect_left(row, slot.key, key=_key)
        return Slots((*rows[:number], (*row[:place], slot, *row[place + 1 :]), *rows[number + 1 :]), last)

    def without(self, start: int, stop: int | None = None) -> Slots:
        """These without the ones whose keys are in a range."""
        kept = [slot for slot in self if slot.key < start or (stop is not None and slot.key >= stop)]
        last = kept.pop() if kept else None
        return Slots(tuple(tuple(kept[first : first + _ROW]) for first in range(0, len(kept), _ROW)), last)

    def _row(self, key: int) -> int:
        """The number of the row in which the key would be; -1 where it is before them all."""
        return bisect_right(self._rows, key, key=lambda row: row[0].key) - 1


class MessageState(Struct, frozen=True):
    """One message while it grows."""

    role: Role
    id: str | None = None
    metadata: Object = field(default_factory=dict)
    finish_reason: str | None = None
    aborted: str | None = None
    is_open: bool = True
    slots: Slots = field(default_factory=Slots)
    next_key: int = 0
    step_start: int = 0  # key of the first slot of this step
    seam_block: str | None = None
    seam: str = ""

    def with_slot(self, slot: Slot) -> MessageState:
        """This with the slot, which is a new one or takes the place of its former self."""
        if slot.key < self.next_key:
            return replace(self, slots=self.slots.put(slot))
        return replace(self, slots=self.slots.put(slot), next_key=slot.key + 1)

    def current(self) -> Message:
        """The message as it is now."""
        parts = tuple(slot.current() for slot in self.slots)
        return Message(self.role, parts, self.id, self.metadata, self.finish_reason, self.aborted)
