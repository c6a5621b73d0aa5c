"""Reads values as exporters write them: JSON in texts, values of OTLP, times, ids, attributes with dotted names."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from toolcall_nb.core.events import Json, Object
from toolcall_nb.core.json_text import read_json
from toolcall_nb.core.text import MAX_LEVELS

_ANY_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue", "arrayValue", "kvlistValue", "bytesValue")
_LATEST = 2**63
_UNITS = ((10**17, 1), (10**14, 1000), (10**11, 10**6))
"""The numbers from which on a time is in nanoseconds, microseconds and milliseconds. Smaller ones are in seconds."""
_MAX_SEGMENTS = 16
_MOST_NAMES = 64
_JSON_STARTS = ("[", "{", '"')
_DOT = re.compile(r"\.")
_FRACTION = re.compile(r"(\.\d{6})\d+")


def as_object(value: Any) -> Mapping[str, Any]:
    """Returns the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Returns the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def first_text(attributes: Mapping[str, Any], names: Iterable[str]) -> str:
    """Returns the first of these attributes that is a string and not empty; an empty string if there is none."""
    for name in names:
        text = attributes.get(name)
        if isinstance(text, str) and text:
            return text
    return ""


class AttributeNames(dict[tuple[str, ...], tuple[str, ...]]):
    """The names of a span's attributes. ``names[table]`` are the names of a table for which there may be a value.

    They are in the table's order. A value may be an attribute, spread over attributes with longer names, or nested in
    one, as for `unflatten`.
    """

    __slots__ = ("_names",)

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, table: tuple[str, ...]) -> tuple[str, ...]:
        prefixes = {*self._names}
        end = max(map(len, table), default=0) + 1  # a hostile name may have very many dots
        for name in self._names:
            prefixes.update([name[: dot.start()] for dot in _DOT.finditer(name, 0, end)])
        self[table] = tuple(name for name in table if name in prefixes or name.partition(".")[0] in self._names)
        return self[table]


def attribute_names(attributes: Mapping[str, Any]) -> AttributeNames:
    """Returns the names of attributes. Most spans of a trace have the same few names, so each table is read once."""
    names = tuple(attributes)
    return _cached_names(names) if len(names) <= _MOST_NAMES else AttributeNames(names)


_cached_names = lru_cache(maxsize=256)(AttributeNames)


def read_json_text(value: Any) -> Json:
    """Returns the value that a JSON text holds, which may be encoded up to three times; any other value as it is."""
    for _ in range(3):
        if not isinstance(value, str) or not value.lstrip().startswith(_JSON_STARTS):
            break
        try:
            value = read_json(value)
        except (ValueError, RecursionError):
            break
    return value


def read_any_value(item: Any, levels: int = MAX_LEVELS) -> Json:
    """Returns the value of an OTLP ``AnyValue``. Anything else is returned as it is."""
    if not isinstance(item, dict) or len(item) > 1 or levels == 0:
        return item
    kind, value = next(iter(item.items()), ("stringValue", None))
    match kind:
        case "intValue":
            number = read_whole_number(value)
            return value if number is None else number
        case "arrayValue":
            return [read_any_value(inner, levels - 1) for inner in as_list(as_object(value).get("values"))]
        case "kvlistValue":
            return read_attributes(as_object(value).get("values"), levels - 1)
    return value if kind in _ANY_VALUES else item


def read_attributes(pairs: Any, levels: int = MAX_LEVELS) -> Object:
    """Returns attributes as an object: from a list of keys and values, or from an object."""
    if isinstance(pairs, dict):
        return {str(key): value for key, value in pairs.items()}
    attributes: Object = {}
    for pair in as_list(pairs):
        try:
            name, value = str(pair["key"]), pair.get("value")
        except (KeyError, TypeError):  # it is no pair
            continue
        text = value.get("stringValue") if type(value) is dict and len(value) == 1 else None
        attributes[name] = read_any_value(value, levels) if text is None else text  # most are texts
    return attributes


def read_whole_number(value: Any) -> int | None:
    """Returns a whole number, which may be written as text; None for anything else."""
    if type(value) is int:
        return value
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str) and len(value) < 32:
        try:
            return int(value)
        except ValueError:
            return None
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    return value if isinstance(value, int) else None


def read_id(value: Any) -> str:
    """Returns the id of a trace or span as text: without ``0x``, and base64 as hexadecimal; empty if there is none."""
    if not isinstance(value, str):
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""
    text = value.strip().removeprefix("0x")
    if len(text) in (12, 24) and text.endswith("="):  # protobuf's JSON form, which some exporters use
        try:
            return base64.b64decode(text, validate=True).hex()
        except (binascii.Error, ValueError):
            return text
    return text if text.strip("0") else ""


def read_time(value: Any, unit: int = 0) -> int | None:
    """Returns a time in nanoseconds since 1970; None if the value is no time.

    ``unit`` is the length of the value's unit in nanoseconds. With 0, the size of a number tells its unit. A time may
    also be ISO text, or a list of seconds and nanoseconds.
    """
    if unit == 1 and isinstance(value, str) and len(value) < 32 and value.isdecimal():  # most times of OTLP
        return _in_range(int(value))
    if isinstance(value, list) and len(value) == 2:
        seconds, nanos = map(read_whole_number, value)
        return _in_range(seconds * 10**9 + nanos) if seconds is not None and nanos is not None else None
    number = value if isinstance(value, float) and math.isfinite(value) else read_whole_number(value)
    if number is None:
        return _read_iso_time(value) if isinstance(value, str) else None
    unit = unit or next((size for least, size in _UNITS if number >= least), 10**9)
    return _in_range(int(number * unit))


def _in_range(nanoseconds: int) -> int | None:
    return nanoseconds if 0 <= nanoseconds < _LATEST else None


def _read_iso_time(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(_FRACTION.sub(r"\1", text.strip()[:64]))
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return _in_range((since.days * 86400 + since.seconds) * 10**9 + since.microseconds * 1000)


def unflatten(attributes: Mapping[str, Any], prefix: str) -> Json:
    """Returns the value that is spread over attributes named ``prefix.0.name``; None if there is none.

    Objects whose keys are all numbers become lists, in the order of the numbers. A value that is not spread, or is
    nested in objects, is returned as it is.
    """
    value = _nested(attributes, prefix)
    start, root = prefix + ".", {} if value is None else value
    if not isinstance(root, dict):
        return root
    for name in [name for name in attributes if name.startswith(start)]:
        if name.count(".") < _MAX_SEGMENTS:
            _put(root, name[len(start) :].split("."), attributes[name])
    return _with_lists(root, _MAX_SEGMENTS) if root else None


def _nested(attributes: Mapping[str, Any], prefix: str) -> Any:
    value: Any = attributes.get(prefix)
    if value is None:
        value = attributes
        for name in prefix.split("."):
            value = value.get(name) if isinstance(value, dict) else None
            if value is None:
                return None
    return dict(value) if isinstance(value, dict) else value


def _put(root: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        inner = root.get(name)
        if not isinstance(inner, dict):
            inner = root[name] = {}
        root = inner
    root[path[-1]] = value


def _with_lists(value: Any, levels: int) -> Any:
    if not isinstance(value, dict) or levels == 0:
        return value
    items = {key: _with_lists(item, levels - 1) for key, item in value.items()}
    if items and all(key.isascii() and key.isdigit() and len(key) < 10 for key in items):
        return [items[key] for key in sorted(items, key=int)]
    return items
