"""The steps of a message, `steps_of`, and the calls inside calls: what ran where, as every writer needs it.

A step is one request to the model and its reply. A message's `StepStart` values say where its steps begin, and in which
call, where one belongs to a nested run. Without one, its steps are evident: text or reasoning that follows a call of
the program's own tools was written with the results of the calls, so it begins the next step.

`unique_call_id` gives the calls of a transcript ids of their own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from toolcall_nb.core.events import Object
from toolcall_nb.core.parts import Part, ReasoningPart, StepStart, TextPart, ToolCall

if TYPE_CHECKING:
    from toolcall_nb.core.transcript import Message


class Step(NamedTuple):
    """One request to the model: the ``parts`` of its reply, and what is known of it. Unknown values are None."""

    parts: tuple[Part, ...]
    start: StepStart

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the reply."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def text(self) -> str:
        """The texts of the reply, joined by blank lines."""
        return "\n\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def agent(self) -> str | None:
        """The agent that made the request."""
        return self.start.agent

    @property
    def model(self) -> str | None:
        """The model that replied."""
        return self.start.model

    @property
    def usage(self) -> Object | None:
        """The tokens, under the names of `toolcall_nb.core.usage.TOKEN_COUNTS`."""
        return self.start.usage

    @property
    def finish_reason(self) -> str:
        """The reason why the reply ended; ``tool-calls`` or ``stop`` for an ordinary end."""
        is_called = any(not call.provider_executed for call in self.calls)
        return self.start.finish_reason or ("tool-calls" if is_called else "stop")

    @property
    def response_id(self) -> str | None:
        """The provider's id of the reply."""
        return self.start.response_id

    @property
    def started(self) -> float | None:
        """The time of the request, in seconds since the start of the run."""
        return self.start.record.started

    @property
    def seconds(self) -> float | None:
        """The time from the request to the end of the step, in seconds; a chat's step ends when its calls have."""
        return self.start.record.seconds


def steps_of(message: Message, parent: str | None = None) -> tuple[Step, ...]:
    """Returns the steps of the message, or those of the run inside the call ``parent``; none if there is nothing.

    Of a message with one step, the message's metadata say the model, the usage and the response id, where the step does
    not.
    """
    starts = [start for start in message.step_starts if start.parent == parent]
    return _steps(message, parent, _levels(message.parts).get(parent, []), starts)


def steps_by_run(message: Message) -> dict[str | None, tuple[Step, ...]]:
    """Returns the steps of the message, at None, and those of the run inside each call that has one, by its id."""
    levels = _levels(message.parts)
    starts: dict[str | None, list[StepStart]] = {}
    for start in message.step_starts:
        starts.setdefault(start.parent, []).append(start)
    runs = dict.fromkeys((None, *levels, *starts))
    return {parent: _steps(message, parent, levels.get(parent, []), starts.get(parent, [])) for parent in runs}


def _steps(message: Message, parent: str | None, numbers: Sequence[int], starts: list[StepStart]) -> tuple[Step, ...]:
    parts = [message.parts[number] for number in numbers]
    starts = starts or [StepStart(at=numbers[index], parent=parent) for index in _evident_places(parts)]
    if not starts:
        return ()
    places = [bisect_left(numbers, start.at) for start in starts]
    steps = [
        Step(tuple(parts[first:end]), start)
        for start, (first, end) in zip(starts, pairwise([*places, len(parts)]), strict=True)
    ]
    if len(steps) == 1 and parent is None and message.role == "assistant":
        model, usage, name = (message.metadata.get(key) for key in ("model", "usage", "responseId"))
        start = replace(
            starts[0],
            model=starts[0].model or (model if isinstance(model, str) else None),
            usage=starts[0].usage or (usage if isinstance(usage, dict) else None),
            finish_reason=starts[0].finish_reason or message.finish_reason,
            response_id=starts[0].response_id or (name if isinstance(name, str) else None),
        )
        return (Step(steps[0].parts, start),)
    return tuple(steps)


def without_nested(message: Message) -> Message:
    """Returns the message without what ran inside its calls."""
    kept = _levels(message.parts).get(None, [])
    if len(kept) == len(message.parts):
        return message
    starts = [_at(start, bisect_left(kept, start.at)) for start in message.step_starts if start.parent is None]
    return replace(message, parts=tuple(message.parts[number] for number in kept), step_starts=tuple(starts))


def normal_step_starts(parts: Sequence[Part], starts: Iterable[StepStart]) -> tuple[StepStart, ...]:
    """Returns the starts in the one form that says the same: none where the steps are evident and no more is known.

    Each is at a part of its own run. An empty step of which nothing is known is left out. Where there are any, the
    first part of the message begins a step.
    """
    by_run: dict[str | None, list[StepStart]] = {}
    for start in sorted(starts, key=lambda each: each.at):
        by_run.setdefault(start.parent, []).append(start)
    kept: list[StepStart] = []
    levels = _levels(parts) if by_run else {}
    for parent, of_run in by_run.items():
        kept += _normal_starts(parts, levels.get(parent, []), of_run, is_nested=parent is not None)
    return tuple(sorted(kept, key=lambda start: (start.at, start.parent or "")))


def _normal_starts(
    parts: Sequence[Part], numbers: Sequence[int], starts: Sequence[StepStart], *, is_nested: bool
) -> list[StepStart]:
    places = [*numbers, len(parts)]
    placed = [_at(start, places[bisect_left(numbers, start.at)]) for start in starts]
    last = StepStart(at=len(parts))
    are_known = [start.is_known for start in placed]
    pairs = zip(pairwise([*placed, last]), are_known, strict=True)
    kept = [start for (start, after), is_known in pairs if is_known or start.at < after.at]
    if not is_nested and not any(are_known):
        begun = [start.at for start in kept]
        if begun[:1] != numbers[:1]:
            begun = [*numbers[:1], *begun]
        if begun == [numbers[index] for index in _evident_places([parts[number] for number in numbers])]:
            return []
    if kept and numbers and kept[0].at > numbers[0] and not is_nested:
        kept.insert(0, StepStart(at=numbers[0]))
    return kept


def _at(start: StepStart, number: int) -> StepStart:
    return start if start.at == number else replace(start, at=number)


def _evident_places(parts: Iterable[Part]) -> Iterator[int]:
    """Yields the numbers of the parts that begin a step, where nothing says so: text after calls does."""
    was_called = False
    for number, part in enumerate(parts):
        if number == 0 or (was_called and type(part) in (TextPart, ReasoningPart)):
            yield number
            was_called = False
        if type(part) is ToolCall and not part.provider_executed:
            was_called = True


_parent = attrgetter("parent")


def _levels(parts: Sequence[Part]) -> dict[str | None, list[int]]:
    """Returns the numbers of the parts of the run itself, at None, and of the run inside each call.

    A part whose parent is none of the calls before it belongs to the run itself.
    """
    if not any(map(_parent, parts)):  # as most are
        return {None: list(range(len(parts)))}
    calls: set[str] = set()
    levels: dict[str | None, list[int]] = {}
    for number, part in enumerate(parts):
        around = part.parent
        levels.setdefault(around if around in calls else None, []).append(number)
        if isinstance(part, ToolCall):
            calls.add(part.id)
    return levels


# The ids of calls -------------------------------------------------------------------------------------------------


def unique_call_id(call_id: str, taken: Container[str]) -> str:
    """Returns an id that is not taken: this one, or this one with a number after it."""
    unique, number = call_id, 2
    while unique in taken:
        unique = f"{call_id}-{number}"
        number += 1
    return unique


def unique_calls(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Returns the messages; of calls with one id, the later ones get new ids, and keep theirs as ``provider_id``."""
    ids = [call.id for message in messages for call in message.calls]
    if len(set(ids)) == len(ids):
        return tuple(messages)
    taken: set[str] = set()
    changed: list[Message] = []
    for message in messages:
        renamed: dict[str, str] = {}
        parts = []
        for part in message.parts:
            part = _below(part, renamed)
            if isinstance(part, ToolCall):
                unique = unique_call_id(part.id, taken)
                taken.add(unique)
                renamed[part.id] = unique
                if unique != part.id:
                    part = replace(part, id=unique, provider_id=part.provider_id or part.id)
            parts.append(part)
        starts = tuple(
            replace(start, parent=renamed.get(start.parent, start.parent)) if start.parent else start
            for start in message.step_starts
        )
        changed.append(replace(message, parts=tuple(parts), step_starts=starts))
    return tuple(changed)


def _below(part: Part, renamed: dict[str, str]) -> Part:
    """Returns the part with the new id of the call that it is inside of."""
    parent = renamed.get(part.parent) if part.parent is not None else None
    if parent is None or parent == part.parent:
        return part
    if isinstance(part, ToolCall):
        return replace(part, tool_metadata={**(part.tool_metadata or {}), "parent": parent})
    return replace(part, parent=parent)
