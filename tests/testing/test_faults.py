"""Faults at a chosen request or tool call, slow streams, and cuts and breaks at any byte of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcall_nb import wire
from toolcall_nb.chat import Chat
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import ErrorPart, State, Transcript
from toolcall_nb.errors import ModelError, UsageError
from toolcall_nb.models import MockModel, with_faults
from toolcall_nb.testing import faults
from toolcall_nb.tools import Registry

SCRIPT: list[Any] = [["I look. 👍", ("sql", {"q": "São Paulo"})], ("sql", {"q": "b"}), "Done."]


def sql(q: str) -> str:
    """Runs a query."""
    return q.upper()


def chat_of(*these: faults.Fault, **options: Any) -> Chat:
    return Chat(MockModel(script=SCRIPT, faults=these), tools=[sql], pause=lambda seconds: None, **options)


def outputs(chat: Chat) -> list[tuple[State, Any]]:
    return [(call.state, call.error or call.output) for call in chat.calls.values()]


def errors_of(chat: Chat) -> list[str]:
    return [part.text for message in chat.transcript.messages for part in message.parts if isinstance(part, ErrorPart)]


def events_of(*these: faults.Fault) -> list[Event]:
    return list(MockModel(script=SCRIPT[:1], faults=these).stream([], ()))


# At a request -------------------------------------------------------------------------------------------------


def test_a_request_is_refused_with_a_status_and_then_repeated() -> None:
    waits: list[float] = []
    chat = Chat(MockModel(script=SCRIPT), tools=[sql], pause=waits.append)
    with faults.injected(chat, faults.on(request=2, status=429, retry_after=7)):
        assert chat.send("Go.").text.endswith("Done.")
    assert waits == [7.0]
    assert isinstance(chat.last_error, faults.HttpStatusError)


def test_a_status_that_is_not_repeated_ends_the_turn_with_its_text() -> None:
    chat = chat_of(faults.on(request=2, status=401, body="No such key."))
    chat.send("Go.")
    assert len(chat.calls) == 1
    assert "(401): No such key" in errors_of(chat)[0]


@pytest.mark.parametrize("raised", [ConnectionResetError, ConnectionResetError("gone")])
def test_a_request_raises_an_exception(raised: Any) -> None:
    chat = chat_of(faults.on(request=1, raises=raised), retries=0)
    chat.send("Go.")
    assert "The connection to the model 'mock:script' was lost" in errors_of(chat)[0]


def test_only_the_chosen_request_has_the_fault() -> None:
    chat = chat_of(faults.on(request=2, fault=faults.malformed_call()))
    chat.send("Go.")
    assert [state for state, _ in outputs(chat)] == [State.OUTPUT_AVAILABLE, State.OUTPUT_ERROR]


def test_a_request_waits_before_its_first_event() -> None:
    waits: list[float] = []
    assert events_of(faults.on(request=1, seconds=3, sleep=waits.append)) == events_of()
    assert waits == [3]


# At a tool call -----------------------------------------------------------------------------------------------


def test_a_tool_raises_at_each_call_or_at_one() -> None:
    chat = chat_of()
    with faults.injected(chat, faults.on(tool="sql", raises=TimeoutError())):
        chat.send("Go.")
    assert outputs(chat) == [(State.OUTPUT_ERROR, "TimeoutError")] * 2
    chat = chat_of()
    with faults.injected(chat, faults.on(tool="sql", call=2, raises=TimeoutError("slow"))):
        chat.send("Go.")
    assert outputs(chat) == [(State.OUTPUT_AVAILABLE, "SÃO PAULO"), (State.OUTPUT_ERROR, "TimeoutError: slow")]


@pytest.mark.parametrize("value", [None, "", {"rows": []}])
def test_a_tool_returns_another_value(value: Any) -> None:
    chat = chat_of()
    with faults.injected(chat, faults.on(tool="sql", call=1, returns=value)):
        chat.send("Go.")
    assert outputs(chat) == [(State.OUTPUT_AVAILABLE, value), (State.OUTPUT_AVAILABLE, "B")]


def test_a_slow_tool_still_gives_its_result() -> None:
    waits: list[float] = []
    tools = faults.tools_with_faults([sql], faults.on(tool="sql", seconds=9, sleep=waits.append))
    assert tools["sql"].run({"q": "a"}).output == "A"
    assert waits == [9]


async def slow_sql(q: str) -> str:
    """Runs a query."""
    return q.upper()


def test_asynchronous_tools_have_faults_too() -> None:
    tools = faults.tools_with_faults([slow_sql], faults.on(tool="slow_sql", call=1, raises=ValueError("no")))
    assert tools["slow_sql"].run({"q": "a"}).error == "ValueError: no"
    assert tools["slow_sql"].run({"q": "a"}).output == "A"


def test_the_arguments_are_checked_as_before() -> None:
    tools = faults.tools_with_faults([sql], faults.on(tool="sql", returns=1))
    assert tools["sql"].run({"p": "a"}).wrong_input


# In a chat ----------------------------------------------------------------------------------------------------


def test_the_faults_are_gone_after_the_block_even_if_it_raises() -> None:
    registry = Registry([sql])
    chat = Chat("mock", tools=registry, speed=None)

    def fails() -> None:
        with faults.injected(chat, faults.on(tool="sql", returns=1), faults.cut(1)):
            assert chat.tools is not registry
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert chat.tools is registry
    assert chat.model_name == "mock"


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (lambda: faults.on(request=4, status=500), "on(request=4, status=500) never happened. The model was asked 3"),
        (lambda: faults.on(tool="sql", call=3, returns=1), "never happened. The tool 'sql' was called 2 times"),
    ],
)
def test_a_fault_that_never_happened_fails_the_test(fault: Callable[[], Any], says: str) -> None:
    chat = chat_of()
    with pytest.raises(faults.FaultNeverHappened) as error, faults.injected(chat, fault()):
        chat.send("Go.")
    assert says in str(error.value)


def test_a_fault_of_a_tool_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no tool 'sqll'\. Did you mean 'sql'"):
        faults.tools_with_faults([sql], faults.on(tool="sqll", returns=1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"request": 1},
        {"tool": "sql"},
        {"status": 429},
        {"request": 1, "tool": "sql", "raises": ValueError},
        {"request": 1, "status": 429, "raises": ValueError},
        {"request": 1, "returns": 3},
        {"request": 0, "status": 429},
        {"tool": "sql", "status": 429},
        {"tool": "sql", "call": 0, "returns": 1},
        {"request": 1, "call": 1, "status": 429},
    ],
)
def test_a_fault_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError):
        faults.on(**wrong)


# On the wire --------------------------------------------------------------------------------------------------

WHOLE = Transcript.from_events(events_of())
EVENTS = events_of()
WRITER = wire.encoder("ui")
SIZE = sum(len(WRITER.encode(event)) for event in EVENTS) + len(WRITER.close())


def test_a_slow_stream_waits_before_each_event() -> None:
    waits: list[float] = []
    assert events_of(faults.slow(0.5, sleep=waits.append)) == EVENTS
    assert waits == [0.5] * len(EVENTS)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100_000])
def test_pieces_of_any_number_of_bytes_give_the_same_reply(size: int) -> None:
    assert Transcript.from_events(events_of(faults.cut_bytes(size))) == WHOLE


@given(st.integers(0, SIZE + 10))
def test_one_cut_at_any_byte_gives_the_same_reply(byte: int) -> None:
    assert Transcript.from_events(faults.cut_bytes(at=byte).apply(iter(EVENTS))) == WHOLE


@given(st.integers(0, SIZE - 1))
def test_a_connection_that_is_lost_at_any_byte_raises_after_what_was_read(byte: int) -> None:
    read: list[Event] = []
    with pytest.raises(ModelError, match="The connection to the model was lost"):
        read.extend(_into(read, faults.disconnect_at(byte)))
    text = "".join(event.delta for event in read if isinstance(event, ev.TextDelta))
    assert "I look. 👍".startswith(text)


def _into(read: list[Event], fault: faults.Fault) -> list[Event]:
    for event in fault.apply(iter(EVENTS)):
        read.append(event)
    return []


def test_a_connection_that_is_lost_after_the_end_changes_nothing() -> None:
    assert Transcript.from_events(events_of(faults.disconnect_at(SIZE))) == WHOLE


@pytest.mark.parametrize("byte", range(0, SIZE, 37))
def test_a_chat_survives_a_lost_connection(byte: int) -> None:
    chat = chat_of(faults.on(request=1, fault=faults.disconnect_at(byte)), retries=0)
    chat.send("Go.")
    assert all(call.is_final for call in chat.calls.values())
    assert "was lost" in errors_of(chat)[0]


def test_wrong_numbers_of_bytes_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 1 byte"):
        faults.cut_bytes(0)


def test_faults_of_any_model() -> None:
    chat = Chat(with_faults(MockModel(script=["Hello."]), faults.cut_bytes(1)))
    assert chat.send("Go.").text == "Hello."
