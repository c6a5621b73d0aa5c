"""What a tool returned, as a JSON value: whatever it is, and without ever raising.

Memory addresses are left out of texts, and sets are put in order, so that the same run gives the same value.
"""

from __future__ import annotations

import base64
import dataclasses
import re
from collections.abc import Mapping, Sequence, Set
from enum import Enum
from os import PathLike, fspath
from typing import Any

import msgspec

from toolcall_nb.events import Json, Object

__all__ = ["json_value", "safe_repr", "without_addresses"]

MAX_DEPTH = 100
"""Containers deeper than this become a text; recursive readers downstream stay far from their own limit."""

MAX_ITEMS = 1_000_000
"""More items than this become a text: shared lists within lists would otherwise unfold without end."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def json_value(value: Any) -> Json:
    """``value`` as None, bool, int, float, str, list or dict with string keys.

    NaN and infinities stay floats, bytes become base64 text, dataclasses and Structs objects, sets sorted
    arrays, NumPy's numbers and arrays plain ones; what fits nowhere becomes the text of its repr.
    """
    try:
        return _Walk().value(value, 0)
    except Exception:  # an object may raise from any method; its repr is the last resort
        return safe_repr(value)


def safe_repr(value: Any) -> str:
    """The repr without memory addresses; of an object whose repr raises, its type's name."""
    try:
        return without_addresses(repr(value))
    except Exception:
        return f"<{type(value).__name__}>"


def without_addresses(text: str) -> str:
    """The text without the memory addresses that Python puts into the names of objects."""
    return _ADDRESS.sub("", text)


class _Walk:
    """One conversion: what is being converted (for cycles) and how many items are left."""

    def __init__(self) -> None:
        self._inside: set[int] = set()
        self._left = MAX_ITEMS

    def value(self, value: Any, depth: int) -> Json:
        self._left -= 1
        if value is None or type(value) in (bool, int, float, str):
            return value
        plain = _plain(value)
        if plain is not value:
            return self.value(plain, depth + 1) if depth < MAX_DEPTH else _mark(value, "is nested too deeply")
        if isinstance(value, Mapping | Sequence | Set):
            return self._container(value, depth)
        return safe_repr(value)

    def _container(self, value: Any, depth: int) -> Json:
        if id(value) in self._inside:
            return _mark(value, "refers to itself")
        if depth >= MAX_DEPTH:
            return _mark(value, "is nested too deeply")
        if self._left < len(value):
            return _mark(value, "has too many items")
        self._inside.add(id(value))
        try:
            if isinstance(value, Mapping):
                return {_key(key): self.value(item, depth + 1) for key, item in value.items()}
            items = [self.value(item, depth + 1) for item in value]
        finally:
            self._inside.discard(id(value))
        return sorted(items, key=_order) if isinstance(value, Set) else items


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
