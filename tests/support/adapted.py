"""Streams through an adapter: what they amount to, and streams of which something is not as it should be."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

from tests.support.strategies import json_values
from toolcall_nb.adapters import AnyAdapter, events_of
from toolcall_nb.adapters.base import Adapter
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Transcript

__all__ = ["broken", "cut_anywhere", "read_events", "read_items", "read_whole"]


def read_events(items: Iterable[Any], adapter: Adapter | None = None) -> list[Event]:
    """The events of a stream: of any known format, or of the adapter that is given."""
    chosen = adapter or AnyAdapter()
    return [*(event for item in items for event in chosen.take(item)), *chosen.close()]


def read_items(items: Iterable[Any], adapter: Adapter | None = None) -> Transcript:
    """What a stream amounts to."""
    return Transcript.from_events(read_events(items, adapter))


def read_whole(thing: Any) -> Transcript:
    """What a whole reply, or a list of messages, amounts to."""
    return Transcript.from_events(events_of(thing))


def cut_anywhere(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """The beginnings of a stream, one after each item."""
    return (items[:end] for end in range(1, len(items) + 1))


@st.composite
def broken(draw: st.DrawFn, items: Sequence[Any]) -> list[Any]:
    """The stream with some values replaced by any JSON, and with items left out, repeated and moved."""
    found = copy.deepcopy(draw(st.lists(st.sampled_from(list(items)), max_size=len(items) + 4)))
    for item in found:
        if draw(st.booleans()):
            _break(draw, item)
    return found


def _break(draw: st.DrawFn, value: Any) -> None:
    """Replace one value, anywhere within."""
    places = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not places:
        return
    place = draw(st.sampled_from(places))
    if isinstance(value[place], dict | list) and value[place] and draw(st.booleans()):
        _break(draw, value[place])
    else:
        value[place] = draw(json_values())
