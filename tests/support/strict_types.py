"""Checks values against the request types of the providers' packages: no unknown key, no missing key, no wrong type.

The packages don't check their arguments (only type checkers read a TypedDict), and pydantic does not validate an
``Iterable`` until it is iterated. So this module reads the annotations itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, TypeGuard, Union, get_args, get_origin, get_type_hints

import typing_extensions

__all__ = ["misfits"]

_SEQUENCES = (list, Iterable, Sequence)


def misfits(value: Any, kind: Any, place: str = "body") -> Iterator[str]:
    """Yields one sentence for each place where a JSON value does not match the annotation."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any or kind is object:
        return
    if typing_extensions.is_typeddict(kind):
        yield from _typed_dict(value, kind, place)
    elif origin in (typing_extensions.Required, typing_extensions.NotRequired, typing_extensions.Annotated):
        yield from misfits(value, arguments[0], place)
    elif origin is Union or type(kind).__name__ == "UnionType":
        yield from _union(value, arguments, place)
    elif origin is Literal:
        if value not in arguments:
            yield f"{place} is {value!r:.60}, not one of {arguments}"
    elif origin in (dict, Mapping):
        yield from _mapping(value, arguments, place)
    elif origin in _SEQUENCES or getattr(kind, "__name__", "") == "SequenceNotStr" or "SequenceNotStr" in str(origin):
        yield from _sequence(value, arguments, place)
    elif not _is_plain(value, kind):
        yield f"{place} is {value!r:.60}, and no {kind}"


def _typed_dict(value: Any, kind: Any, place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{place} is {value!r:.60}, and no {kind.__name__}"
        return
    hints = _hints(kind)
    for name in kind.__required_keys__ - value.keys():
        yield f"{place} has no {name!r} ({kind.__name__})"
    for name in value.keys() - hints.keys():
        yield f"{place} has {name!r}, which {kind.__name__} has not"
    for name in value.keys() & hints.keys():
        yield from misfits(value[name], hints[name], f"{place}.{name}")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _union(value: Any, kinds: Sequence[Any], place: str) -> Iterator[str]:
    """Yields nothing if the value matches one member, else the misfits of the closest member."""
    complaints = [list(misfits(value, kind, place)) for kind in kinds]
    if all(complaints):
        yield from min(complaints, key=len)


def _mapping(value: Any, arguments: Sequence[Any], place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{place} is {value!r:.60}, not an object"
        return
    for name, each in value.items():
        yield from misfits(each, arguments[1] if arguments else Any, f"{place}.{name}")


def _sequence(value: Any, arguments: Sequence[Any], place: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{place} is {value!r:.60}, not an array"
        return
    for number, each in enumerate(value):
        yield from misfits(each, arguments[0] if arguments else Any, f"{place}[{number}]")


def _is_plain(value: Any, kind: Any) -> TypeGuard[Any]:
    if kind is None or kind is type(None):
        return value is None
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(kind, type) and isinstance(value, kind)
