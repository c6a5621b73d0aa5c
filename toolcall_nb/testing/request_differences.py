"""Explains why a request or a tool call is not the recorded one: `explain_request`, `explain_call`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from toolcall_nb.core.escaping import visible
from toolcall_nb.core.events import Json, Object
from toolcall_nb.testing.value_differences import difference_lines, value_differences

_MAX_COUNTED = 200
"""The most differences by which it is decided which recorded request is the nearest."""
_SIDES = ("recorded", "now")


def explain_request(asked: Object, recorded: Sequence[Object], place: int) -> Iterator[str]:
    """Yields the lines of the message for a request that is not the recorded one at this place, counted from 0."""
    number = place + 1
    same = [n for n, body in enumerate(recorded, 1) if body == asked]
    if same:
        listed = " and ".join(map(str, same))
        yield f"Request {number} was recorded as request {listed}: requests come in another order, or once more."
        if place < len(recorded):
            yield f"Recorded as request {number}: {last_text(recorded[place])}"
        return
    if place >= len(recorded):
        count = f"{len(recorded)} request{'' if len(recorded) == 1 else 's'}"
        yield f"Request {number} was not recorded: the cassette has {count}. Its last message is: {last_text(asked)}"
        return
    distances = [_distance(body, asked) for body in recorded]
    nearest = distances.index(min(distances))
    nearest = nearest if 2 * distances[nearest] < distances[place] else place
    yield f"Request {number} is not the one that was recorded."
    if nearest != place:
        yield f"The recorded request that is most like it is number {nearest + 1}; number {number} would be next."
    yield from (f"  {line}" for line in difference_lines(value_differences(recorded[nearest], asked), _SIDES))


def explain_call(name: str, arguments: Json, recorded: Sequence[Json]) -> Iterator[str]:
    """Yields the lines of the message for a tool call without a recorded result; ``recorded`` are the tool's inputs."""
    if not recorded:
        yield f"The tool {name!r} was called, and there is no recorded result of it that was not used."
        return
    yield f"The tool {name!r} was called with arguments for which there is no recorded result that was not used."
    nearest = min(recorded, key=lambda one: _distance(one, arguments))
    yield from (f"  {line}" for line in difference_lines(value_differences(nearest, arguments, "arguments"), _SIDES))


def last_text(body: Object) -> str:
    """Returns a line about the last message of a request, to recognise it by."""
    messages = body["messages"]
    if not messages:
        return "no message"
    part = messages[-1]["parts"][-1]
    shown = part.get("text") or (f"result of {part['call']}" if "call" in part else next(iter(part)))
    line = visible(" ".join(f"{shown}".split()))
    return f"{messages[-1]['role']}: {line if len(line) <= 80 else line[:80] + '…'}"


def _distance(one: Json, other: Json) -> int:
    """The size of the differences, in values."""
    differences = islice(value_differences(one, other), _MAX_COUNTED)
    return sum(_size(each.expected) + _size(each.actual) for each in differences)


def _size(value: Json) -> int:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 1 if items is None else 1 + sum(map(_size, items))
