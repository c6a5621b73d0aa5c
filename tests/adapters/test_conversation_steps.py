"""Each reply of the model is a step, whichever provider's list of messages, stream or reply has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.adapters import test_anthropic, test_google, test_openai, test_openai_responses, test_other_providers
from tests.adapters.conversation import CONVERSATION
from tests.adapters.test_steps import _INTERACTION
from tests.support.adapter_streams import read_events, read_items, read_whole
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import Message, Transcript

Item = dict[str, Any]
Calls = list[list[str]]
"""The ids of the calls of each reply."""

# Lists of messages --------------------------------------------------------------------------------------------


def _openai(calls: Calls) -> list[Item]:
    messages: list[Item] = [{"role": "user", "content": "Go."}]
    for ids in calls:
        function = {"name": "look", "arguments": "{}"}
        requested = [{"id": each, "type": "function", "function": function} for each in ids]
        messages.append({"role": "assistant", "content": None, "tool_calls": requested})
        messages += [{"role": "tool", "tool_call_id": each, "content": "1"} for each in ids]
    return [*messages, {"role": "assistant", "content": "Done."}]


def _items(calls: Calls) -> list[Item]:
    items: list[Item] = [{"role": "user", "content": "Go."}]
    for ids in calls:
        items += [{"type": "function_call", "call_id": each, "name": "look", "arguments": "{}"} for each in ids]
        items += [{"type": "function_call_output", "call_id": each, "output": "1"} for each in ids]
    return [*items, {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}]


def _anthropic(calls: Calls) -> list[Item]:
    messages: list[Item] = [{"role": "user", "content": "Go."}]
    for ids in calls:
        requested = [{"type": "tool_use", "id": each, "name": "look", "input": {}} for each in ids]
        results = [{"type": "tool_result", "tool_use_id": each, "content": "1"} for each in ids]
        messages += [{"role": "assistant", "content": requested}, {"role": "user", "content": results}]
    return [*messages, {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}]


def _google(calls: Calls) -> list[Item]:
    contents: list[Item] = [{"role": "user", "parts": [{"text": "Go."}]}]
    for ids in calls:
        requested = [{"functionCall": {"id": each, "name": "look", "args": {}}} for each in ids]
        results = [{"functionResponse": {"id": each, "name": "look", "response": {"n": 1}}} for each in ids]
        contents += [{"role": "model", "parts": requested}, {"role": "user", "parts": results}]
    return [*contents, {"role": "model", "parts": [{"text": "Done."}]}]


def _bedrock(calls: Calls) -> list[Item]:
    messages: list[Item] = [{"role": "user", "content": [{"text": "Go."}]}]
    for ids in calls:
        requested = [{"toolUse": {"toolUseId": each, "name": "look", "input": {}}} for each in ids]
        results = [{"toolResult": {"toolUseId": each, "content": [{"text": "1"}]}} for each in ids]
        messages += [{"role": "assistant", "content": requested}, {"role": "user", "content": results}]
    return [*messages, {"role": "assistant", "content": [{"text": "Done."}]}]


def _pydantic_ai(calls: Calls) -> list[Item]:
    prompt = {"part_kind": "user-prompt", "content": "Go."}
    messages: list[Item] = [{"kind": "request", "parts": [prompt]}]
    for ids in calls:
        requested = [{"part_kind": "tool-call", "tool_name": "look", "args": {}, "tool_call_id": each} for each in ids]
        results = [{"part_kind": "tool-return", "tool_call_id": each, "content": "1"} for each in ids]
        messages += [{"kind": "response", "parts": requested}, {"kind": "request", "parts": results}]
    return [*messages, {"kind": "response", "parts": [{"part_kind": "text", "content": "Done."}]}]


_LISTS: list[Callable[[Calls], list[Item]]] = [_openai, _items, _anthropic, _google, _bedrock, _pydantic_ai]
_REPLIES: list[Calls] = [
    [["c1"], ["c2"]],
    [["c1", "c2"]],
    [["c1"], ["c2", "c3"], ["c4"]],
    [["c1", "c2"], ["c3"], ["c4", "c5"]],
]


def _requested(message: Message) -> Calls:
    return [[call.id for call in step.calls] for step in message.steps]


@pytest.mark.parametrize("calls", _REPLIES, ids=str)
@pytest.mark.parametrize("write", _LISTS)
def test_calls_are_parallel_or_one_after_the_other_as_the_list_says(
    write: Callable[[Calls], list[Item]], calls: Calls
) -> None:
    transcript = read_whole(write(calls))
    _, answer = transcript.messages
    assert _requested(answer) == [*calls, []]
    assert [step.text for step in answer.steps] == [*[""] * len(calls), "Done."]
    assert all(call.is_final for call in answer.calls)
    assert not transcript.diagnostics
    assert Transcript.from_events(transcript.events()) == transcript


@pytest.mark.parametrize("write", [_openai, _anthropic, _bedrock, _pydantic_ai])
def test_two_messages_of_the_assistant_in_sequence_are_two_steps(write: Callable[[Calls], list[Item]]) -> None:
    first, call, result, last = write([["c1"]])
    [_, answer] = read_whole([first, last, call, result]).messages
    assert [(step.text, len(step.calls)) for step in answer.steps] == [("Done.", 0), ("", 1)]


def test_the_contents_of_a_streamed_reply_of_google_are_one_step() -> None:
    first, call, result, last = _google([["c1"]])
    [_, answer] = read_whole([first, last, call, result, last]).messages
    assert [(step.text, len(step.calls)) for step in answer.steps] == [("Done.", 1), ("Done.", 0)]


def test_an_id_that_two_replies_use_names_two_calls_in_two_steps() -> None:
    [_, answer] = read_whole(_openai([["look:0"], ["look:0"]])).messages
    assert _requested(answer) == [["look:0"], ["look:0-2"], []]
    assert [(call.id, call.provider_id, call.output) for call in answer.calls] == [
        ("look:0", None, "1"),
        ("look:0-2", "look:0", "1"),
    ]


# Streams and replies ------------------------------------------------------------------------------------------

_FACTS: dict[str, tuple[list[Item], str | None, str | None]] = {
    "anthropic": (test_anthropic._STREAM, "msg_1", "claude-x"),
    "cohere": (test_other_providers._COHERE, "m", None),
    "google": (test_google._STREAM, "r1", "gemini-x"),
    "google-interactions": (_INTERACTION, "i1", "gemini-x"),
    "openai-chat": (test_openai._STREAM, "c1", "gpt-x"),
    "openai-responses": (test_openai_responses._STREAM, "r1", "gpt-x"),
}


@pytest.mark.parametrize("name", _FACTS)
def test_a_reply_is_one_step_with_its_id_model_and_usage(name: str) -> None:
    items, response_id, model = _FACTS[name]
    [message] = read_items(items).messages
    [step] = message.steps
    assert (step.response_id, step.model) == (response_id, model)
    assert step.usage == message.metadata["usage"]
    *_, last_but_one, last = read_events(items)
    assert isinstance(last_but_one, ev.FinishStep)
    assert isinstance(last, ev.Finish)
    assert (last_but_one.model, last_but_one.usage) == (None, None)  # they are facts of the message
    assert last.message_metadata == message.metadata


def _second(item: Item) -> Item:
    return {**item, "id": "r2"} if "id" in item else item


def _two(items: list[Item], renamed: Callable[[Item], Item]) -> list[Item]:
    return [*items, *map(renamed, items)]


def _second_of_anthropic(item: Item) -> Item:
    return {**item, "message": {**item["message"], "id": "msg_2"}} if item["type"] == "message_start" else item


def _second_of_google(item: Item) -> Item:
    return {**item, "responseId": "r2"}


def _second_of_openai(item: Item) -> Item:
    return {**item, "response": {**item["response"], "id": "r2"}} if "response" in item else item


@pytest.mark.parametrize(
    ("items", "renamed", "ids"),
    [
        pytest.param(test_anthropic._STREAM, _second_of_anthropic, ["msg_1", "msg_2"], id="anthropic"),
        pytest.param(test_google._STREAM, _second_of_google, ["r1", "r2"], id="google"),
        pytest.param(test_openai._STREAM, _second, ["c1", "r2"], id="openai-chat"),
        pytest.param(test_other_providers._BEDROCK, dict, [None, None], id="bedrock"),
        pytest.param(test_other_providers._COHERE, _second, ["m", "r2"], id="cohere"),
        pytest.param(test_other_providers._OLLAMA, dict, [None, None], id="ollama"),
        pytest.param(CONVERSATION, dict, [None, None], id="mistral"),
        pytest.param(_INTERACTION, dict, ["i1", "i1"], id="google-interactions"),
        pytest.param(test_openai_responses._STREAM, _second_of_openai, ["r1", "r2"], id="openai-responses"),
    ],
)
def test_each_reply_of_a_stream_is_a_step_with_its_own_facts(
    items: list[Item], renamed: Callable[[Item], Item], ids: list[str]
) -> None:
    [once] = read_items(items).messages
    [message] = read_items(_two(items, renamed)).messages
    assert [step.response_id for step in message.steps] == ids
    assert [(step.model, step.usage) for step in message.steps] == [(once.steps[0].model, once.metadata["usage"])] * 2
    assert [(step.text, len(step.calls)) for step in message.steps] == [(once.text, len(once.calls))] * 2
    twice = {name: 2 * count for name, count in once.metadata["usage"].items()}
    assert message.metadata == {**once.metadata, "usage": twice}
