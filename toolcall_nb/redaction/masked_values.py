"""Masks the secrets in values: `masked_value`, in each text of a transcript or of any other value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from msgspec import Struct, json
from msgspec.structs import replace

from toolcall_nb.redaction.masker import MASK, Masker, Tally

_Value = TypeVar("_Value")

_JSON = json.Encoder(enc_hook=lambda _: None)

_CLOSED = frozenset({"role", "state"})
"""Fields whose texts are from a fixed list."""
_DEEPEST = 100
"""The most levels. Each takes a call, and Python has not many more."""
_IDS = ("id", "tool_call_id")
_BINARY = re.compile(r"(?:image/(?!svg)|audio/|video/|font/|application/(?:pdf|octet-stream|zip))", re.IGNORECASE)
"""MIME types whose text is bytes in base64."""
_DATA = re.compile(r"data:[^,\s]{0,200};base64,", re.IGNORECASE)


def masked_value(value: _Value, secrets: Mapping[str, str | None]) -> tuple[_Value, Tally]:
    """Returns the value with the secrets in all its texts masked, and the tally; the same object if it has none.

    It goes through structs, mappings with their keys, and sequences. The name of a field tells whether its value is a
    secret. Bytes in base64 (images, ``data:`` URLs) stay as they are. Ids and keys that masking makes equal are
    numbered. A transcript stays a valid one: it can be written as Markdown, and reads back.
    """
    masker = Masker(secrets)
    if not _may_find(masker, value):
        return value, Tally()
    return _Walk(masker).of(value), masker.tally


def _may_find(masker: Masker, value: Any) -> bool:
    """Whether it may have secrets, by one search in all of it as JSON. A value that JSON cannot hold may have some."""
    try:
        return masker.may_find(_JSON.encode(value).decode())
    except (TypeError, ValueError, OverflowError, RecursionError):
        return True


class _Walk:
    """Masks one value. Equal ids stay equal, and different ones different."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._ids: dict[str, str] = {}
        self._depth = 0

    def of(self, value: Any, name: str = "") -> Any:
        """Returns the value masked. Below the deepest level, one mask stands for the whole value."""
        self._depth += 1
        try:
            if self._depth < _DEEPEST:
                return self._inner(value, name)
            return MASK if _may_find(self._masker, value) else value
        finally:
            self._depth -= 1

    def _inner(self, value: Any, name: str) -> Any:
        match value:
            case str() if _BINARY.match(name) or _DATA.match(value):
                return value
            case str():
                return self._masker.value(name, value) if name else self._masker.text(value)
            case Struct():
                return self._struct(value)
            case Mapping():
                return self._mapping(value)
            case list() | tuple():
                items = [self.of(item) for item in value]
                is_same = all(new is old for new, old in zip(items, value, strict=True))
                return value if is_same else type(value)(items)
            case _:
                return value

    def _struct(self, value: Struct) -> Struct:
        changes = {}
        for field in value.__struct_fields__:
            old = getattr(value, field)
            new = old if field in _CLOSED else self._id(old) if field in _IDS else self.of(old)
            if new is not old:
                changes[field] = new
        return replace(value, **changes) if changes else value

    def _id(self, value: Any) -> Any:
        """Returns an id masked. Different ids stay different, or two calls of a message would become one."""
        if not isinstance(value, str):
            return value
        if value not in self._ids:
            masked = self._masker.text(value)
            self._ids[value] = value if masked is value else _free(masked, self._ids.values())
        return self._ids[value]

    def _mapping(self, value: Mapping[Any, Any]) -> Mapping[Any, Any]:
        changed: dict[Any, Any] = {}
        is_same = True
        for key, item in value.items():
            masked = self._masker.text(key) if isinstance(key, str) else key
            new = self.of(item, f"{key}")
            is_same = is_same and masked is key and new is item
            changed[masked if masked is key else _free(masked, changed)] = new
        return value if is_same else changed


def _free(name: str, used: Iterable[str]) -> str:
    """Returns the name, with a number if it is used already."""
    names, number, free = set(used), 1, name
    while free in names:
        number += 1
        free = f"{name} {number}"
    return free
