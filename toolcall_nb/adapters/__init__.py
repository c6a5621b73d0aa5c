"""Adapters: what SDKs and agent libraries give, as events. Nothing of theirs is imported.

reading.py      which format a thing has; streams and whole things of any
base.py         what an adapter is
assembling.py   from any provider's deltas to well-formed events
kinds.py        what a thing is: whole, stream, what must be entered; the names of the types
plain.py        SDK objects as JSON values
"""

from __future__ import annotations

from toolcall_nb.adapters.base import Adapter, Format
from toolcall_nb.adapters.reading import (
    FORMATS,
    AnyAdapter,
    events_of,
    format_of_item,
    format_of_whole,
    read,
    read_async,
)
from toolcall_nb.adapters.recognise import TYPE_NAMES, Kind, items_of, kind_of
from toolcall_nb.adapters.wires import ENVELOPES

__all__ = [
    "ENVELOPES",
    "FORMATS",
    "TYPE_NAMES",
    "Adapter",
    "AnyAdapter",
    "Format",
    "Kind",
    "events_of",
    "format_of_item",
    "format_of_whole",
    "items_of",
    "kind_of",
    "read",
    "read_async",
]
