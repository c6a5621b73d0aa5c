"""From bytes to what a target reads: text in which lone surrogates come up, JSON, and places to cut at.

The places follow from the bytes, so that an input is one thing, and the same each time it is run.
"""

from __future__ import annotations

import itertools
import json
import random
import zlib
from collections.abc import Iterator
from typing import Any, TypeVar

from toolcall_nb.core.events import Event, from_dict
from toolcall_nb.errors import WireError

__all__ = ["chunks_in", "in_pieces", "lines_of_json", "numbers", "text_of", "ways"]

Cuttable = TypeVar("Cuttable", str, bytes)

_MOST_CUTS = 6
_ONE_BY_ONE = 160


def text_of(data: bytes) -> str:
    """The bytes as UTF-8; each byte that is none stands as half a surrogate pair."""
    return data.decode("utf-8", "surrogateescape")


def numbers(data: bytes) -> random.Random:
    """Numbers that follow from the bytes."""
    return random.Random(zlib.crc32(data))


def in_pieces(value: Cuttable, data: bytes) -> list[Cuttable]:
    """The value cut at a few places that follow from ``data``."""
    draw = numbers(data)
    places: list[int] = sorted(draw.randint(0, len(value)) for _ in range(draw.randint(1, _MOST_CUTS)))
    edges: list[int] = [0, *places, len(value)]
    return [value[start:end] for start, end in itertools.pairwise(edges)]


def ways(value: Cuttable, data: bytes) -> Iterator[list[Cuttable]]:
    """Ways to cut the value: at a few places, and where it is short also everywhere."""
    yield in_pieces(value, data)
    if len(value) <= _ONE_BY_ONE:
        yield [value[place : place + 1] for place in range(len(value))]


def lines_of_json(text: str) -> list[Any]:
    """The values of those lines that are JSON; what is no number to JSON is a string."""
    found = []
    for line in text.split("\n"):
        try:
            found.append(json.loads(line, parse_constant=str))
        except (ValueError, RecursionError):
            continue
    return found


def chunks_in(text: str) -> list[Event]:
    """The events of those lines that are chunks."""
    found: list[Event] = []
    for value in lines_of_json(text):
        try:
            found.append(from_dict(value))
        except WireError:
            continue
    return found
