"""Compares JSON values for tests: `fits` says whether one is as expected, `value_differences` where it is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from toolcall_nb.core.events import MISSING, Json

_MAX_SHOWN = 200
"""The most characters of a value that are shown."""


class ValueDifference(NamedTuple):
    """A place where two values differ. A value that is missing on one side is `MISSING`."""

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
    """Yields the places where a value is not as expected, by path, as in ``filters[0].name``."""
    if fits(expected, actual, allow_more=allow_more):
        return
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected if allow_more else dict.fromkeys([*expected, *actual]):
            place = f"{path}.{key}" if path else f"{key}"
            one, other = expected.get(key, MISSING), actual.get(key, MISSING)
            yield from value_differences(one, other, place, allow_more=allow_more)
    elif isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        for number, (one, other) in enumerate(zip_longest(expected, actual, fillvalue=MISSING)):
            yield from value_differences(one, other, f"{path}[{number}]", allow_more=allow_more)
    else:
        yield ValueDifference(path, expected, actual)


def difference_lines(
    differences: Iterator[ValueDifference], words: tuple[str, str] = ("expected", "actual"), most: int = 10
) -> Iterator[str]:
    """Yields lines that show the first differences: of texts, the first line that differs."""
    found = list(islice(differences, most + 1))
    width = max(map(len, words)) + 1
    for path, expected, actual in found[:most]:
        where, shown = path or "the value", [_shown(expected), _shown(actual)]
        if isinstance(expected, str) and isinstance(actual, str):
            number, *shown = _first_lines(expected.split("\n"), actual.split("\n"))
            where += f", line {number}" if "\n" in expected + actual else ""
        yield f"{where}:"
        yield from (f"  {f'{word}:':<{width}} {text}" for word, text in zip(words, shown, strict=True))
    if len(found) > most:
        yield "There are more differences."


def _first_lines(expected: Sequence[str], actual: Sequence[str]) -> tuple[int, str, str]:
    """Returns the number of the first line that differs, and the line of each side, or the part of it that differs."""
    lines = enumerate(zip_longest(expected, actual, fillvalue=MISSING), 1)
    number, (one, other) = next((number, pair) for number, pair in lines if pair[0] != pair[1])
    if not isinstance(one, str) or not isinstance(other, str):
        return number, _shown(one), _shown(other)
    same = next((n for n, pair in enumerate(zip_longest(one, other)) if pair[0] != pair[1]), 0)
    start = max(0, same - _MAX_SHOWN // 4)
    if max(len(one), len(other)) <= _MAX_SHOWN or not start:
        return number, _shown(one), _shown(other)
    return number, f"… {_shown(one[start:])}", f"… {_shown(other[start:])}"


def _shown(value: Any) -> str:
    if value is MISSING:
        return "(nothing)"
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}… ({len(text):,} characters)"
