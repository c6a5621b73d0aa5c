"""Decides what an object is: which format it has, and how its events are read. `recognise_source` begins.

An object is recognised by its type's name and its shape; it is not called, entered or consumed. Recognising may try
all formats, so callers do it once and pass the `Recognised` on. To add a provider, write a module or package with a
`Format`, and list it in `FORMATS`.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping
from itertools import islice
from typing import Any

from msgspec import Struct

from toolcall_nb.adapters import ai_sdk, anthropic, bedrock, cohere, google, langchain, mistral, ollama, openai
from toolcall_nb.adapters import own_formats as own
from toolcall_nb.adapters import pydantic_ai as pydantic
from toolcall_nb.adapters.base import Format, never
from toolcall_nb.adapters.common_events import is_keepalive
from toolcall_nb.core.events import Event
from toolcall_nb.core.sdk_objects import SDK_REPLY_TYPES, SDK_STREAM_TYPES, SourceKind, class_names, type_name
from toolcall_nb.errors import UsageError

FORMATS: tuple[Format, ...] = (
    pydantic.PYDANTIC_AI,
    anthropic.ANTHROPIC,
    anthropic.ANTHROPIC_MESSAGES,
    google.GENERATE_CONTENT,
    google.GOOGLE_CONTENTS,
    google.INTERACTIONS,
    bedrock.CONVERSE,
    bedrock.CONVERSE_MESSAGES,
    cohere.COHERE_CHAT,
    mistral.MISTRAL_CONVERSATIONS,
    ollama.OLLAMA_CHAT,
    openai.OPENAI_RESPONSES,
    openai.CHAT_COMPLETIONS,
    openai.OPENAI_MESSAGES,
    langchain.LANGCHAIN,
    langchain.LANGGRAPH,
    ai_sdk.UI_MESSAGES,
    ai_sdk.UI_CHUNKS,
    own.AG_UI,
    own.CHAT_SSE,
    own.ENVELOPES,
    own.STAGE_LOG,
    own.TEXT,
)
"""All formats. The first one that recognises an object reads it."""

_ITEM_FORMATS = tuple(each for each in FORMATS if each.is_item is not never)
_WHOLE_FORMATS = tuple(each for each in FORMATS if each.is_whole is not never)
_FORMATS_OF_PACKAGE: Mapping[str, tuple[Format, ...]] = {
    "anthropic": (anthropic.ANTHROPIC, anthropic.ANTHROPIC_MESSAGES),
    "cohere": (cohere.COHERE_CHAT,),
    "google": (google.GENERATE_CONTENT, google.GOOGLE_CONTENTS, google.INTERACTIONS),
    "langchain_core": (langchain.LANGCHAIN, langchain.LANGGRAPH),
    "ollama": (ollama.OLLAMA_CHAT,),
    "openai": (openai.OPENAI_RESPONSES, openai.CHAT_COMPLETIONS, openai.OPENAI_MESSAGES),
    "pydantic_ai": (pydantic.PYDANTIC_AI,),
}
"""The formats of the objects that a package defines. Mappings, and objects of other packages, may be of any format."""

TYPE_NAMES: tuple[tuple[str, str], ...] = (*SDK_REPLY_TYPES, *SDK_STREAM_TYPES)
"""Module and class of all SDK types that a display hook can be registered for."""

_BEDROCK_STREAM = ("botocore.eventstream", "EventStream")
"""boto3 always returns it inside a dictionary, so that no display hook needs its name."""

_LOOK_AT = 4


class Recognised(Struct, frozen=True):
    """An object with its kind. ``format`` is that of a whole thing, or of the items in a list; None if unknown yet."""

    thing: Any
    kind: SourceKind
    format: Format | None = None


def recognise_source(thing: Any) -> Recognised:
    """Recognises any object. Never raises. A `Recognised` is returned as it is."""
    if type(thing) is Recognised:
        return thing
    cls = type(thing)
    if issubclass(cls, type):
        return Recognised(thing, SourceKind.NOTHING)
    if (whole := format_of_whole(thing)) is not None:
        return Recognised(thing, SourceKind.WHOLE, whole)
    if cls is list or cls is tuple:
        items = _format_in_list(thing)
        return Recognised(thing, SourceKind.NOTHING if items is None else SourceKind.STREAM, items)
    return Recognised(thing, _source_kind(thing, _class_behind(thing)))


def format_of_item(item: Any) -> Format | None:
    """Returns the format whose streams have such items."""
    return next((each for each in _possible_formats(item, _ITEM_FORMATS) if _is_item(each, item)), None)


def format_of_whole(thing: Any) -> Format | None:
    """Returns the format of a complete reply or of a list of messages."""
    for format in _possible_formats(thing, _WHOLE_FORMATS):
        try:
            if format.is_whole(thing):
                return format
        except Exception:  # an object that raises when it is looked at has no known format
            continue
    return None


def events_of(thing: Any) -> Iterable[Event]:
    """Returns the events of a complete reply or a list of messages. Raises `UsageError` for anything else."""
    if type(thing) is Recognised:
        format, thing = (thing.format if thing.kind is SourceKind.WHOLE else None), thing.thing
    else:
        format = format_of_whole(thing)
    if format is None:
        raise unreadable(thing)
    return format.read_whole(thing)


def items_of(stream: Any) -> Iterable[Any] | AsyncIterable[Any]:
    """Returns what to iterate over for the items of a stream: in most cases the stream itself.

    Raises `UsageError` for an object that is not iterable.
    """
    inner = stream["stream"] if _holds_bedrock_stream(stream) else pydantic.streamed_run_items(stream)
    if inner is not None:
        return inner
    if not isinstance(stream, Iterable | AsyncIterable):
        raise UsageError(f"{type(stream).__qualname__} gives no items. Pass the stream that it holds.")
    return stream


def unreadable(thing: Any) -> UsageError:
    """Returns the error for an object of no known format."""
    titles = "; ".join(each.title for each in FORMATS)
    return UsageError(f"An object of the type {type_name(thing)} cannot be read. Pass one of these: {titles}.")


def _holds_bedrock_stream(thing: Any) -> bool:
    """Whether it is the result of boto3's ``converse_stream``: a dictionary that contains the stream."""
    return type(thing) is dict and "ResponseMetadata" in thing and hasattr(type(thing.get("stream")), "__iter__")


def _possible_formats(thing: Any, formats: tuple[Format, ...]) -> tuple[Format, ...]:
    package, _, _ = str(type(thing).__module__).partition(".")
    return _FORMATS_OF_PACKAGE.get(package, formats)


def _is_item(format: Format, item: Any) -> bool:
    try:
        return format.is_item(item)
    except Exception:  # the same
        return False


def _format_in_list(things: list[Any] | tuple[Any, ...]) -> Format | None:
    """Returns the format of the first items, if all of them have one."""
    first = list(islice((thing for thing in things if not is_keepalive(thing)), _LOOK_AT))
    format = format_of_item(first[0]) if first else None
    if format is None:
        return None
    are_items = all(_is_item(format, item) or format_of_item(item) is not None for item in first[1:])
    return format if are_items else None


def _class_behind(thing: Any) -> type:
    """Returns the class of the thing; of a proxy that of what it stands for.

    Packages that trace an SDK put such a proxy around its streams. It has the methods of both kinds of streams,
    whichever it stands for.
    """
    try:
        cls = thing.__class__
    except Exception:  # the same
        return type(thing)
    return cls if isinstance(cls, type) else type(thing)


def _source_kind(thing: Any, cls: type) -> SourceKind:
    names = class_names(cls)
    if _BEDROCK_STREAM in names or _holds_bedrock_stream(thing):
        return SourceKind.STREAM
    for name in names:
        if name in SDK_STREAM_TYPES:
            return SDK_STREAM_TYPES[name]
    methods = {name for base in cls.__mro__ for name in vars(base)}
    if {"__anext__", "__aiter__"} <= methods:
        return SourceKind.ASYNC_STREAM
    if {"__next__", "__iter__"} <= methods:
        return SourceKind.STREAM
    return SourceKind.ASYNC_MANAGER if _opens_pydantic_ai_run(thing) else SourceKind.NOTHING


def _opens_pydantic_ai_run(thing: Any) -> bool:
    """Whether a function of pydantic-ai returned it that is decorated with ``asynccontextmanager``."""
    if class_names(type(thing))[0] != ("contextlib", "_AsyncGeneratorContextManager"):
        return False
    module = getattr(vars(thing).get("func"), "__module__", None)
    return isinstance(module, str) and module.startswith("pydantic_ai.")
