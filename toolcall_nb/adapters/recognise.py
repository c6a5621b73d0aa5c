"""What a thing is, by its type and its shape: nothing is called, entered or consumed to find out.

`kind_of` is for a caller who was handed anything at all; the types that it knows are named in
`toolcall_nb.core.sdk_types`.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from enum import StrEnum
from typing import Any

from toolcall_nb.adapters.parts import is_sign_of_life
from toolcall_nb.adapters.plain import class_names
from toolcall_nb.adapters.pydantic_ai import stream as pydantic_ai
from toolcall_nb.adapters.reading import format_of_item, format_of_whole
from toolcall_nb.core import sdk_types as type_names
from toolcall_nb.errors import UsageError

__all__ = ["STREAM_TYPES", "TYPE_NAMES", "WHOLE_TYPES", "Kind", "items_of", "kind_of"]


class Kind(StrEnum):
    """What can be done with a thing."""

    WHOLE = "whole"
    """A whole reply, a result, a list of messages: `toolcall_nb.adapters.events_of` reads it."""
    STREAM = "stream"
    """Iterated once, with ``for``: `read` reads it. An iterator of unknown items is one too."""
    ASYNC_STREAM = "async stream"
    """Iterated once, with ``async for``: `read_async` reads it."""
    MANAGER = "manager"
    """Entered with ``with``, it gives a stream."""
    ASYNC_MANAGER = "async manager"
    """Entered with ``async with``, it gives a stream."""
    NOTHING = "nothing"
    """Nothing that can be read here."""


WHOLE_TYPES = type_names.SDK_REPLY_TYPES
STREAM_TYPES: dict[tuple[str, str], Kind] = {name: Kind(kind) for name, kind in type_names.SDK_STREAM_TYPES.items()}
"""Module and class of streams, and of what must be entered to get one."""

TYPE_NAMES: tuple[tuple[str, str], ...] = (*WHOLE_TYPES, *STREAM_TYPES)
"""All of them, for whoever shows them by name."""

_BEDROCK = ("botocore.eventstream", "EventStream")
"""Of Bedrock's packages only this one has a stream of its own; it is known here, and no display hook needs it."""

_LOOK_AT = 4


def kind_of(thing: Any) -> Kind:
    """What the thing is. Never raises."""
    if issubclass(type(thing), type):
        return Kind.NOTHING
    if format_of_whole(thing) is not None:
        return Kind.WHOLE
    cls = type(thing)
    if _BEDROCK in class_names(cls) or _holds_bedrocks(thing):
        return Kind.STREAM
    for name in class_names(cls):
        if name in STREAM_TYPES:
            return STREAM_TYPES[name]
    if cls is list or cls is tuple:
        return Kind.STREAM if _holds_items(thing) else Kind.NOTHING
    if _has(cls, "__anext__", "__aiter__"):
        return Kind.ASYNC_STREAM
    if _has(cls, "__next__", "__iter__"):
        return Kind.STREAM
    return Kind.ASYNC_MANAGER if _opens_a_run(thing) else Kind.NOTHING


def items_of(stream: Any) -> Iterable[Any] | AsyncIterable[Any]:
    """What is iterated for the items of a stream, entered where it must be: mostly the stream itself.

    Raises `UsageError` for what is neither iterable nor asynchronously so.
    """
    own = stream["stream"] if _holds_bedrocks(stream) else pydantic_ai.items_of(stream)
    if own is not None:
        return own
    if not isinstance(stream, Iterable | AsyncIterable):
        raise UsageError(f"{type(stream).__qualname__} gives no items. Pass the stream that it holds.")
    return stream


def _holds_bedrocks(thing: Any) -> bool:
    """Whether it is what boto3's ``converse_stream`` gives: a dictionary with the stream in it."""
    return type(thing) is dict and "ResponseMetadata" in thing and hasattr(type(thing.get("stream")), "__iter__")


def _has(cls: type, *methods: str) -> bool:
    return all(any(method in vars(base) for base in cls.__mro__) for method in methods)


def _holds_items(things: list[Any] | tuple[Any, ...]) -> bool:
    first = [thing for thing in things if not is_sign_of_life(thing)][:_LOOK_AT]
    return bool(first) and all(format_of_item(item) is not None for item in first)


def _opens_a_run(thing: Any) -> bool:
    """Whether it is what a function of pydantic-ai gave that is decorated with ``asynccontextmanager``."""
    if class_names(type(thing))[0] != ("contextlib", "_AsyncGeneratorContextManager"):
        return False
    module = getattr(vars(thing).get("func"), "__module__", None)
    return isinstance(module, str) and module.startswith("pydantic_ai.")
