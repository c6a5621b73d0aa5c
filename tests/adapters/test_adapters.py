"""Every known object is recognised as exactly one format, any other object as none, and no object is changed.

Also what a thing is without being touched, and the names of the types, held against the packages that are installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import io
import json
import pathlib
import sys
from collections import OrderedDict, UserDict, deque
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy
import pandas
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from pydantic_ai import messages as pm

from tests.support.adapter_streams import read_stream, read_stream_async
from toolcall_nb.adapters import (
    FORMATS,
    TYPE_NAMES,
    SourceKind,
    events_of,
    format_of_item,
    format_of_whole,
    items_of,
    recognise_source,
)
from toolcall_nb.core import events as ev
from toolcall_nb.core.sdk_objects import SDK_STREAM_TYPES, as_json_value
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.errors import UsageError
from toolcall_nb.sources.sdk_streams import ItemReader

# The table of recognition -------------------------------------------------------------------------------------

HI = [{"type": "text", "text": "Hi"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}

ITEMS: list[tuple[str, Any]] = [
    ("pydantic-ai", pm.PartStartEvent(index=0, part=pm.TextPart("Hi"))),
    ("pydantic-ai", {"event_kind": "part_start", "index": 0, "part": {"part_kind": "text", "content": "Hi"}}),
    ("pydantic-ai", pm.ModelResponse([pm.TextPart("Hi")])),
    ("anthropic", {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}}),
    ("anthropic", {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}),
    ("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ("google", {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}}]}),
    ("google-interactions", {"event_type": "interaction.start", "interaction": {}}),
    ("bedrock", {"contentBlockDelta": {"delta": {"text": "Hi"}, "contentBlockIndex": 0}}),
    ("cohere", {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "Hi"}}}}),
    ("ollama", {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": "Hi"}, "done": False}),
    ("openai-chat", {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Hi"}}]}),
    ("openai-responses", {"type": "response.output_text.delta", "item_id": "m", "delta": "Hi"}),
    ("openai-responses", {"type": "error", "sequence_number": 3, "message": "It broke"}),
    ("langchain", AIMessageChunk(content="Hi")),
    ("langchain", {"type": "AIMessageChunk", "content": "Hi"}),
    ("langgraph", (AIMessageChunk(content="Hi"), {"langgraph_node": "agent"})),
    ("langgraph", ("messages", (AIMessageChunk(content="Hi"), {}))),
    ("langgraph", (("inner:1",), "updates", {"agent": {"messages": [AIMessage("Hi")]}})),
    ("langgraph", {"agent": {"messages": [AIMessage("Hi")]}}),
    ("langgraph", {"messages": [AIMessage("Hi")]}),
    ("langgraph", {"event": "on_chat_model_stream", "run_id": "r", "name": "m", "data": {}}),
    ("langgraph", {"type": "event", "method": "values", "params": {"namespace": [], "data": {}}}),
    ("langgraph", {"type": "updates", "ns": (), "data": {}}),
    ("ui-messages", {"id": "m", "role": "assistant", "parts": HI}),
    ("ui-chunks", ev.TextDelta("t", "Hi")),
    ("ui-chunks", {"type": "text-delta", "id": "t", "delta": "Hi"}),
    ("ui-chunks", {"type": "start", "messageId": "m"}),
    ("ui-chunks", {"type": "error", "errorText": "It broke"}),
    ("ui-chunks", {"type": "data-weather", "data": 1}),
    ("ag-ui", {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}),
    ("ag-ui", {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "Hi"}),
    ("chat", {"type": "tool_usage", "tools": ["weather"]}),
    ("chat", {"type": "chunk", "content": "Hi"}),
    ("chat", {"type": "end", "thread_id": "t"}),
    ("chat", {"type": "error", "message": "It broke"}),
    ("provider", {"type": "provider-event", "data": {"type": "text-delta", "textDelta": "Hi"}}),
    ("provider", {"type": "latitude-event", "data": {"type": "provider-completed", "response": {"text": "Hi"}}}),
    ("stages", {"stage": "start", "id": "a", "name": "t", "parameters": ""}),
    ("stages", {"stage": "end", "id": "a", "name": "t", "parameters": "{}", "result": "1"}),
    ("text", "Hi"),
    ("text", ""),
]

WHOLES: list[tuple[str, Any]] = [
    ("pydantic-ai", pm.ModelResponse([pm.TextPart("Hi")])),
    ("pydantic-ai", [pm.ModelRequest([pm.UserPromptPart("Hi")])]),
    ("pydantic-ai", [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]}]),
    ("anthropic", {"type": "message", "role": "assistant", "content": HI, "model": "m", "stop_reason": "end_turn"}),
    (
        "anthropic-messages",
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "3"}]}],
    ),
    (
        "anthropic-messages",
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}],
    ),
    ("google", {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}}]}),
    ("google-contents", [{"role": "user", "parts": [{"text": "Hi"}]}]),
    ("google-interactions", {"object": "interaction", "steps": []}),
    ("bedrock", {"output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}}, "stopReason": "end_turn"}),
    (
        "bedrock-messages",
        [{"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "f", "input": {}}}]}],
    ),
    ("mistral", {"object": "conversation.response", "outputs": []}),
    ("cohere", {"message": {"role": "assistant", "content": HI}, "finish_reason": "COMPLETE"}),
    ("ollama", {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": "Hi"}, "done": True}),
    ("openai-responses", {"object": "response", "output": [{"type": "message", "content": []}]}),
    ("openai-chat", {"object": "chat.completion", "choices": [{"index": 0, "message": {"content": "Hi"}}]}),
    ("openai-messages", [{"role": "user", "content": "Hi"}]),
    ("openai-messages", [{"role": "assistant", "content": None, "tool_calls": [CALL]}]),
    (
        "openai-messages",
        [{"role": "user", "content": HI}, {"role": "assistant", "tool_calls": [CALL], "content": None}],
    ),
    ("langchain", AIMessage("Hi")),
    ("langchain", [AIMessage("Hi")]),
    ("langchain", [{"type": "human", "data": {"content": "Hi"}}]),
    ("langgraph", {"messages": [AIMessage("Hi")]}),
    ("langgraph", {"messages": [{"type": "human", "content": "Hi"}]}),
    ("ui-messages", {"id": "m", "role": "assistant", "parts": HI}),
    ("ui-messages", [{"id": "m", "role": "user", "parts": []}]),
]


ALSO = {"anthropic-messages": ["openai-messages"], "bedrock-messages": ["openai-messages"]}
"""A list of ``role`` and ``content`` is OpenAI's unless its blocks are another provider's, which comes first."""


def name_of(pair: Any) -> str:
    return str(pair[0])


@pytest.mark.parametrize("pair", ITEMS, ids=name_of)
def test_an_item_has_exactly_one_format(pair: tuple[str, Any]) -> None:
    name, item = pair
    assert [known.name for known in FORMATS if known.is_item(item)] == [name]


@pytest.mark.parametrize("pair", WHOLES, ids=name_of)
def test_a_complete_object_has_exactly_one_format(pair: tuple[str, Any]) -> None:
    name, thing = pair
    assert [known.name for known in FORMATS if known.is_whole(thing)] in ([name], [name, *ALSO.get(name, ())])
    assert recognise_source(thing).kind is SourceKind.WHOLE


@pytest.mark.parametrize("pair", ITEMS, ids=name_of)
def test_a_stream_of_one_item_can_be_read(pair: tuple[str, Any]) -> None:
    transcript = Transcript.from_events(read_stream(iter([pair[1]])))
    assert not transcript.diagnostics
    assert [*read_stream(iter([pair[1]]))], "it says something, if only that it ended"


@pytest.mark.parametrize("pair", WHOLES, ids=name_of)
def test_a_complete_object_can_be_read(pair: tuple[str, Any]) -> None:
    assert not Transcript.from_events(events_of(pair[1])).diagnostics


def test_every_format_has_an_example() -> None:
    assert {name for name, _ in [*ITEMS, *WHOLES]} == {known.name for known in FORMATS}
    assert len({known.name for known in FORMATS}) == len(FORMATS)


# Foreign things -----------------------------------------------------------------------------------------------


class Raising:
    """Raises for every attribute."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"asked for {name}")

    def __repr__(self) -> str:
        raise RuntimeError("asked for its text")

    def __bool__(self) -> bool:
        raise RuntimeError("asked whether it is true")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("asked whether it is equal")

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("iterated")


class Inventing:
    """Has every attribute."""

    def __getattr__(self, name: str) -> Any:
        return Inventing()

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("called")


class Lying:
    """Claims another class, and raises while doing so."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("asked for its class")

    @__class__.setter
    def __class__(self, value: Any) -> None: ...


class Watched:
    """Records which attributes were read."""

    asked: list[str]

    def __getattribute__(self, name: str) -> Any:
        if name not in ("__class__", "asked"):
            Watched.asked.append(name)
        return object.__getattribute__(self, name)


def recursive_list() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def recursive_dict() -> dict[str, Any]:
    found: dict[str, Any] = {}
    found["messages"] = [found]
    found["data"] = found["parts"] = found["message"] = found
    return found


FOREIGN: list[Any] = [
    *(None, True, 0, -1, 3.5, 2j, b"Hi", bytearray(b"Hi"), object(), object, type, Ellipsis, NotImplemented),
    *((), [], {}, set(), frozenset({1}), deque([1]), range(3), slice(1), OrderedDict(a=1), UserDict(a=1)),
    *([1, 2], ["a", "b"], ("a", "b"), ("user", "Hi"), [None], [[]], [{}], [{"a": 1}], ({}, {}), (1, {})),
    *({"type": "config"}, {"type": 3}, {"type": None}, {"role": "admin"}, {"id": 1, "name": "x"}, {"data": []}),
    *({"messages": []}, {"messages": ["a"]}, {"messages": 3}, {"event": "click", "data": {}}, {"event": "on_call"}),
    *({"role": "user", "parts": [{"kind": "text"}]}, {"kind": "request"}, {"event_kind": "mouse_down"}, {1: 2}),
    *({"method": "GET", "params": {}, "type": "http"}, {"content": "x"}, {"model": "resnet", "lr": 0.1}),
    *({"type": "start", "at": 3}, {"type": "finish", "line": 1}, {"type": "file", "path": "a"}, {"type": "error"}),
    *([{"name": "x", "type": "text"}], [{"type": "FeatureCollection", "features": []}], {"output": [1]}),
    *(sys, json, len, lambda: None, Exception("x"), KeyError, pathlib.Path("."), io.StringIO("x"), io.BytesIO(b"x")),
    *(pandas.DataFrame({"messages": [1], "role": ["user"]}), pandas.Series([1]), numpy.zeros(3), numpy.array([[1]])),
    *(recursive_list(), recursive_dict(), Raising(), Inventing(), Raising, Inventing, [Raising()]),
    *({"messages": Raising()}, {"messages": [Raising()]}, {"type": Raising()}, {"event": Raising()}),
    *({"choices": ["a"]}, {"role": Raising(), "parts": [Raising()]}, {"error": "timeout", "retries": 3}),
    *(pm.TextPart, AIMessage, pm.TextPart("Hi"), {"choices": 3}),
]  # fmt: skip


@pytest.mark.parametrize("thing", FOREIGN, ids=lambda thing: type(thing).__name__)
def test_an_unrelated_object_has_no_format(thing: Any) -> None:
    assert format_of_item(thing) is None
    assert format_of_whole(thing) is None
    assert recognise_source(thing).kind in (SourceKind.NOTHING, SourceKind.STREAM)


def test_there_are_many_unrelated_objects() -> None:
    assert len(FOREIGN) > 80


def test_an_object_that_lies_about_its_class_has_no_format() -> None:
    assert format_of_item(Lying()) is None
    assert format_of_whole(Lying()) is None
    assert recognise_source(Lying()).kind is SourceKind.NOTHING


def test_an_unknown_object_is_recognised_without_reading_its_attributes() -> None:
    Watched.asked = []
    thing = Watched()
    assert (format_of_item(thing), format_of_whole(thing), recognise_source(thing).kind) == (
        None,
        None,
        SourceKind.NOTHING,
    )
    assert Watched.asked == []


def test_an_iterator_is_not_consumed() -> None:
    items = iter(["a", "b"])
    assert recognise_source(items).kind is SourceKind.STREAM
    assert [*items] == ["a", "b"]


class Long(list[Any]):
    """A list that counts how far it was read."""

    read = 0

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        Long.read += len(found) if isinstance(index, slice) else 1
        return found

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            Long.read += 1
            yield item


@pytest.mark.parametrize("item", [{"role": "user", "content": "x"}, AIMessage("x"), 5, {"a": 1}])
def test_only_the_beginning_of_a_long_list_is_read(item: Any) -> None:
    Long.read = 0
    long = Long([item] * 1000)
    format_of_whole(long)
    recognise_source(long)
    assert Long.read < 20 * len(FORMATS)


def test_the_error_for_an_unreadable_object_lists_the_known_formats() -> None:
    for thing in (None, 5, b"x", ("a", "b"), Raising()):
        with pytest.raises(UsageError, match=r"type .* cannot be read\. Pass .*Anthropic.*LangGraph"):
            [*read_stream(iter([thing]))]
        with pytest.raises(UsageError, match=r"cannot be read\. Pass one of these"):
            events_of(thing)


# Streams ------------------------------------------------------------------------------------------------------


class _LostError(Exception):
    pass


def test_an_exception_of_a_stream_is_raised_after_everything_open_was_closed() -> None:
    def broken() -> Iterator[str]:
        yield "Hel"
        raise _LostError

    found: list[ev.Event] = []
    with pytest.raises(_LostError):
        found.extend(read_stream(broken()))
    assert [event.type for event in found] == ["start", "text-start", "text-delta", "text-end", "finish"]


def test_an_asynchronous_stream_that_raises_is_closed_too() -> None:
    async def broken() -> AsyncIterator[str]:
        yield "Hel"
        raise _LostError

    found: list[ev.Event] = []

    async def gather() -> None:
        async for event in read_stream_async(broken()):
            found.append(event)

    with pytest.raises(_LostError):
        asyncio.run(gather())
    assert found[-1].type == "finish"


def test_a_stream_without_items_has_no_events() -> None:
    assert [*read_stream(iter([]))] == []
    assert ItemReader().close() == []


def test_pieces_of_text_are_one_text() -> None:
    [message] = Transcript.from_events(read_stream(["Hel", "", "lo"])).messages
    assert message.text == "Hello"


# Kinds --------------------------------------------------------------------------------------------------------


async def _asynchronous() -> AsyncIterator[str]:
    yield "Hi"


@contextlib.contextmanager
def _manager() -> Iterator[str]:
    yield "Hi"


@pytest.mark.parametrize(
    ("thing", "kind"),
    [
        (iter(["Hi"]), SourceKind.STREAM),
        ((piece for piece in "Hi"), SourceKind.STREAM),
        (map(str, [1]), SourceKind.STREAM),
        (_asynchronous(), SourceKind.ASYNC_STREAM),
        ([{"type": "text-delta", "id": "t", "delta": "Hi"}], SourceKind.STREAM),
        ([5], SourceKind.NOTHING),
        ("Hi", SourceKind.NOTHING),
        (_manager(), SourceKind.NOTHING),
        (_asynchronous, SourceKind.NOTHING),
        (AIMessage, SourceKind.NOTHING),
    ],
)
def test_each_object_has_the_expected_kind(thing: Any, kind: SourceKind) -> None:
    assert recognise_source(thing).kind is kind


def test_items_of_returns_most_streams_themselves() -> None:
    items = iter(["Hi"])
    assert items_of(items) is items
    with pytest.raises(UsageError, match="gives no items"):
        items_of(5)


@pytest.mark.parametrize("name", TYPE_NAMES, ids=".".join)
def test_every_named_sdk_type_exists(name: tuple[str, str]) -> None:
    module, cls = name
    found = getattr(importlib.import_module(module), cls)
    assert (found.__module__, found.__name__) == name


@pytest.mark.parametrize("name", SDK_STREAM_TYPES, ids=".".join)
def test_every_stream_type_has_the_methods_of_its_kind(name: tuple[str, str]) -> None:
    cls = getattr(importlib.import_module(name[0]), name[1])
    method = {
        SourceKind.STREAM: ("__iter__", "stream_response"),
        SourceKind.ASYNC_STREAM: ("__aiter__", "stream_response"),
        SourceKind.MANAGER: ("__enter__",),
        SourceKind.ASYNC_MANAGER: ("__aenter__",),
    }[SDK_STREAM_TYPES[name]]
    assert any(hasattr(cls, one) for one in method)


# JSON ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("thing", "value"),
    [
        (float("nan"), "nan"),
        ({1: (2, {3})}, {"1": [2, [3]]}),
        (b"\xff", "/w=="),
        (pathlib.PurePosixPath("/a"), "/a"),
        (object(), "<builtins.object>"),
        (pandas.Timestamp("2026-01-02"), "2026-01-02T00:00:00"),
    ],
)
def test_any_value_becomes_json(thing: Any, value: Any) -> None:
    assert as_json_value(thing) == value


def test_a_value_without_json_does_not_raise_and_shows_no_memory_address() -> None:
    for thing in (Raising(), recursive_list(), recursive_dict(), {"a": Raising()}):
        assert " at 0x" not in json.dumps(as_json_value(thing))
