"""Any function as a model: its arguments, its possible results, and the errors for others."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from toolcall_nb import Chat, models
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall, Transcript
from toolcall_nb.errors import ModelError, UsageError
from toolcall_nb.models.callable_models import CallableModel
from toolcall_nb.tools import Tool

WITHIN = 30


def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sunny in {city}"


def said(text: str) -> Message:
    return Message("user", (TextPart(text),))


def reply_of(function: Callable[..., Any], *tools: Tool, dialect: str = "native") -> Message:
    """The message with which the function answers a greeting."""
    events = CallableModel(function, dialect=dialect).stream([said("Hello")], tools)
    (message,) = Transcript.from_events(
        [ev.Start(), *(event for event in events if not isinstance(event, ev.Start))]
    ).messages
    return message


COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "tiny",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "First."}},
        {"index": 1, "finish_reason": "stop", "message": {"role": "assistant", "content": "Second."}},
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}


def chunk(**delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "tiny", "choices": [choice]}


CALL = {
    "index": 0,
    "id": "call_7",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
}


# What it is given


def test_the_messages_are_in_openai_s_form() -> None:
    got: list[Any] = []

    def ask(messages: list[dict[str, Any]]) -> str:
        got.append(messages)
        return "Hi."

    call = ToolCall(id="call_1", name="weather", input={"city": "Oslo"}, output="Rain", state=State.OUTPUT_AVAILABLE)
    list(CallableModel(ask).stream([said("Hello"), Message("assistant", (call,)), said("And now?")], []))
    assert [message["role"] for message in got[0]] == ["user", "assistant", "tool", "user"]
    assert got[0][0]["content"] == "Hello"
    assert got[0][2]["tool_call_id"] == "call_1"


def both(messages: Any, tools: Any) -> Any:
    return tools


def by_name(messages: Any, *, tools: Any = None) -> Any:
    return tools


def second(messages: Any, functions: Any) -> Any:
    return functions


def any_number(*given: Any) -> Any:
    return given[1]


class Asked:
    def __call__(self, messages: Any, tools: Any) -> Any:
        return tools


@pytest.mark.parametrize(
    "function",
    [both, by_name, second, any_number, Asked(), functools.partial(both, tools=None), functools.partial(both)],
)
def test_tools_are_passed_by_name_or_as_the_second_argument(function: Any) -> None:
    given: list[Any] = []

    @functools.wraps(function)
    def noting(*arguments: Any, **named: Any) -> str:
        given.append(function(*arguments, **named))
        return ""

    list(CallableModel(noting).stream([said("Hello")], [Tool.from_function(weather)]))
    ((told,),) = given
    assert told["type"] == "function"
    assert told["function"]["name"] == "weather"
    assert told["function"]["parameters"]["required"] == ["city"]


def test_a_second_parameter_with_a_default_gets_no_tools() -> None:
    def ask(messages: Any, temperature: float = 0.5) -> str:
        return str(temperature)

    assert reply_of(ask, Tool.from_function(weather)).text == "0.5"


def test_in_a_text_dialect_the_tools_are_only_in_the_system_prompt() -> None:
    asked: list[Any] = []

    def ask(messages: list[dict[str, Any]], tools: list[Any]) -> str:
        asked.append((messages, tools))
        return "Sunny." if len(asked) > 1 else '```json\n{"tool": "weather", "params": {"city": "Oslo"}}\n```'

    chat = Chat(ask, tools=[weather], dialect="json")
    chat.send("How is Oslo?")
    assert [tools for _, tools in asked] == [[], []]
    assert "weather" in asked[0][0][0]["content"]
    assert [call.output for call in chat.calls.values()] == ["Sunny in Oslo"]
    assert "Sunny in Oslo" in str(asked[1][0][-1]["content"])


@pytest.mark.parametrize("function", [lambda: "x", lambda a, b, c: "x", int, 3, Asked])
def test_a_function_with_the_wrong_parameters_is_refused_at_once(function: Any) -> None:
    with pytest.raises(UsageError, match="messages"):
        models.model(function)


# What it may give


def text(messages: Any) -> str:
    return "Hello there."


def pieces(messages: Any) -> Iterator[str]:
    yield "Hello "
    yield "there."


async def later(messages: Any) -> str:
    await asyncio.sleep(0)
    return "Hello there."


async def pieces_later(messages: Any) -> AsyncIterator[str]:
    yield "Hello "
    await asyncio.sleep(0)
    yield "there."


async def a_stream_later(messages: Any) -> Any:
    return pieces_later(messages)


async def a_usual_stream_later(messages: Any) -> Any:
    return pieces(messages)


def events(messages: Any) -> Iterator[Any]:
    yield ev.TextDelta("t", "Hello ")
    yield ev.TextDelta("t", "there.")


def chunks(messages: Any) -> Iterator[Any]:
    yield chunk(role="assistant", content="Hello ")
    yield chunk(content="there.")


def a_list(messages: Any) -> Any:
    return ["Hello ", "there."]


class Opening:
    """A context manager, synchronous and asynchronous, that gives a stream and records its exit."""

    def __init__(self) -> None:
        self.has_left = False

    def __enter__(self) -> Iterator[str]:
        return pieces(())

    def __exit__(self, *_: object) -> None:
        self.has_left = True


class OpeningLater:
    async def __aenter__(self) -> AsyncIterator[str]:
        return pieces_later(())

    async def __aexit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    "function",
    [
        *(text, pieces, later, pieces_later, a_stream_later, a_usual_stream_later, events, chunks, a_list),
        *(lambda _: Opening(), lambda _: OpeningLater()),
    ],
)
def test_text_events_and_chunks_may_be_returned_yielded_and_awaited(function: Any) -> None:
    assert reply_of(function).text == "Hello there."


def test_a_whole_reply_is_read_and_only_its_first_choice_counts() -> None:
    chat = Chat(lambda messages: COMPLETION)
    answer = chat.send("Hello")
    assert answer.text == "First."
    assert chat.usage["inputTokens"] == 3
    assert len(chat.transcript.messages) == 2


def test_of_a_list_of_messages_the_last_ones_of_the_assistant_are_the_reply() -> None:
    def continued(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            *messages,
            {"role": "assistant", "content": "Old."},
            said_again,
            {"role": "assistant", "content": "New."},
        ]

    said_again = {"role": "user", "content": "Again?"}
    assert reply_of(continued).text == "New."


def test_its_calls_run_and_the_results_are_in_the_next_messages() -> None:
    asked: list[Any] = []

    def ask(messages: list[dict[str, Any]], tools: list[Any]) -> Iterator[Any]:
        asked.append(messages)
        if len(asked) == 1:
            yield chunk(tool_calls=[CALL])
        else:
            yield f"It is so: {messages[-1]['content']}."

    chat = Chat(ask, tools=[weather])
    answer = chat.send("How is Oslo?")
    assert [(call.id, call.output) for call in chat.calls.values()] == [("call_7", "Sunny in Oslo")]
    assert answer.text == "It is so: Sunny in Oslo."
    assert asked[1][-1] == {"role": "tool", "tool_call_id": "call_7", "content": "Sunny in Oslo"}


def test_text_before_and_after_chunks_of_an_sdk_keeps_its_place() -> None:
    def mixed(messages: Any) -> Iterator[Any]:
        yield "Before. "
        yield chunk(content="Within.")
        yield ev.ToolInputAvailable("c", "weather", {"city": "Oslo"})
        yield "After."

    parts = reply_of(mixed).parts
    assert [
        part.text if isinstance(part, TextPart) else part.id for part in parts if isinstance(part, TextPart | ToolCall)
    ] == [
        "Before. ",
        "Within.",
        "c",
        "After.",
    ]


def test_closing_the_reply_closes_the_stream_and_its_context_manager() -> None:
    opening = Opening()
    reply = CallableModel(lambda _: opening).stream([said("Hello")], [])
    next(iter(reply))
    assert not opening.has_left
    getattr(reply, "close")()  # noqa: B009 - an Iterator has none for the types
    assert opening.has_left


def test_stopping_a_chat_cancels_an_asynchronous_function() -> None:
    ended = threading.Event()

    async def endless(messages: Any) -> AsyncIterator[str]:
        try:
            while True:
                yield "on and "
                await asyncio.sleep(0)
        finally:
            ended.set()

    chat = Chat(endless)
    for event in chat.stream("Hello"):
        if isinstance(event, ev.TextDelta) and event.delta == "on and ":
            chat.stop()
    assert ended.wait(WITHIN)
    assert chat.transcript.messages[-1].aborted is not None


# What is no answer


@pytest.mark.parametrize(
    ("given", "said_of_it"),
    [
        (None, r"gave None, which is no answer. Does it lack a return\?"),
        (42, "gave 42, which is no answer"),
        ([b"bytes"], "gave b'bytes'"),
        ({"a": 1}, r"gave \{'a': 1\}"),
        ([None], "gave None"),
        ([("a", 1)], r"gave \('a', 1\)"),
        (SimpleNamespace(a=1), "gave namespace"),
    ],
)
def test_a_result_that_is_no_reply_is_refused_and_quoted(given: Any, said_of_it: str) -> None:
    def answering(messages: Any) -> Any:
        return given

    with pytest.raises(ModelError, match=rf"answering {said_of_it}.*Let it return or yield text"):
        reply_of(answering)


def test_an_exception_of_the_function_has_its_traceback_and_the_chat_continues() -> None:
    def failing(messages: list[dict[str, Any]]) -> Iterator[str]:
        yield "So far. "
        if len(messages) == 1:
            raise LookupError("no such thing")

    chat = Chat(failing)
    answer = chat.send("Hello")
    (error,) = [part for part in answer.parts if type(part).__name__ == "ErrorPart"]
    assert answer.text == "So far. "
    assert "LookupError" in error.text
    assert "no such thing" in (error.details or "")
    assert "in failing" in (error.details or "")
    assert "toolcall_nb/models" not in (error.details or "")
    assert chat.send("Again").finish_reason is None


# Its name


@pytest.mark.parametrize(
    ("function", "name"),
    [(text, "text"), (functools.partial(both, tools=None), "both"), (Asked(), "Asked"), (lambda _: "x", "lambda")],
)
def test_its_name_is_the_function_s(function: Any, name: str) -> None:
    assert CallableModel(function).name == name
    assert CallableModel(function, "mine").name == "mine"


def test_the_chat_shows_the_function_s_name() -> None:
    assert Chat(text).model_name == "text"
