"""What a tool returned, as a JSON value: whatever it is, bounded, and without ever raising.

The value goes into every saved form of a transcript, so its size is bounded here and nowhere else: what is left out is
counted in its place, with the name by which the kernel still has the whole. Memory addresses are left out of texts,
and sets are put in order, so that the same run gives the same value.
"""

from __future__ import annotations

import base64
import dataclasses
import heapq
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from enum import Enum
from itertools import islice
from os import PathLike, fspath
from typing import Any

import msgspec

from toolcall_nb.core.events import Json, Object

__all__ = ["MAX_TEXT", "cut_text", "has_json", "json_value", "safe_repr", "without_addresses"]

MAX_DEPTH = 100
"""Containers deeper than this become a text; recursive readers downstream stay far from their own limit."""

MAX_ITEMS = 20_000
"""Values within values that are kept: written as lines of YAML, some 300 kB."""

MAX_TEXT = 500_000
"""Characters of text that are kept, in all strings together."""

_MAX_BITS = 14_000
"""Of an integer: Python writes no more than 4,300 digits."""

_RESERVED_ITEMS, _RESERVED_TEXT = 50, 1_000
"""What each value that stands behind a large one is sure to have."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def json_value(value: Any, whole: str = "", max_text: int | None = None) -> Json:
    """``value`` as None, bool, int, float, str, list or dict with string keys.

    NaN and infinities stay floats, bytes become base64 text, dataclasses and Structs objects, sets sorted
    arrays, NumPy's numbers and arrays plain ones, large arrays their own summary; what fits nowhere becomes the text
    of its repr. ``whole`` is where all of it is, for what is left out beyond `MAX_ITEMS` values and ``max_text``
    characters (None: `MAX_TEXT`).
    """
    walk = _Walk(whole, MAX_TEXT if max_text is None else max_text)
    try:
        return walk.value(value, 0)
    except Exception:  # an object may raise from any method; its repr is the last resort
        return walk.text(safe_repr(value))


def has_json(value: Any) -> bool:
    """Whether the value has a JSON form of its own, which is not the text of its repr."""
    try:
        return isinstance(value, Mapping | Sequence | Set) or _is_array(value) or _plain(value) is not value
    except Exception:
        return False


def safe_repr(value: Any) -> str:
    """The repr without memory addresses; of an object whose repr raises, its type's name."""
    try:
        return without_addresses(repr(value))
    except Exception:
        return f"<{type(value).__name__}>"


def without_addresses(text: str) -> str:
    """The text without the memory addresses that Python puts into the names of objects."""
    return _ADDRESS.sub("", text)


def cut_text(text: str, limit: int, whole: str = "") -> str:
    """The text, or ``limit`` characters of it, from its beginning and its end, and how many are left out and where."""
    left_out = len(text) - limit
    if left_out <= 0:
        return text
    tail = limit // 2
    head = limit - tail
    return f"{text[:head]}\n… {left_out:,} characters left out{_all_in(whole)} …\n{text[len(text) - tail :]}"


def _all_in(whole: str) -> str:
    return f", all in {whole}" if whole else ""


class _Walk:
    """One conversion: what is being converted (for cycles), and how many items and characters are left."""

    def __init__(self, whole: str, max_text: int) -> None:
        self._whole = whole
        self._inside: set[int] = set()
        self._items, self._text = MAX_ITEMS, max_text

    def value(self, value: Any, depth: int) -> Json:
        self._items -= 1
        if value is None or type(value) in (bool, float):
            return value
        if type(value) is str:
            return self.text(value)
        if type(value) is int:
            return (
                value if value.bit_length() <= _MAX_BITS else self._left_out(value, "more digits than can be written")
            )
        if isinstance(value, bytes | bytearray | memoryview) and memoryview(value).nbytes > self._text // 2:
            return self._left_out(value, f"{memoryview(value).nbytes:,} bytes")
        if _is_array(value) and value.size > self._items:
            return f"{self.text(safe_repr(value))}\n… {value.size:,} numbers{_all_in(self._whole)}"
        plain = _plain(value)
        if plain is not value:
            return self.value(plain, depth + 1) if depth < MAX_DEPTH else _mark(value, "is nested too deeply")
        if isinstance(value, Mapping | Sequence | Set):
            return self._container(value, depth)
        return self.text(safe_repr(value))

    def text(self, text: str) -> str:
        """The text, as much of it as there is room for."""
        room = max(0, self._text)
        self._text = max(0, room - len(text))
        return cut_text(text, room, self._whole)

    def _container(self, value: Any, depth: int) -> Json:
        if id(value) in self._inside:
            return _mark(value, "refers to itself")
        if depth >= MAX_DEPTH:
            return _mark(value, "is nested too deeply")
        self._inside.add(id(value))
        try:
            return self._object(value, depth) if isinstance(value, Mapping) else self._array(value, depth)
        finally:
            self._inside.discard(id(value))

    def _object(self, value: Any, depth: int) -> Json:
        found: Object = {}
        for number, (key, item) in enumerate(value.items()):
            if self._is_full:
                found["…"] = self._more(len(value) - number)
                break
            found[self.text(_key(key))] = self._beside(item, len(value) - number - 1, depth)
        return found

    def _array(self, value: Any, depth: int) -> Json:
        size = len(value)
        items: list[Json] = []
        for number, item in enumerate(_sorted_beginning(value, self._items) if isinstance(value, Set) else value):
            if self._is_full:
                break
            items.append(self._beside(item, size - number - 1, depth))
        if isinstance(value, Set):
            items.sort(key=_order)
        return [*items, self._more(size - len(items))] if self._is_full and len(items) < size else items

    def _beside(self, item: Any, others: int, depth: int) -> Json:
        """An item with room left for the ``others`` that follow it: at most half of the room that there is."""
        items = min(_RESERVED_ITEMS * others, self._items // 2)
        text = min(_RESERVED_TEXT * others, self._text // 2)
        self._items -= items
        self._text -= text
        try:
            return self.value(item, depth + 1)
        finally:
            self._items += items
            self._text += text

    @property
    def _is_full(self) -> bool:
        return self._items <= 0 or self._text <= 0

    def _more(self, count: int) -> str:
        return f"… {count:,} more{_all_in(self._whole)}"

    def _left_out(self, value: Any, what: str) -> str:
        return f"<{type(value).__name__}: {what}{_all_in(self._whole)}>"


def _sorted_beginning(value: Set[Any], count: int) -> Iterable[Any]:
    """What comes first in a large set, so that it is the same each time; a set that is kept whole as it is."""
    if len(value) <= count:
        return value
    try:
        return heapq.nsmallest(count, value)
    except TypeError:  # not all of it can be compared
        return islice(value, count)


def _is_array(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "size") and hasattr(value, "tolist")


def _plain(value: Any) -> Any:
    """One step towards JSON, or ``value`` itself where there is none."""
    if isinstance(value, Enum):
        return value.value
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, msgspec.Struct):
        return {f.encode_name: getattr(value, f.name) for f in msgspec.structs.fields(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, PathLike):
        return fspath(value)
    return value if isinstance(value, Mapping | Sequence | Set) else _foreign(value)


def _foreign(value: Any) -> Any:
    """Values of other packages, known by their manners: NumPy, pydantic, and what msgspec knows besides."""
    if isinstance(value, type):
        return value
    if type(value).__module__.partition(".")[0] == "numpy":
        return value.tolist()
    if hasattr(value, "model_dump") and hasattr(type(value), "model_fields"):
        return value.model_dump()
    try:
        return msgspec.to_builtins(value)
    except (TypeError, ValueError):
        return value


def _key(key: Any) -> str:
    plain = _plain(key)
    return plain if isinstance(plain, str) else safe_repr(plain)


def _mark(value: Any, what: str) -> str:
    return f"<{type(value).__name__}: {what}>"


def _order(item: Json) -> tuple[str, Object | Json]:
    """Sorts what a set held: by kind, then by value; containers by their text."""
    if isinstance(item, bool | int | float):
        return ("number", item)
    return ("text", item) if isinstance(item, str) else (type(item).__name__, safe_repr(item))
