"""Plants unknown fields into items, and fills the types of SDKs, to find what a transcript does not keep."""

from __future__ import annotations

import copy
import inspect
import itertools
import json
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Union, get_args, get_origin

import pydantic

from toolcall_nb.adapters.fields_in_use import TRANSPORT
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import Transcript

Item = dict[str, Any]
Read = Callable[[list[Item]], Transcript]

NAMES_OF_KINDS = frozenset({"type", "object", "role", "event_type", "kind", "event", "part_kind"})
NEVER_KEPT = frozenset(" ".join(TRANSPORT.values()).split()) - NAMES_OF_KINDS

OF_THE_REQUEST = (
    *("response.metadata", "response.reasoning", "response.text", "response.tools", "response.instructions"),
    *("response.prompt", "response.tool_choice"),
)
SAID_ELSEWHERE = (
    *OF_THE_REQUEST,
    *("response.output", "part.annotations", "interaction.steps"),  # in the events of the items and steps
    *("content_block.input", "step.arguments"),  # in the deltas, until which they are empty
    *("content_block.content", "step.result", "item.output"),  # contents of results: `toolcall_nb.core.contents`
)
"""Paths of objects in which a reader does not look for further fields."""


def unkept_fields(items: Sequence[Item], read: Read, others: Iterable[str] = ()) -> list[str]:
    """Plants a field into each object of the items; returns the places whose field the transcript does not have.

    A place is the path with the object's type. The objects below a path in ``others`` are left as they are.
    """
    planted, places = copy.deepcopy(list(items)), dict[str, str]()
    for item in planted:
        _plant(item, (), frozenset(others), places)
    text = text_of(read(planted))
    return [place for mark, place in places.items() if mark not in text]


def _plant(value: Any, path: tuple[str, ...], others: frozenset[str], places: dict[str, str]) -> None:
    if isinstance(value, list):
        for entry in value:
            _plant(entry, path, others, places)
    if not isinstance(value, dict):
        return
    for name, inner in list(value.items()):
        if name not in NEVER_KEPT and ".".join((*path, name)) not in others:
            _plant(inner, (*path, name), others, places)
    place = f"{'.'.join(path)}: {value.get('type') or (not path and value.get('event_type')) or ''}"
    mark = f"planted at {place}"
    value[f"planted_{len(places) if mark not in places else list(places).index(mark)}"] = mark
    places[mark] = place


def text_of(transcript: Transcript) -> str:
    """Returns all that a transcript says, as JSON."""
    events = [*transcript.events(), *transcript.diagnostics]
    return json.dumps([ev.to_dict(event) for event in events], ensure_ascii=False)


# The types of SDKs --------------------------------------------------------------------------------------------


def unkept_texts(wrap: Callable[[Item], list[Item]], cls: Any, read: Read) -> set[str]:
    """Fills the texts of an SDK's type; returns the paths of those that the transcript of ``wrap(object)`` lacks.

    Of a field that is a union, each alternative is filled in turn.
    """
    unkept: set[str] = set()
    for item, paths in _instances(cls):
        text = text_of(read(wrap(item)))
        unkept.update(path for mark, path in paths.items() if mark not in text)
    return unkept


def alternatives(annotation: Any) -> list[Any]:
    """Returns the types of a union, without None; of another type, the type."""
    while get_origin(annotation) is typing.Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, types.UnionType):
        return [each for part in get_args(annotation) if part is not type(None) for each in alternatives(part)]
    return [annotation]


def _instances(cls: Any) -> Iterator[tuple[Item, dict[str, str]]]:
    paths: dict[str, str] = {}
    yield _object(cls, (cls,), paths, ()), paths
    for field_name, field in cls.model_fields.items():
        for other in alternatives(field.annotation)[1:]:
            name, paths = _wire_name(field_name, field), {}
            item = {**_object(cls, (cls,), {}, ()), name: _value(other, (cls,), paths, (name,))}
            if item[name] is not None:
                yield item, paths


def _object(cls: Any, within: tuple[Any, ...], paths: dict[str, str], path: tuple[str, ...]) -> Item:
    item: Item = {}
    for field_name, field in cls.model_fields.items():
        name = _wire_name(field_name, field)
        if name in NEVER_KEPT:
            continue
        value = _value(field.annotation, within, paths, (*path, name))
        if value is not None:
            item[name] = value
    return item


def _wire_name(name: str, field: Any) -> str:
    return str(field.serialization_alias or field.alias or name)


def _value(annotation: Any, within: tuple[Any, ...], paths: dict[str, str], path: tuple[str, ...]) -> Any:
    kind = alternatives(annotation)[0]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return arguments[0]
    if origin in (list, Sequence):
        entries = (_value(each, within, paths, path) for each in alternatives(arguments[0])[:30])
        return [entry for entry in entries if entry is not None]
    if origin is dict or kind in (str, object, Any):
        mark = f"text {next(_NUMBERS)}."
        paths[mark] = ".".join(path)
        return {"key": mark} if origin is dict else mark
    if kind in _NUMBERS_OF:
        return _NUMBERS_OF[kind]
    if inspect.isclass(kind) and issubclass(kind, pydantic.BaseModel) and kind not in within:
        return _object(kind, (*within, kind), paths, path)
    return None


_NUMBERS = itertools.count(1)
_NUMBERS_OF: dict[Any, Any] = {int: 3, float: 2.5, bool: True}
