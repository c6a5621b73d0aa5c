"""What SDKs give, as JSON values: mappings, lists, strings, numbers, without importing any of them."""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from toolcall_nb.core.text import MAX_LEVELS

__all__ = ["class_names", "get", "json_value", "mapping", "plain", "type_name"]


def type_name(thing: Any) -> str:
    """``package.module.Class``."""
    cls = type(thing)
    return f"{cls.__module__}.{cls.__qualname__}"


def class_names(cls: type) -> list[tuple[str, str]]:
    """Module and name of the class and of what it is made from, the nearest first."""
    return [(str(base.__module__), base.__name__) for base in cls.__mro__]


def plain(thing: Any) -> Any:
    """The thing as its own package writes it as JSON; a mapping as it is; None for what cannot be written so.

    Pydantic models are asked with ``model_dump``, by the aliases that stand on the wire, without what is not set.
    """
    if isinstance(thing, Mapping):
        return thing
    dump = getattr(thing, "model_dump", None)
    if callable(dump) and not isinstance(thing, type):
        return dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return {item.name: getattr(thing, item.name) for item in dataclasses.fields(thing)}
    return None


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def get(value: Any, name: str, kind: type | tuple[type, ...] = object) -> Any:
    """``value[name]`` if it is there and of this kind, else None. Providers leave out, and send null."""
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, kind) and not (isinstance(found, bool) and kind is int) else None


def json_value(thing: Any) -> Any:
    """What a tool gave, whatever it is, as a JSON value. Never raises, and never names a memory address.

    Models and dataclasses become objects, sets and tuples lists, bytes base64 text, dates ISO text; what has no
    other form becomes its own text, and what has none either, holds itself, or lies too deep, the name of its type.
    """
    return _value(thing, ())


def _value(thing: Any, within: tuple[int, ...]) -> Any:
    if thing is None or isinstance(thing, bool | int | str):
        return thing if not isinstance(thing, str) else str(thing)
    if isinstance(thing, float):
        return thing if math.isfinite(thing) else str(thing)
    if isinstance(thing, bytes | bytearray):
        return base64.b64encode(thing).decode("ascii")
    if id(thing) in within or len(within) == MAX_LEVELS:
        return f"<{type_name(thing)}>"
    within = (*within, id(thing))
    if isinstance(thing, list | tuple):
        return [_value(item, within) for item in thing]
    if isinstance(thing, set | frozenset):
        return sorted((_value(item, within) for item in thing), key=str)
    return _object_value(thing, within)


def _object_value(thing: Any, within: tuple[int, ...]) -> Any:
    try:
        fields = plain(thing)
        if fields is not None:
            return {str(key): _value(value, within) for key, value in fields.items()}
        has_text = any(name in vars(base) for base in type(thing).__mro__[:-1] for name in ("__str__", "__repr__"))
        iso = getattr(thing, "isoformat", None)
        return str(iso() if callable(iso) else thing) if has_text else f"<{type_name(thing)}>"
    except Exception:
        return f"<{type_name(thing)}>"
