"""Adapters: read streams, replies and message lists of SDKs and agent libraries as events, without importing them.

recognise.py decides once what an object is and lists all `FORMATS`; reading.py reads it. Each provider or framework
has a package, whose ``__init__`` names the formats that it reads. base.py defines `Adapter` and `Format`, and
assembler.py turns deltas into well-formed events.
"""

from __future__ import annotations

from typing import Any
from warnings import warn

from toolcall_nb.adapters.base import Adapter, Format
from toolcall_nb.adapters.own_formats import ENVELOPES
from toolcall_nb.adapters.reading import AnyAdapter, events_of, items_of, read_stream, read_stream_async
from toolcall_nb.adapters.recognise import (
    FORMATS,
    TYPE_NAMES,
    Recognised,
    SourceKind,
    format_of_item,
    format_of_whole,
    recognise_source,
)

__all__ = [
    "ENVELOPES",
    "FORMATS",
    "TYPE_NAMES",
    "Adapter",
    "AnyAdapter",
    "Format",
    "Recognised",
    "SourceKind",
    "events_of",
    "format_of_item",
    "format_of_whole",
    "items_of",
    "read_stream",
    "read_stream_async",
    "recognise_source",
]


def __getattr__(name: str) -> Any:
    """Returns names of version 0.1 with a `DeprecationWarning`."""
    renamed = {
        "Kind": ("SourceKind", SourceKind),
        "read": ("read_stream", read_stream),
        "read_async": ("read_stream_async", read_stream_async),
        "kind_of": ("recognise_source(thing).kind", lambda thing: recognise_source(thing).kind),
    }
    if name not in renamed:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new, value = renamed[name]
    warn(f"{__name__}.{name} is now {new}", DeprecationWarning, stacklevel=2)
    return value
