"""A message while it grows: its parts as slots that may still change. Only `toolcall_nb.reducer` moves them."""

from __future__ import annotations

from msgspec.structs import replace

from toolcall_nb.events import Object
from toolcall_nb.printed import Printed
from toolcall_nb.transcript import Message, Part, ReasoningPart, Role, TextPart, ToolCall

__all__ = ["MessageState", "Slot"]

_SMALL = 1024


class Slot:
    """One part that may still change. ``key`` names it within its message for as long as it lives."""

    __slots__ = (
        *("block", "call", "chunks", "continues", "frozen", "key", "metadata", "printed", "reasoning", "seam"),
        "_joined",
    )

    def __init__(self, key: int) -> None:
        self.key = key
        self.frozen: Part | None = None
        self.call: ToolCall | None = None
        self.block: str | None = None  # id of the text block
        self.reasoning = False
        self.metadata: Object | None = None
        self.printed: Printed | None = None  # of a call
        self.seam = ""  # of a call: the blank lines that parted it from the text before
        self.continues = False  # of a text: the next block goes on here
        self.write()

    @property
    def is_text(self) -> bool:
        """Whether it holds text of the answer."""
        return self.call is None and not self.reasoning and (self.frozen is None or isinstance(self.frozen, TextPart))

    def write(self, *chunks: str) -> None:
        """The text, or the written input of a call, starts over with these."""
        self.chunks: list[str] | tuple[str, ...] = chunks  # most parts never grow again, and an empty tuple is free
        self._joined = 0  # so many of the chunks are long

    def add(self, delta: str) -> None:
        """One more chunk. Many small ones become a long one: a string of four characters takes sixty bytes."""
        if isinstance(self.chunks, tuple):
            self.chunks = [*self.chunks]
        self.chunks.append(delta)
        self.frozen = None
        if len(self.chunks) - self._joined > _SMALL:
            self.chunks[self._joined :] = ["".join(self.chunks[self._joined :])]
            self._joined += 1

    def freeze(self) -> Part:
        """The part as it is now; the same object until it changes."""
        if self.frozen is None:
            self.frozen = self._freeze()
        return self.frozen

    def _freeze(self) -> Part:
        text = "".join(self.chunks)
        self.write(text)
        if self.call is not None:
            log = self.call.log if self.printed is None else str(self.printed)
            return replace(self.call, input_text=text, log=log)
        return (ReasoningPart if self.reasoning else TextPart)(text, self.metadata)


class MessageState:
    """One message while it grows."""

    def __init__(self, role: Role) -> None:
        self.role: Role = role
        self.id: str | None = None
        self.metadata: Object = {}
        self.finish_reason: str | None = None
        self.aborted: str | None = None
        self.is_open = True
        self.slots: list[Slot] = []
        self._by_key: dict[int, Slot] = {}
        self._by_call: dict[str, Slot] = {}
        self.step_start = 0
        self.seam_block: str | None = None
        self.seam = ""
        self._next_key = 0

    def add(self) -> Slot:
        """A new slot at the end."""
        slot = Slot(self._next_key)
        self._next_key += 1
        self.slots.append(slot)
        self._by_key[slot.key] = slot
        return slot

    def cut(self, start: int, stop: int | None = None) -> None:
        """Take slots away."""
        for slot in self.slots[start:stop]:
            del self._by_key[slot.key]
            if slot.call is not None:
                del self._by_call[slot.call.id]
        del self.slots[start:stop]

    def slot(self, key: int) -> Slot | None:
        """The slot of this key, if it is still there."""
        return self._by_key.get(key)

    def call_slot(self, call_id: str) -> Slot | None:
        """The slot that holds this call."""
        return self._by_call.get(call_id)

    def set_call(self, slot: Slot, call: ToolCall) -> None:
        """The slot holds this call now."""
        if slot.call is not None and slot.call.id != call.id:
            del self._by_call[slot.call.id]
        self._by_call[call.id] = slot
        slot.call, slot.frozen = call, None

    def drop_call(self, slot: Slot) -> None:
        """The slot holds no call any more."""
        assert slot.call is not None
        del self._by_call[slot.call.id]
        slot.call, slot.frozen = None, None

    def freeze(self) -> Message:
        """The message as it is now."""
        parts = tuple(slot.freeze() for slot in self.slots)
        return Message(self.role, parts, self.id, self.metadata, self.finish_reason, self.aborted)
