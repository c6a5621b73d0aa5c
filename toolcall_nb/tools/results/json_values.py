"""Converts any value to bounded JSON without raising: `to_json_value`.

The result goes into every saved form of a transcript, so its size is bounded here and nowhere else. In place of what is
left out stands its number, and the expression by which the kernel still has the whole value. Memory addresses are
removed and sets are sorted, so that the same run gives the same result. Frames, series and large arrays become CSV
(`toolcall_nb.tools.results.table_csv`), wherever they are in the value.
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
from toolcall_nb.core.result_text import RESULT_LIMIT, format_output, truncate_text
from toolcall_nb.tools.results.table_csv import table_csv
from toolcall_nb.tools.results.value_tables import array_table, numpy_items, value_table

_MAX_DEPTH = 100
"""Containers that are nested deeper become a text, so that recursive readers stay far below their own limit."""

_MAX_ITEMS = 20_000
"""Nested values that are kept; as lines of YAML, they are about 300 kB."""

MAX_TEXT = 500_000
"""Characters that are kept, in all strings together."""

_MAX_BITS = 14_000
"""The size of the largest integer that is kept; Python converts no more than 4,300 digits."""

_RESERVED_ITEMS, _RESERVED_TEXT = 50, 1_000
"""The room that is reserved for each value that follows a large one."""

_LEAST_TEXT = 200
"""Characters below which no more items are begun: one that is cut to a few letters says nothing."""

_FITTINGS = 8
"""How often a text for the model is made anew with less of the value."""

_MODEL_NOTES = 200
"""Characters of notes that the text for the model may have beyond its limit."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def to_json_value(value: Any, expression: str = "", max_text: int | None = None, max_table: int = RESULT_LIMIT) -> Json:
    """Returns ``value`` as None, bool, int, float, str, list or dict with string keys.

    NaN and infinities stay floats, bytes become base64 text, dataclasses and Structs objects, sets sorted arrays,
    NumPy's numbers and arrays plain ones; frames, series and arrays of more than 20,000 numbers become CSV of at most
    ``max_table`` characters each; any other value becomes its repr. At most 20,000 values and ``max_text`` characters
    (None: `MAX_TEXT`) are kept; ``expression`` is how the kernel has the rest.
    """
    return _convert(value, _Conversion(expression, MAX_TEXT if max_text is None else max_text, max_table))


def to_model_text(value: Any, limit: int, expression: str = "") -> str:
    """Returns the text of a value that is sent to the model: about ``limit`` characters, and what is left out.

    Strings lose their middle, lists their last items, tables cells, columns and rows from the middle. Every note counts
    what there is in ``value`` itself.
    """
    if isinstance(value, str):
        return truncate_text(value, limit)
    room, text = limit, ""
    for _ in range(_FITTINGS):
        text = format_output(_convert(value, _Conversion(expression, room, room, is_for_model=True)))
        if len(text) <= limit + _MODEL_NOTES:
            return text
        room = room * limit // len(text)
    return truncate_text(text, limit)


def _convert(value: Any, conversion: _Conversion) -> Json:
    try:
        return conversion.value(value, 0)
    except Exception:  # any method of an object may raise
        return conversion.text(safe_repr(value))


def has_json(value: Any) -> bool:
    """Whether a value has a form other than its repr in `to_json_value`."""
    try:
        is_plain = isinstance(value, Mapping | Sequence | Set) or _plain(value) is not value
        return is_plain or _is_array(value) or value_table(value) is not None
    except Exception:
        return False


def safe_repr(value: Any) -> str:
    """Returns the repr without memory addresses, or the type's name where the repr raises."""
    try:
        return without_addresses(repr(value))
    except Exception:
        return f"<{type(value).__name__}>"


def without_addresses(text: str) -> str:
    """Removes the memory addresses that Python puts into the reprs of objects."""
    return _ADDRESS.sub("", text)


def _all_in(expression: str) -> str:
    return f", all in {expression}" if expression else ""


class _Conversion:
    """One conversion: the containers it is inside of, and the items and characters that are left.

    For the model, an array is written as a table where its JSON would have more than ``max_text`` characters.
    """

    def __init__(self, expression: str, max_text: int, max_table: int, *, is_for_model: bool = False) -> None:
        self._expression = expression
        self._inside: set[int] = set()
        self._items, self._text = _MAX_ITEMS, max_text
        self._max_table = max_table
        self._max_array = MAX_TEXT
        self._reserved_text = _RESERVED_TEXT
        self._least_text = min(_LEAST_TEXT, max_text // 50)
        if is_for_model:
            self._items = min(_MAX_ITEMS, max_text // 2)  # each takes two characters or more
            self._max_array, self._reserved_text = max_text, max(_RESERVED_TEXT, max_text // 4)

    def value(self, value: Any, depth: int) -> Json:
        self._items -= 1
        if value is None or type(value) in (bool, float):
            return value
        if type(value) is str:
            return self.text(value)
        if type(value) is int:
            is_short = value.bit_length() <= _MAX_BITS
            return value if is_short else self._left_out(value, "more digits than can be written")
        if isinstance(value, bytes | bytearray | memoryview) and memoryview(value).nbytes > self._text // 2:
            return self._left_out(value, f"{memoryview(value).nbytes:,} bytes")
        table = self._table(value)
        if table is not None:
            return table
        plain = _plain(value)
        if plain is not value:
            return self.value(plain, depth + 1) if depth < _MAX_DEPTH else _placeholder(value, "is nested too deeply")
        if isinstance(value, Mapping | Sequence | Set):
            return self._container(value, depth)
        return self.text(safe_repr(value))

    def _table(self, value: Any) -> str | None:
        """Returns a frame, a series or a large array as CSV; None for any other value."""
        try:
            table = value_table(value)
            if table is None and _is_array(value) and self._is_large_array(value):
                table = array_table(value)
            if table is None:
                return None
            text = table_csv(table, min(self._max_table, max(0, self._text)), self._expression, write_cell)
        except Exception:  # a frame of a kind that its package cannot read by rows
            return None
        return self.text(text)

    def _is_large_array(self, array: Any) -> bool:
        if array.size > self._items:
            return True
        return self._max_array < MAX_TEXT and len(format_output(to_json_value(numpy_items(array)))) > self._max_array

    def text(self, text: str) -> str:
        """Returns as much of the text as there is room for."""
        room = max(0, self._text)
        self._text = max(0, room - len(text))
        return truncate_text(text, room, self._expression)

    def _container(self, value: Any, depth: int) -> Json:
        if id(value) in self._inside:
            return _placeholder(value, "refers to itself")
        if depth >= _MAX_DEPTH:
            return _placeholder(value, "is nested too deeply")
        self._inside.add(id(value))
        try:
            return self._object(value, depth) if isinstance(value, Mapping) else self._array(value, depth)
        finally:
            self._inside.discard(id(value))

    def _object(self, value: Any, depth: int) -> Json:
        converted: Object = {}
        for number, (key, item) in enumerate(value.items()):
            if self._is_full:
                converted["…"] = self._more(len(value) - number)
                break
            name = self.text(_key(key))  # before the value, which may take all the room
            converted[name] = self._with_reserve(item, len(value) - number - 1, depth)
        return converted

    def _array(self, value: Any, depth: int) -> Json:
        size = len(value)
        items: list[Json] = []
        for item in _sorted_beginning(value, self._items) if isinstance(value, Set) else value:
            if self._is_full:
                break
            items.append(self._with_reserve(item, size - len(items) - 1, depth))
        if isinstance(value, Set):
            items.sort(key=_order)
        return [*items, self._more(size - len(items))] if self._is_full and len(items) < size else items

    def _with_reserve(self, item: Any, others: int, depth: int) -> Json:
        """Converts an item and leaves room for the ``others`` that follow it: at most half of what there is."""
        items = min(_RESERVED_ITEMS * others, self._items // 2)
        text = min(self._reserved_text * others, self._text // 2)
        self._items -= items
        self._text -= text
        try:
            return self.value(item, depth + 1)
        finally:
            self._items += items
            self._text += text

    @property
    def _is_full(self) -> bool:
        return self._items <= 0 or self._text <= self._least_text

    def _more(self, count: int) -> str:
        return f"… {count:,} more{_all_in(self._expression)}"

    def _left_out(self, value: Any, what: str) -> str:
        return f"<{type(value).__name__}: {what}{_all_in(self._expression)}>"


def _sorted_beginning(value: Set[Any], count: int) -> Iterable[Any]:
    """Returns the smallest items of a large set, so that they are the same each time; a small set as it is."""
    if len(value) <= count:
        return value
    try:
        return heapq.nsmallest(count, value)
    except TypeError:  # its items cannot all be compared
        return islice(value, count)


def write_cell(value: Any) -> str:
    """Returns a cell that is no text or number: containers as JSON, other objects by their own ``str``."""
    is_container = isinstance(value, Mapping | Sequence | Set) or _is_array(value) or value_table(value) is not None
    return format_output(to_json_value(value)) if is_container else without_addresses(str(value))


def _is_array(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "size") and hasattr(value, "tolist")


def _plain(value: Any) -> Any:
    """Converts a value one step towards JSON; returns ``value`` itself where there is no step."""
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
    """Converts a value of NumPy, of pydantic, or of a type that msgspec supports."""
    if isinstance(value, type):
        return value
    if _is_array(value):
        return numpy_items(value)
    if hasattr(value, "model_dump") and hasattr(type(value), "model_fields"):
        return value.model_dump()
    try:
        return msgspec.to_builtins(value)
    except (TypeError, ValueError):
        return value


def _key(key: Any) -> str:
    plain = _plain(key)
    return plain if isinstance(plain, str) else safe_repr(plain)


def _placeholder(value: Any, what: str) -> str:
    return f"<{type(value).__name__}: {what}>"


def _order(item: Json) -> tuple[str, Object | Json]:
    """Returns a sort key for the items of a set: their kind, then their value; for containers, their text."""
    if isinstance(item, bool | int | float):
        return ("number", item)
    return ("text", item) if isinstance(item, str) else (type(item).__name__, safe_repr(item))
