"""Reads provider streams through an adapter, and generates broken streams; main entry point: `read_items`."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

from tests.support.strategies import json_values
from toolcall_nb.adapters import events_of
from toolcall_nb.adapters.base import Adapter
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.sources.sdk_streams import ItemReader


def read_events(items: Iterable[Any], adapter: Adapter | None = None) -> list[Event]:
    """Returns the events of a stream, as ``adapter`` reads it; without one, the format is recognised."""
    chosen = adapter or ItemReader()
    return [*(event for item in items for event in chosen.take(item)), *chosen.close()]


def read_stream(items: Iterable[Any]) -> Iterator[Event]:
    """Yields the events of a stream. An exception of the stream is raised after everything open was closed."""
    reader = ItemReader()
    try:
        for item in items:
            yield from reader.take(item)
    except Exception:
        yield from reader.close()
        raise
    yield from reader.close()


async def read_stream_async(items: AsyncIterable[Any]) -> AsyncIterator[Event]:
    """Yields the events of an asynchronous stream, as `read_stream` does."""
    reader = ItemReader()
    try:
        async for item in items:
            for event in reader.take(item):
                yield event
    except Exception:
        for event in reader.close():
            yield event
        raise
    for event in reader.close():
        yield event


def read_items(items: Iterable[Any], adapter: Adapter | None = None) -> Transcript:
    """Returns the transcript of a stream."""
    return Transcript.from_events(read_events(items, adapter))


def read_whole(thing: Any) -> Transcript:
    """Returns the transcript of a complete reply or a list of messages."""
    return Transcript.from_events(events_of(thing))


def prefixes(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """Yields each non-empty prefix of a stream."""
    return (items[:end] for end in range(1, len(items) + 1))


@st.composite
def broken_streams(draw: st.DrawFn, items: Sequence[Any]) -> list[Any]:
    """Generates variants of the stream: values replaced by any JSON, and items left out, repeated and moved."""
    found = copy.deepcopy(draw(st.lists(st.sampled_from(list(items)), max_size=len(items) + 4)))
    for item in found:
        if draw(st.booleans()):
            _break(draw, item)
    return found


def _break(draw: st.DrawFn, value: Any) -> None:
    """Replaces one value, at any depth."""
    places = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not places:
        return
    place = draw(st.sampled_from(places))
    if isinstance(value[place], dict | list) and value[place] and draw(st.booleans()):
        _break(draw, value[place])
    else:
        value[place] = draw(json_values())
