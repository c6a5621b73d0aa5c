"""Reads the classes, limits and descriptions that a type annotation declares at any depth.

`declarations` lists them, `with_descriptions` turns descriptions into metadata that a schema library knows, and
`field_descriptions` returns the descriptions of a record's fields.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from toolcall_nb.tools.workspaces import WorkspacePath

Library = Literal["msgspec", "pydantic", "unknown"]
"""The library that gives a declaration its meaning."""

_PYDANTIC = frozenset({"annotated_types", "pydantic", "pydantic_core", "pydantic_extra_types"})
_PYDANTIC_MARKS = (
    *("__get_pydantic_core_schema__", "__pydantic_core_schema__", "__is_pydantic_dataclass__", "__pydantic_config__"),
    "__is_annotated_types_grouped_metadata__",
)
_NOT_ENFORCED = frozenset({"annotated_types.Timezone"})
"""Metadata of these packages that none of them enforces."""


def declarations(annotation: Any) -> Iterator[Any]:
    """Yields each class and each piece of metadata of an annotation, and those of the fields of its records."""
    yield from _declarations(annotation, set())


def library_of(declaration: Any) -> Library | None:
    """Returns the library that gives a class or a piece of metadata its meaning; None where both know it."""
    if declaration is None or metadata_text(declaration) is not None or _is_subclass(declaration, WorkspacePath):
        return None
    if isinstance(declaration, msgspec.Meta) or _is_subclass(declaration, msgspec.Struct):
        return "msgspec"
    kind = declaration if isinstance(declaration, type) else type(declaration)
    if any(f"{base.__module__}.{base.__qualname__}" in _NOT_ENFORCED for base in kind.__mro__):
        return "unknown"
    roots = {base.__module__.partition(".")[0] for base in kind.__mro__}
    if roots & _PYDANTIC or any(mark in vars(base) for base in kind.__mro__ for mark in _PYDANTIC_MARKS):
        return "pydantic"
    return None if isinstance(declaration, type) else "unknown"


def is_field_info(value: Any) -> bool:
    """Whether a value is what pydantic's ``Field(…)`` returns."""
    return type(value).__name__ == "FieldInfo"


def metadata_text(metadata: Any) -> str | None:
    """Returns the description in a piece of metadata: a text, ``Doc("…")``, a unit; None for other metadata."""
    if isinstance(metadata, str):
        return metadata
    if isinstance(documentation := getattr(metadata, "documentation", None), str):
        return documentation
    unit = getattr(metadata, "unit", None)
    return f"Unit: {unit}" if type(metadata).__name__ == "Unit" and isinstance(unit, str) else None


def with_descriptions(annotation: Any, make: Callable[[str], Any]) -> Any:
    """Returns the annotation with ``make(text)`` for each description in it, and lists for iterables."""
    return _rewritten(annotation, make, ())


def field_descriptions(kind: type) -> dict[str, str]:
    """Returns the descriptions of a record's fields, from their annotations or a dataclass's metadata."""
    descriptions = {}
    for name, annotation in fields_of(kind).items():
        texts = (
            filter(None, map(metadata_text, get_args(annotation)[1:])) if get_origin(annotation) is Annotated else ()
        )
        if text := " ".join(texts):
            descriptions[name] = text
    for field in dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ():
        description = field.metadata.get("description") or getattr(field, "doc", None)
        if isinstance(description, str):
            descriptions[field.name] = description
    return descriptions


def fields_of(kind: type) -> Mapping[str, Any]:
    """Returns the annotations of a record's fields by name; empty for another class, or if a name is unresolved."""
    return {name: _unqualified(annotation) for name, annotation in _hints(kind).items()}


def required_keys(kind: Any) -> frozenset[str]:
    """Returns the required keys of a TypedDict; Python's own attribute ignores qualifiers in string annotations."""
    qualifiers = {name: getattr(get_origin(hint), "_name", None) for name, hint in _hints(kind).items()}
    return frozenset(
        name
        for name, qualifier in qualifiers.items()
        if qualifier == "Required" or (qualifier != "NotRequired" and name in kind.__required_keys__)
    )


def _hints(kind: type) -> dict[str, Any]:
    """Returns the annotations of a record's fields, with the qualifiers of a TypedDict's items."""
    names = _field_names(kind)
    try:
        hints = typing.get_type_hints(kind, include_extras=True) if names else {}
    except Exception:  # the schema library will report it, with a better message
        return {}
    return {name: hints[name] for name in names if name in hints}


def _declarations(annotation: Any, seen: set[int]) -> Iterator[Any]:
    if id(annotation) in seen:
        return
    seen.add(id(annotation))
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from args[1:]
        args = args[:1]
    elif origin is Literal:
        yield from (type(value) for value in args if isinstance(value, Enum))
        args = ()
    elif isinstance(origin, type):
        args = (origin, *args)
    for arg in (*args, *_aliased(annotation)):
        yield from _declarations(arg, seen)
    if isinstance(annotation, type) and origin is None:
        yield annotation
        for field in fields_of(annotation).values():
            yield from _declarations(field, seen)
        for field in dataclasses.fields(annotation) if dataclasses.is_dataclass(annotation) else ():
            if is_field_info(field.default):
                yield field.default


def _aliased(annotation: Any) -> tuple[Any, ...]:
    """Returns the types that an alias, a NewType or a type variable stands for."""
    if isinstance(annotation, typing.TypeVar):
        return (*annotation.__constraints__, annotation.__bound__)
    names = ("__value__", "__supertype__")
    is_name = not isinstance(annotation, type)
    return tuple(getattr(annotation, name) for name in names if is_name and hasattr(annotation, name))


def _rewritten(annotation: Any, make: Callable[[str], Any], inside: tuple[int, ...]) -> Any:
    if id(annotation) in inside:
        return annotation
    inside = (*inside, id(annotation))
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation in (collections.abc.Iterable, typing.Iterable):
        return list
    if origin is Annotated:
        inner = _rewritten(args[0], make, inside)
        metadata = [item if (text := metadata_text(item)) is None else make(text) for item in args[1:]]
        is_same = inner is args[0] and all(new is old for new, old in zip(metadata, args[1:], strict=True))
        return annotation if is_same else Annotated[inner, *metadata]
    if type(annotation).__name__ == "TypeAliasType":
        value = _rewritten(annotation.__value__, make, inside)
        return annotation if value is annotation.__value__ else value
    if origin in (None, Literal, collections.abc.Callable):
        return annotation
    changed = tuple(_rewritten(arg, make, inside) for arg in args)
    if origin is collections.abc.Iterable:
        return list[changed]  # type: ignore[valid-type] # a type made at run time
    if all(new is old for new, old in zip(changed, args, strict=True)):
        return annotation
    if origin in (Union, types.UnionType):
        return Union[changed]  # noqa: UP007 - as above
    return annotation.copy_with(changed) if hasattr(annotation, "copy_with") else origin[changed]


def _field_names(kind: type) -> list[str]:
    if isinstance(fields := getattr(kind, "model_fields", None), dict):
        return [*fields]
    if _is_subclass(kind, msgspec.Struct):
        return [field.name for field in msgspec.structs.fields(kind)]
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    is_record = typing.is_typeddict(kind) or hasattr(kind, "__total__") or hasattr(kind, "_fields")
    is_attrs = hasattr(kind, "__attrs_attrs__")
    return [*getattr(kind, "__annotations__", ())] if is_record or is_attrs else []


def _unqualified(annotation: Any) -> Any:
    """Returns the annotation of a TypedDict's item without ``Required``, ``NotRequired`` and ``ReadOnly``."""
    while getattr(get_origin(annotation), "_name", None) in ("Required", "NotRequired", "ReadOnly"):
        (annotation,) = get_args(annotation)
    return annotation


def _is_subclass(thing: Any, kind: type) -> bool:
    return isinstance(thing, type) and issubclass(thing, kind)
