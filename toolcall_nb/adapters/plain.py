"""What SDKs give, as JSON values: mappings, lists, strings, numbers, without importing any of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

__all__ = ["get", "mapping", "plain", "type_name"]


def type_name(thing: Any) -> str:
    """``package.module.Class``."""
    cls = type(thing)
    return f"{cls.__module__}.{cls.__qualname__}"


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
