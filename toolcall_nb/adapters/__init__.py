"""Adapters: read streams, replies and message lists of SDKs and agent libraries as events, without importing them.

recognise.py decides once what an object is and lists all `FORMATS`; reading.py reads it. Each provider or framework
has a package, whose ``__init__`` names the formats that it reads. base.py defines `Adapter` and `Format`, and
assembler.py turns deltas into well-formed events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcall_nb.core.lazy_imports import lazy_members

if TYPE_CHECKING:
    from toolcall_nb.adapters.base import Adapter, Format
    from toolcall_nb.adapters.own_formats import ENVELOPES
    from toolcall_nb.adapters.reading import AnyAdapter, events_of, items_of, read_stream, read_stream_async
    from toolcall_nb.adapters.recognise import (
        FORMATS,
        TYPE_NAMES,
        Recognised,
        format_of_item,
        format_of_whole,
        recognise_source,
    )
    from toolcall_nb.core.sdk_objects import SourceKind

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

__getattr__ = lazy_members(
    __name__,
    {
        "ENVELOPES": ".own_formats",
        "FORMATS": ".recognise",
        "TYPE_NAMES": ".recognise",
        "Adapter": ".base",
        "AnyAdapter": ".reading",
        "Format": ".base",
        "Recognised": ".recognise",
        "SourceKind": "toolcall_nb.core.sdk_objects",
        "events_of": ".reading",
        "format_of_item": ".recognise",
        "format_of_whole": ".recognise",
        "items_of": ".reading",
        "read_stream": ".reading",
        "read_stream_async": ".reading",
        "recognise_source": ".recognise",
    },
)
