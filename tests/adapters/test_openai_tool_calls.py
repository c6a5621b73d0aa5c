"""The pieces of calls in chat streams are put together, however a provider numbers them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.adapter_streams import read_items, read_whole
from tests.support.openai_shapes import Item, chunk, piece, reply
from toolcall_nb.adapters.assembler import NO_JSON
from toolcall_nb.core.transcript import State, ToolCall


def _calls(*pieces: Item) -> list[tuple[str, str, Any]]:
    """The calls of a stream with one piece in each chunk."""
    found = read_items([chunk({"tool_calls": [one]}) for one in pieces] + [chunk(reason="tool_calls")])
    assert not found.diagnostics
    return [(call.id, call.name, call.input) for call in found.messages[0].calls]


_INTERLEAVED = [
    *(piece("", "t", "a"), piece("", "t", "b", 1)),
    *(piece(text, index=index) for text in ('{"q"', ":") for index in (0, 1)),
    *(piece("1}"), piece("2}", index=1)),
]


@pytest.mark.parametrize(
    "pieces",
    [
        [piece('{"q":', "t", "a"), piece("1}")],
        [piece('{"q":', "t", "a"), piece("1}", None, "a")],  # the id each time
        [piece('{"q":', "t", "a"), piece("1}", "t", "a")],  # the name too
        [piece('{"q":', "t", "a"), piece("1}", "", "a")],  # Mistral's route of others' models
        [piece('{"q":', "t", "a"), piece("1}", None, "b")],  # another id each time, as some vLLM
        [piece('{"q":', "t", "a", None), piece("1}", None, None, None)],  # no index
        [piece('{"q":', "t", "a", None), piece("1}", None, "a", None)],
        [piece('{"q": 1}', "t", "a", None)],  # Mistral
        [piece({"q": 1}, "t", "a")],  # an object
        [piece("", "t", "a"), piece({"q": 1})],
        [piece(None, None, "a"), piece(None, "t"), piece('{"q":1}')],  # the name later
        [piece("", "t", "a"), piece(""), piece('{"q":1}'), piece("")],
        [piece('{"q":1}', "t", "a", 7)],
    ],
)
def test_one_call_is_one_call_however_its_pieces_are_numbered(pieces: list[Item]) -> None:
    assert _calls(*pieces) == [("a", "t", {"q": 1})]


@pytest.mark.parametrize(
    "pieces",
    [
        [piece('{"q":1}', "t", "a"), piece('{"q":2}', "t", "b", 1)],
        [piece('{"q":1}', "t", "a"), piece('{"q":2}', "t", "b")],  # one index for all, as Google's route
        [piece("", "t", "a"), piece('{"q":1}'), piece("", "t", "b"), piece('{"q":2}')],
        [piece('{"q":1}', "t", "a", None), piece('{"q":2}', "t", "b", None)],
        [piece({"q": 1}, "t", "a"), piece({"q": 2}, "t", "b")],
        _INTERLEAVED,
    ],
)
def test_two_calls_are_two_calls_however_their_pieces_are_numbered(pieces: list[Item]) -> None:
    assert _calls(*pieces) == [("a", "t", {"q": 1}), ("b", "t", {"q": 2})]


@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize("call_id", [None, "", "null"])
def test_calls_with_the_same_or_no_id_are_told_apart(index: int | None, call_id: str | None) -> None:
    pieces = [piece(text, "t", call_id, index) for text in ('{"q":1}', '{"q":2}')]
    found = _calls(*pieces)
    assert [(name, given) for _, name, given in found] == [("t", {"q": 1}), ("t", {"q": 2})]
    assert len({call_id for call_id, _, _ in found}) == 2


def test_a_name_may_come_in_pieces_and_be_repeated() -> None:
    assert _calls(piece(None, "get_", "a"), piece(None, "time"), piece("{")) == [("a", "get_time", "{")]
    assert _calls(piece("", "t"), piece("{", "t"), piece("}", "t")) == [("call_1", "t", {})]


def test_an_empty_piece_is_no_call() -> None:
    assert _calls({"index": 0}, {"index": 1, "function": {}}, {"index": 0, "id": "", "function": {"name": ""}}) == []


def test_arguments_that_are_cut_off_are_an_error_with_what_was_written() -> None:
    found = read_items([chunk({"tool_calls": [piece('{"q": "ca', "search", "a")]})])
    call = found.calls["a"]
    assert (call.state, call.input, call.error) == (State.OUTPUT_ERROR, '{"q": "ca', NO_JSON)


def test_a_custom_tool_takes_text() -> None:
    pieces = [
        {"index": 0, "id": "a", "type": "custom", "custom": {"name": "sql", "input": "SELECT "}},
        {"index": 0, "custom": {"input": '"1"'}},
    ]
    assert _calls(*pieces) == [("a", "sql", 'SELECT "1"')]


def test_the_older_function_call_is_a_call() -> None:
    deltas = [{"function_call": {"name": "f", "arguments": ""}}, {"function_call": {"arguments": '{"q": 1}'}}]
    found = read_items([*(chunk(delta) for delta in deltas), chunk(reason="function_call")])
    assert [(call.name, call.input) for call in found.messages[0].calls] == [("f", {"q": 1})]


def test_a_signature_that_the_next_request_needs_stays_with_its_call() -> None:
    extra = {"google": {"thought_signature": "s"}}
    one = read_items([chunk({"tool_calls": [{**piece("{}", "t", "a"), "extra_content": extra}]})])
    of_the_message = read_items([chunk({"extra_content": extra, "tool_calls": [piece("{}", "t", "a")]})])
    assert one.calls["a"].provider_metadata == of_the_message.calls["a"].provider_metadata == extra


def test_tools_that_groq_ran_are_calls_with_results() -> None:
    first = {"index": 0, "type": "search", "arguments": '{"query": "x"}', "search_results": {"results": []}}
    then = {**first, "output": "Title: X"}
    found = read_items([chunk({"executed_tools": [first]}), chunk({"executed_tools": [then]}), chunk({"content": "X"})])
    (call,) = found.messages[0].calls
    assert (call.name, call.input, call.provider_executed) == ("search", {"query": "x"}, True)
    assert call.output == {"output": "Title: X", "search_results": {"results": []}}
    assert read_whole(reply({"content": "X", "executed_tools": [then]})).messages[0].parts == found.messages[0].parts


def test_each_call_of_a_complete_message_is_a_call_of_its_own() -> None:
    calls = [piece("{}", "t", "a"), piece("{}", "t", "a"), {"function": {"name": "t", "arguments": None}}]
    found: tuple[ToolCall, ...] = read_whole(reply({"tool_calls": calls})).messages[0].calls
    assert [(call.id, call.input) for call in found] == [("a", {}), ("a-2", {}), ("call_1", {})]


@pytest.mark.parametrize("is_whole", [True, False])
def test_an_empty_function_beside_a_custom_call_is_ignored(is_whole: bool) -> None:
    empty = {"function": {"name": "", "arguments": ""}, "custom": {"name": "", "input": ""}}
    told = {
        "weather": {"function": {"name": "weather", "arguments": '{"city": "Oslo"}'}},
        "sql": {"custom": {"name": "sql", "input": "select 1"}},
    }
    calls = [
        {"index": index, "id": f"c{index}", "type": kind, **empty, **fields}
        for index, (kind, fields) in enumerate(zip(("function", "custom"), told.values(), strict=True))
    ]
    head = {"id": "x", "created": 1, "model": "m"}
    choice = {"index": 0, "finish_reason": "tool_calls"}
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    if is_whole:
        found = read_whole({**head, "object": "chat.completion", "choices": [{**choice, "message": message}]})
    else:
        found = read_items([{**head, "object": "chat.completion.chunk", "choices": [{**choice, "delta": message}]}])
    assert [(call.name, call.input) for call in found.calls.values()] == [
        ("weather", {"city": "Oslo"}),
        ("sql", "select 1"),
    ]
