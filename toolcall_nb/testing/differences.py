"""Compares values, requests and transcripts for tests, and says in lines where they differ.

`fits` says whether a JSON value is as expected, `value_differences` where it is not. `explain_request` and
`explain_call` say why a replay is not the recorded run, `compare_transcripts` why two transcripts are not equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from toolcall_nb.core.escaping import visible
from toolcall_nb.core.events import MISSING, Json, Object
from toolcall_nb.core.transcript import Message, ToolCall, Transcript

_MAX_LISTED = 10
"""The most differences that are listed."""
_MAX_SHOWN = 200
"""The most characters of a value that are shown."""


class ValueDifference(NamedTuple):
    """The path at which two values differ. A value that is missing on one side is `MISSING`."""

    path: str
    expected: Json
    actual: Json


def fits(expected: Any, actual: Json, *, allow_more: bool = False) -> bool:
    """Whether a JSON value is as expected. With ``allow_more``, its objects may have more fields.

    The expected value may have objects of its own in it that compare as they like, such as `unittest.mock.ANY` and
    `pytest.approx`. As in JSON, true is not 1.
    """
    if expected is actual:  # NaN is equal to nothing
        return True
    if isinstance(expected, dict) and isinstance(actual, dict):
        if not allow_more and expected.keys() != actual.keys():
            return False
        return all(key in actual and fits(item, actual[key], allow_more=allow_more) for key, item in expected.items())
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        return len(expected) == len(actual) and all(
            fits(one, other, allow_more=allow_more) for one, other in zip(expected, actual, strict=True)
        )
    if isinstance(expected, bool | int | float) and isinstance(actual, bool | int | float):
        return isinstance(expected, bool) is isinstance(actual, bool) and expected == actual
    return bool(expected == actual)


def value_differences(
    expected: Any, actual: Json, path: str = "", *, allow_more: bool = False
) -> Iterator[ValueDifference]:
    """Yields where a value is not as expected, by path, as in ``filters[0].name``."""
    if fits(expected, actual, allow_more=allow_more):
        return
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected if allow_more else dict.fromkeys([*expected, *actual]):
            inner = f"{path}.{key}" if path else f"{key}"
            one, other = expected.get(key, MISSING), actual.get(key, MISSING)
            yield from value_differences(one, other, inner, allow_more=allow_more)
    elif isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        for number, (one, other) in enumerate(zip_longest(expected, actual, fillvalue=MISSING)):
            yield from value_differences(one, other, f"{path}[{number}]", allow_more=allow_more)
    else:
        yield ValueDifference(path, expected, actual)


def difference_lines(
    differences: Iterator[ValueDifference], words: tuple[str, str] = ("expected", "actual")
) -> Iterator[str]:
    """Yields lines that show the first differences: of texts, the first line that differs."""
    first = list(islice(differences, _MAX_LISTED + 1))
    width = max(map(len, words)) + 1
    for path, expected, actual in first[:_MAX_LISTED]:
        where, sides = path or "the value", [_shortened(expected), _shortened(actual)]
        if isinstance(expected, str) and isinstance(actual, str):
            number, *sides = _first_lines(expected.split("\n"), actual.split("\n"))
            where += f", line {number}" if "\n" in expected + actual else ""
        yield f"{where}:"
        yield from (f"  {f'{word}:':<{width}} {text}" for word, text in zip(words, sides, strict=True))
    if len(first) > _MAX_LISTED:
        yield "There are more differences."


def _first_lines(expected: Sequence[str], actual: Sequence[str]) -> tuple[int, str, str]:
    """Returns the number of the first line that differs, and the line of each side, or the part of it that differs."""
    lines = enumerate(zip_longest(expected, actual, fillvalue=MISSING), 1)
    number, (one, other) = next((number, pair) for number, pair in lines if pair[0] != pair[1])
    if not isinstance(one, str) or not isinstance(other, str):
        return number, _shortened(one), _shortened(other)
    same = next((n for n, pair in enumerate(zip_longest(one, other)) if pair[0] != pair[1]), 0)
    start = max(0, same - _MAX_SHOWN // 4)
    if max(len(one), len(other)) <= _MAX_SHOWN or not start:
        return number, _shortened(one), _shortened(other)
    return number, f"… {_shortened(one[start:])}", f"… {_shortened(other[start:])}"


def _shortened(value: Any) -> str:
    if value is MISSING:
        return "(nothing)"
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}… ({len(text):,} characters)"


# Requests and calls -----------------------------------------------------------------------------------------

_MAX_COUNTED = 200
"""The most differences by which it is decided which recorded request is the nearest."""
_SIDES = ("recorded", "now")


def explain_request(request: Object, recorded: Sequence[Object], index: int) -> Iterator[str]:
    """Yields the lines of the message for a request that is not the recorded one with this index, counted from 0."""
    number = index + 1
    same = [n for n, body in enumerate(recorded, 1) if body == request]
    if same:
        listed = " and ".join(map(str, same))
        yield f"Request {number} was recorded as request {listed}: requests come in another order, or once more."
        if index < len(recorded):
            yield f"Recorded as request {number}: {last_text(recorded[index])}"
        return
    if index >= len(recorded):
        count = f"{len(recorded)} request{'' if len(recorded) == 1 else 's'}"
        yield f"Request {number} was not recorded: the cassette has {count}. Its last message is: {last_text(request)}"
        return
    distances = [_distance(body, request) for body in recorded]
    nearest = distances.index(min(distances))
    nearest = nearest if 2 * distances[nearest] < distances[index] else index
    yield f"Request {number} is not the one that was recorded."
    if nearest != index:
        yield f"The recorded request that is most like it is number {nearest + 1}; number {number} would be next."
    yield from (f"  {line}" for line in difference_lines(value_differences(recorded[nearest], request), _SIDES))


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
    text = part.get("text") or (f"result of {part['call']}" if "call" in part else next(iter(part)))
    line = visible(" ".join(f"{text}".split()))
    return f"{messages[-1]['role']}: {line if len(line) <= 80 else line[:80] + '…'}"


def _distance(one: Json, other: Json) -> int:
    """The size of the differences, in values."""
    differences = islice(value_differences(one, other), _MAX_COUNTED)
    return sum(_size(each.expected) + _size(each.actual) for each in differences)


def _size(value: Json) -> int:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 1 if items is None else 1 + sum(map(_size, items))


# Transcripts ------------------------------------------------------------------------------------------------


def compare_transcripts(one: object, other: object) -> list[str] | None:
    """Returns a heading and the lines that differ; None for values that are no transcripts, messages or calls."""
    if type(one) is not type(other) or not isinstance(one, Transcript | Message | ToolCall):
        return None
    transcripts = _transcript_of(one), _transcript_of(other)
    one_lines, other_lines = (each.to_markdown().splitlines() for each in transcripts)
    lines = [*map(visible, unified_diff(other_lines, one_lines, n=2, lineterm=""))][2:]  # without the names of files
    kind = type(one).__name__.lower().replace("toolcall", "tool call")
    heading = f"The two {kind}s are not equal ({' == '.join(map(_count, transcripts))})"
    return [heading, "+ is only on the left of ==, - only on the right", *lines]


def _transcript_of(value: Any) -> Transcript:
    if isinstance(value, ToolCall):
        value = Message("assistant", (value,))
    return Transcript((value,)) if isinstance(value, Message) else value


def _count(transcript: Transcript) -> str:
    calls = sum(len(message.calls) for message in transcript.messages)
    return f"{len(transcript.messages)} messages, {calls} tool calls"
