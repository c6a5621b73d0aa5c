"""From the deltas of any provider to well-formed events: what every adapter is made of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Json, Object
from toolcall_nb.core.text import well_formed

__all__ = ["NO_JSON", "Assembler", "usage_of"]

NO_JSON = "The arguments of a tool call are no valid JSON."
_MOST = 2**53


class _Block(Struct):
    is_text: bool
    key: Any
    id: str
    metadata: Object = field(default_factory=dict)
    after: list[Event] = field(default_factory=list)


class _Call(Struct):
    id: str
    name: str
    about: Object
    written: list[str] = field(default_factory=list)
    is_whole: bool = False
    has_ended: bool = False


class Assembler:
    """Collects one message. Each method gives the events that the news amount to; `close` ends what is open.

    One block of text or reasoning grows at a time; one under another ``key``, or of the other kind, ends it. Only
    thoughts that were begun with `thought` stay open beside each other until anything else comes. Calls are known by a
    ``key`` of the provider's choosing (an index, an id), any number beside each other, and their arguments are JSON
    text that grows, or a value. A call without an id gets ``call_N``, and one with the id of another call gets a new
    one: no call is lost. ``reason`` and ``metadata`` go into ``finish``.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self.metadata: Object = {}
        self._has_begun = False
        self._has_ended = False
        self._block: _Block | None = None
        self._thoughts: dict[Any, _Block] = {}  # further open blocks of reasoning, by their keys
        self._blocks = 0
        self._calls: dict[Any, _Call] = {}
        self._by_id: dict[str, list[_Call]] = {}  # by the id that was given, and by our own

    # The message

    def start(self, message_id: str | None = None, role: str | None = None) -> list[Event]:
        """The message begins; a second time, nothing. Whatever comes first begins it too."""
        if self._has_begun:
            return []
        self._has_begun = True
        return [ev.Start(message_id=message_id, role=role)]

    def close(self) -> list[Event]:
        """The message is over: the ends of what is open, and ``finish``. A second time, nothing."""
        if self._has_ended:
            return []
        ends = [*self.start(), *self.end_block(), *self.end_calls()]
        self._has_ended = True
        return [*ends, ev.Finish(finish_reason=self.reason, message_metadata=self.metadata or None)]

    def other(self, event: Event) -> list[Event]:
        """A source, a file, an error, a step: what stands between the blocks."""
        return [*self.start(), *self.end_block(), event]

    # Text and reasoning

    def text(self, delta: str, key: Any = None, *, opens: bool = False) -> list[Event]:
        """More text. Empty, it begins a block only with ``opens``: for a provider's metadata that has no text."""
        return self._grow(True, delta, key, None, opens=opens)

    def reasoning(self, delta: str, key: Any = None, metadata: Object | None = None) -> list[Event]:
        """More reasoning. Empty, it begins a block: for what a provider keeps to itself, with its ``metadata``."""
        return self._grow(False, delta, key, metadata)

    def thought(self, delta: str, key: Any) -> list[Event]:
        """More reasoning of one of several thoughts, each of which may grow or be annotated until something else comes.

        A provider may sign the first thought once the last has come.
        """
        if self._block is not None and not self._block.is_text and self._block.key != key:
            self._thoughts[self._block.key] = self._block
            self._block = self._thoughts.pop(key, None)
        return self._grow(False, delta, key, None)

    @property
    def is_reasoning(self) -> bool:
        """Whether reasoning is open."""
        return self._block is not None and not self._block.is_text

    @property
    def is_text(self) -> bool:
        """Whether text is open."""
        return self._block is not None and self._block.is_text

    @property
    def open_key(self) -> Any:
        """The key of the block that is open; None where none is."""
        return None if self._block is None else self._block.key

    def end_block(self, metadata: Object | None = None) -> list[Event]:
        """The text or the reasoning that is open is complete, and so are the thoughts beside it."""
        thoughts, self._thoughts = self._thoughts, {}
        ends: list[Event] = [ev.ReasoningEnd(one.id, one.metadata or None) for one in thoughts.values()]
        block, self._block = self._block, None
        if block is None:
            return ends
        known = {**block.metadata, **(metadata or {})} or None
        return [*ends, (ev.TextEnd if block.is_text else ev.ReasoningEnd)(block.id, known), *block.after]

    def annotate(self, metadata: Object) -> list[Event]:
        """Metadata of the block that is open, told at its end; where none is, an empty reasoning holds it."""
        if self._block is not None:
            self._block.metadata.update(metadata)
            return []
        return [*self.reasoning("", object(), metadata), *self.end_block()]

    def annotate_block(self, key: Any, metadata: Object) -> None:
        """Metadata of the open block with this key, told at its end; of one that is not open, nothing."""
        block = self._block if self._block is not None and self._block.key == key else self._thoughts.get(key)
        if block is not None:
            block.metadata.update(metadata)

    def after_block(self, event: Event) -> list[Event]:
        """A source of the text that is open, told once that has ended, which it must not break; or at once."""
        if self._block is None:
            return self.other(event)
        self._block.after.append(event)
        return []

    def _grow(
        self, is_text: bool, delta: str, key: Any, metadata: Object | None, *, opens: bool = False
    ) -> list[Event]:
        found = self.start()
        if self._block is None or (self._block.is_text, self._block.key) != (is_text, key):
            if not delta and is_text and not opens:
                return found
            found += self.end_block() if is_text or self._block is not None else []
            self._blocks += 1
            self._block = _Block(is_text, key, f"{'text' if is_text else 'reasoning'}-{self._blocks}")
            found.append((ev.TextStart if is_text else ev.ReasoningStart)(self._block.id, metadata))
        if delta:
            found.append((ev.TextDelta if is_text else ev.ReasoningDelta)(self._block.id, delta))
        return found

    # Tool calls

    def begin_call(self, key: Any, call_id: str | None, name: str, **about: Any) -> list[Event]:
        """A call begins; one that is known under ``key``, nothing. ``about``: the further fields of its start."""
        if key in self._calls:
            return []
        call = self._calls[key] = _Call(self._own_id(call_id), name, about)
        self._know(call, call_id)
        return [*self.start(), *self.end_block(), ev.ToolInputStart(call.id, name, **about)]

    def arguments(self, key: Any, delta: str) -> list[Event]:
        """The JSON text of the arguments grows; of a call that is not known, nothing."""
        call = self._calls.get(key)
        if call is None or call.is_whole or not delta:
            return []
        call.written.append(delta)
        return [ev.ToolInputDelta(call.id, delta)]

    def written(self, key: Any) -> str:
        """What was written of the arguments so far."""
        call = self._calls.get(key)
        return "" if call is None else "".join(call.written)

    def describe_call(self, key: Any, name: str | None = None, **about: Any) -> None:
        """What turns out later of a call: its whole name, metadata. Told when its arguments are complete."""
        call = self._calls.get(key)
        if call is not None:
            call.name = name or call.name
            call.about = {**call.about, **{field: value for field, value in about.items() if value is not None}}

    def grow_name(self, key: Any, more: str) -> None:
        """More of a call's name, which may come in pieces, or whole with each piece: then it adds nothing.

        A name is whole when the arguments begin.
        """
        call = self._calls.get(key)
        if call is not None and more != call.name and not call.written and not call.is_whole:
            call.name += more

    def rewrite_call(self, key: Any) -> list[Event]:
        """The arguments start over; of a call that is complete, or not known, nothing."""
        call = self._calls.get(key)
        if call is None or call.is_whole:
            return []
        call.written.clear()
        return [ev.ToolInputStart(call.id, call.name, **call.about)]

    def end_call(self, key: Any, given: Json = MISSING) -> list[Event]:
        """The arguments are complete: ``given``, or what was written; nothing written stands for no arguments."""
        call = self._calls.get(key)
        if call is None or call.is_whole:
            return []
        call.is_whole = True
        if given is not MISSING:
            return [ev.ToolInputAvailable(call.id, call.name, given, **call.about)]
        text = well_formed("".join(call.written))
        try:
            value = json.loads(text) if text.strip() else {}
        except (ValueError, RecursionError):
            call.has_ended = True
            return [ev.ToolInputError(call.id, call.name, text, NO_JSON, **call.about)]
        return [ev.ToolInputAvailable(call.id, call.name, value, **call.about)]

    def end_calls(self) -> list[Event]:
        """The arguments of all calls are complete."""
        return [event for key in list(self._calls) for event in self.end_call(key)]

    def output(self, call_id: str, value: Json, **about: Any) -> list[Event]:
        """What a call gave; of one that is not known or has ended, nothing."""
        return self.outcome(call_id, ev.ToolOutputAvailable(call_id, value, **about))

    def failure(self, call_id: str, error: str, **about: Any) -> list[Event]:
        """How a call failed; of one that is not known or has ended, nothing."""
        return self.outcome(call_id, ev.ToolOutputError(call_id, error, **about))

    def outcome(self, call_id: str, event: Any) -> list[Event]:
        """How a call ended, whatever the event; of one that is not known or has ended, nothing.

        Of several calls that were given this id, the first that is open has ended, and the event gets its own id.
        """
        call = next((call for call in self._by_id.get(call_id, []) if not call.has_ended), None)
        if call is None:
            return []
        call.has_ended = not getattr(event, "preliminary", None)
        return [event if event.tool_call_id == call.id else replace(event, tool_call_id=call.id)]

    def rename_call(self, key: Any, call_id: str) -> list[Event]:
        """The call turns out to have this id, unless another call has it; it keeps what it has by now."""
        call = self._calls.get(key)
        if call is None or any(known is call for known in self._by_id.get(call_id, [])) or call.has_ended:
            return []
        old, call.id = call.id, self._own_id(call_id)
        self._know(call, call_id)
        return [ev.ToolRetracted(old, successor=call.id)]

    def open_call(self, name: str | None = None) -> str | None:
        """The id of the first call, of all or of those with this name, that has not ended."""
        calls = (call for call in self._calls.values() if not call.has_ended and name in (None, call.name))
        return next((call.id for call in calls), None)

    def knows(self, call_id: str) -> bool:
        """Whether a call with this id has begun."""
        return call_id in self._by_id

    def id_of(self, key: Any) -> str | None:
        """The id of the call that is known under ``key``."""
        call = self._calls.get(key)
        return None if call is None else call.id

    def name_of(self, key: Any) -> str:
        """The name, as far as it is known, of the call that is known under ``key``; empty where none is."""
        call = self._calls.get(key)
        return "" if call is None else call.name

    def _know(self, call: _Call, given: str | None) -> None:
        for name in {call.id, given or call.id}:
            self._by_id.setdefault(name, []).append(call)

    def _own_id(self, given: str | None) -> str:
        number = 2 if given else 1
        own = given or "call_1"
        while own in self._by_id:
            own = f"{given}-{number}" if given else f"call_{number}"
            number += 1
        return own


def usage_of(reported: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, int]:
    """A provider's counts under our names: ``names`` gives ours by theirs, ``a.b`` for one within another.

    Ours are ``inputTokens`` (with what was cached), ``outputTokens`` (with reasoning), ``totalTokens``,
    ``cachedInputTokens``, ``cacheWriteTokens``, ``reasoningTokens``. What is no count is left out; several of theirs
    under one of ours add up.
    """
    counts: dict[str, int] = {}
    for path, own in names.items():
        for count in _counts_at(reported, path.split(".")):
            counts[own] = counts.get(own, 0) + count
    return counts


def _counts_at(reported: Any, path: list[str]) -> Iterator[int]:
    for name in path:
        reported = reported.get(name) if isinstance(reported, Mapping) else None
    if isinstance(reported, int | float) and not isinstance(reported, bool) and 0 <= reported < _MOST:
        yield int(reported)
