"""The items of a run that are compared: `run_items`. `toolcall_nb.runs.item_pairs` pairs those of two runs.

An item is the run itself, a message, or a part of one. Two items are equal here if they have the same fingerprint: a
call's name and arguments, a text's words. Ids, times and hashes within arguments are masked in it, since they change
with each run. Results never count: two runs of the same calls with other results have the same fingerprints.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Struct

from toolcall_nb.core.comparison import ItemKind
from toolcall_nb.core.events import MISSING, Json
from toolcall_nb.core.json_text import json_text
from toolcall_nb.core.steps import steps_by_run
from toolcall_nb.core.transcript import Message, Part, ReasoningPart, Role, TextPart, ToolCall, Transcript
from toolcall_nb.core.usage import USAGE_FIELDS

TIME_OF_DAY = r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.]*(?:Z|[+-]\d\d:?\d\d)?"
VOLATILE = re.compile(
    r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"  # a UUID
    rf"|{TIME_OF_DAY}"
    r"|\b(?:call|toolu|chatcmpl|msg|resp|run|req)[_-][A-Za-z0-9]{12,}\b"  # an id of a provider
    r"|\b[0-9a-f]{32,64}\b",  # a hash
    re.IGNORECASE,
)
"""Ids, times and hashes within a text."""

_WORD = re.compile(r"\w+")
_WORDS = 64
"""The most words of an item that are compared."""
_LONGEST = 20_000
"""The most characters in which words are looked for."""
_NOT_COMPARED = frozenset({"id", "source_id", "provider_metadata", "parts", "parent", "step_starts"})
"""Fields that hold ids, or say what else is an item."""


class RunItem(Struct, eq=False):
    """One item of a run. ``number`` counts the items of its kind, from 1; ``parent`` is the position of another item.

    ``turn`` numbers the calls that ran side by side; it is None for a call that ran by itself, as far as its times say.
    """

    kind: ItemKind
    name: str
    number: int
    role: Role | None
    value: Part | Message | Transcript
    fingerprint: str
    words: frozenset[str]
    parent: int | None = None
    turn: int | None = None


def run_items(transcript: Transcript, *, has_text: bool = True) -> list[RunItem]:
    """Returns the run, its messages and their parts, in order. Without ``has_text``, texts are left out."""
    items = [_item("run", "run", None, transcript, "run")]
    for message in transcript.messages:
        items.append(_item("message", message.role, message.role, message, _canonical(compared_fields(message))))
        for part in message.parts:
            if has_text or not isinstance(part, TextPart | ReasoningPart):
                items.append(_part_item(part, message.role))
    numbers: Counter[str] = Counter()
    for item in items:
        numbers[item.kind] += 1
        item.number = numbers[item.kind]
    _set_parents(items)
    _set_turns(items)
    return items


def _part_item(part: Part, role: Role) -> RunItem:
    match part:
        case ToolCall():
            arguments = part.input_text if part.input is MISSING else part.input
            return _item("call", part.name, role, part, VOLATILE.sub("*", _canonical(arguments)))
        case TextPart():
            return _item("text", role, role, part, " ".join(part.text.split()))
        case ReasoningPart():
            return _item("reasoning", role, role, part, " ".join(part.text.split()))
        case _:
            return _item("part", type(part).__name__, role, part, _canonical(compared_fields(part)))


def _item(kind: ItemKind, name: str, role: Role | None, value: Any, content: str) -> RunItem:
    text = f"{kind}\n{name}\n{role}\n{content}" if kind != "call" else f"{kind}\n{name}\n{content}"
    fingerprint = sha256(text.encode("utf-8", "replace")).hexdigest()
    return RunItem(kind, name, 0, role, value, fingerprint, _words(content))


def _words(content: str) -> frozenset[str]:
    """Returns the words, or of many a sample that is the same for the same words."""
    words = set(_WORD.findall(content[:_LONGEST]))
    if len(words) > _WORDS:
        words = set(sorted(words, key=lambda word: (crc32(word.encode("utf-8", "replace")), word))[:_WORDS])
    return frozenset(words)


def _canonical(value: Json) -> str:
    """Returns a JSON value as text that does not depend on the order of keys."""
    try:
        return msgspec.json.encode(value, order="deterministic").decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return json_text(value)


def compared_fields(value: Message | Part) -> dict[str, Any]:
    """Returns the fields of a message, or of a part that is no call, without ids, parts, tokens and costs."""
    names = [name for name in value.__struct_fields__ if name not in _NOT_COMPARED]
    fields = {name: getattr(value, name) for name in names if getattr(value, name) is not None}
    if isinstance(value, Message):
        fields["metadata"] = {key: item for key, item in value.metadata.items() if key not in USAGE_FIELDS}
    return fields


def _set_parents(items: Sequence[RunItem]) -> None:
    """Sets the position of each part's parent. A parent that is missing, or inside the call itself, is None."""
    positions = {item.value.id: position for position, item in enumerate(items) if isinstance(item.value, ToolCall)}
    parents = [
        None if isinstance(item.value, Message | Transcript) else positions.get(item.value.parent or "")
        for item in items
    ]
    is_clear = [parent is None for parent in parents]
    for start in range(len(items)):
        path: set[int] = set()
        position: int | None = start
        while position is not None and not is_clear[position]:
            if position in path:  # a circle, which is opened here
                parents[position] = None
                break
            path.add(position)
            position = parents[position]
        for each in path:
            is_clear[each] = True
    for item, parent in zip(items, parents, strict=True):
        item.parent = parent


def _set_turns(items: Sequence[RunItem]) -> None:
    """Numbers the turns: calls of the same step, or whose times overlap, with no text between them."""
    turns: dict[int | None, list[int]] = {}  # the calls of the last turn, by parent
    steps: dict[str, int] = {}
    ends: dict[int | None, float] = {}
    for position, item in enumerate(items):
        if isinstance(item.value, Message):
            turns, ends = {}, {}
            runs = {start.parent for start in item.value.step_starts}
            by_run = steps_by_run(item.value) if runs else {}
            listed = [step for run, of_run in by_run.items() if run in runs for step in of_run]
            steps = {call.id: number for number, step in enumerate(listed) for call in step.calls}
        elif not isinstance(item.value, ToolCall):
            turns.pop(item.parent, None)
        else:
            call, turn = item.value, turns.get(item.parent)
            end = call.started + call.seconds if call.started is not None and call.seconds is not None else None
            step, last_end = steps.get(call.id), ends.get(item.parent)
            last = items[turn[-1]].value if turn else None
            is_same_step = step is not None and isinstance(last, ToolCall) and steps.get(last.id) == step
            overlaps = last_end is not None and call.started is not None and call.started < last_end
            if turn and (is_same_step or overlaps):
                turn.append(position)
            else:
                turns[item.parent] = turn = [position]
                ends.pop(item.parent, None)
            if end is not None:
                ends[item.parent] = max(end, ends.get(item.parent, end))
            if len(turn) > 1:
                items[turn[0]].turn = item.turn = turn[0]
