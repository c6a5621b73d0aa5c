"""A message while it grows, `MessageState`, as a value: each change returns a new one.

`toolcall_nb.core.reducer` makes the changes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import chain
from operator import attrgetter

from msgspec import Struct, field
from msgspec.structs import replace

from toolcall_nb.core.append_only import AppendOnlyText, ConsoleText
from toolcall_nb.core.events import MISSING, Object
from toolcall_nb.core.parts import Part, ReasoningPart, StepStart, TextPart, ToolCall, changed_call
from toolcall_nb.core.transcript import Message, Role

NO_TEXT = AppendOnlyText()

_ROW = 64
_key = attrgetter("key")


class Slot(Struct, frozen=True):
    """A part that may still change. ``key`` identifies it within its message.

    ``text`` is the text of a text or reasoning part, or the text of a call's input. While ``is_growing`` is true,
    ``part`` may lack the newest text.
    """

    key: int
    part: Part
    text: AppendOnlyText = NO_TEXT
    is_growing: bool = False
    block: str | None = None  # id of the open text block
    printed: ConsoleText | None = None  # of a call: its log
    seam: str = ""  # of a call: the blank lines between it and the text before
    continues: bool = False  # of a text: the next block is added to it

    def current(self) -> Part:
        """Returns the part with all its text. It is the same object until the text grows again."""
        if not self.is_growing:
            return self.part
        text = str(self.text)
        if isinstance(self.part, ToolCall):
            log = self.part.log if self.printed is None else str(self.printed)
            return changed_call(self.part, input_text=text if self.part.input is MISSING else "", log=log)
        assert isinstance(self.part, TextPart | ReasoningPart)
        return replace(self.part, text=text)

    def settled(self) -> Slot:
        """Returns the slot with all its text in its part, so that reading it costs nothing from now on."""
        return replace(self, part=self.current(), is_growing=False) if self.is_growing else self


class Slots(Struct, frozen=True):
    """Slots by ascending key, as a value. A change returns a new one, which shares all but one row with the old.

    ``firsts`` are the keys of the rows' first slots. ``last``, which changes most, is kept outside the rows.
    """

    rows: tuple[tuple[Slot, ...], ...] = ()
    firsts: tuple[int, ...] = ()
    last: Slot | None = None

    def __iter__(self) -> Iterator[Slot]:
        return chain(chain.from_iterable(self.rows), () if self.last is None else (self.last,))

    def __reversed__(self) -> Iterator[Slot]:
        if self.last is not None:
            yield self.last
        yield from chain.from_iterable(map(reversed, reversed(self.rows)))

    def get(self, key: int) -> Slot | None:
        """Returns the slot with this key, if there is one."""
        slot = self.up_to(key)
        return slot if slot is not None and slot.key == key else None

    def up_to(self, key: int) -> Slot | None:
        """Returns the last slot whose key is at most ``key``."""
        if self.last is not None and self.last.key <= key:
            return self.last
        if not self.firsts or key < self.firsts[0]:
            return None
        row = self.rows[bisect_right(self.firsts, key) - 1]
        return row[bisect_right(row, key, key=_key) - 1]

    def put(self, slot: Slot) -> Slots:
        """Returns the slots with this one in the place of the slot that has its key, or else at the end."""
        rows, firsts, last = self.rows, self.firsts, self.last
        if last is None or last.key == slot.key:
            return Slots(rows, firsts, slot)
        if last.key < slot.key:
            if not rows or len(rows[-1]) == _ROW:
                return Slots((*rows, (last,)), (*firsts, last.key), slot)
            return Slots((*rows[:-1], (*rows[-1], last)), firsts, slot)
        number = bisect_right(firsts, slot.key) - 1
        row = rows[number]
        index = bisect_left(row, slot.key, key=_key)
        return Slots((*rows[:number], (*row[:index], slot, *row[index + 1 :]), *rows[number + 1 :]), firsts, last)

    def without(self, start: int, stop: int | None = None) -> Slots:
        """Returns the slots without those whose keys are in a range."""
        kept = [slot for slot in self if slot.key < start or (stop is not None and slot.key >= stop)]
        last = kept.pop() if kept else None
        rows = tuple(tuple(kept[first : first + _ROW]) for first in range(0, len(kept), _ROW))
        return Slots(rows, tuple(row[0].key for row in rows), last)


class MessageState(Struct, frozen=True):
    """A message while it grows."""

    role: Role
    id: str | None = None
    metadata: Object = field(default_factory=dict)
    finish_reason: str | None = None
    aborted: str | None = None
    is_open: bool = True
    slots: Slots = Slots()
    next_key: int = 0
    steps: tuple[tuple[int, StepStart], ...] = ()  # each with the key that the next slot had when it began
    step_start: int = 0  # key of the first slot of this step, where it is one of the run itself
    seam_block: str | None = None  # id of the open block that holds only blank lines
    seam: str = ""
    repeated: bool | None = None
    injected: str | None = None
    extra: Object = field(default_factory=dict)

    def current(self) -> Message:
        """Returns the message with all its text."""
        parts = tuple(slot.current() for slot in self.slots)
        starts = tuple([start for _, start in self.steps])
        if self.steps and len(parts) < self.next_key:  # without the slots that were removed, a key is no place
            keys = [slot.key for slot in self.slots]
            starts = tuple([replace(start, at=bisect_left(keys, key)) for key, start in self.steps])
        return Message(
            self.role,
            parts,
            self.id,
            self.metadata,
            self.finish_reason,
            self.aborted,
            starts,
            self.repeated,
            self.injected,
            self.extra,
        )
