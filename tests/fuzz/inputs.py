"""Turns bytes into a target's input: text, which may contain lone surrogates, JSON, and places to cut at.

The places are derived from the bytes, so that an input always gives the same run.
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
    """Decodes the bytes as UTF-8; each invalid byte becomes a lone surrogate."""
    return data.decode("utf-8", "surrogateescape")


def numbers(data: bytes) -> random.Random:
    """Returns random numbers that are derived from the bytes."""
    return random.Random(zlib.crc32(data))


def in_pieces(value: Cuttable, data: bytes) -> list[Cuttable]:
    """Cuts the value at a few places that are derived from ``data``."""
    draw = numbers(data)
    places: list[int] = sorted(draw.randint(0, len(value)) for _ in range(draw.randint(1, _MOST_CUTS)))
    edges: list[int] = [0, *places, len(value)]
    return [value[start:end] for start, end in itertools.pairwise(edges)]


def ways(value: Cuttable, data: bytes) -> Iterator[list[Cuttable]]:
    """Yields ways to cut the value: at a few places and, if it is short, also everywhere."""
    yield in_pieces(value, data)
    if len(value) <= _ONE_BY_ONE:
        yield [value[place : place + 1] for place in range(len(value))]


def lines_of_json(text: str) -> list[Any]:
    """Returns the values of the lines that are JSON; NaN and infinities become strings."""
    found = []
    for line in text.split("\n"):
        try:
            found.append(json.loads(line, parse_constant=str))
        except (ValueError, RecursionError):
            continue
    return found


def chunks_in(text: str) -> list[Event]:
    """Returns the events of the lines that are chunks."""
    found: list[Event] = []
    for value in lines_of_json(text):
        try:
            found.append(from_dict(value))
        except WireError:
            continue
    return found
